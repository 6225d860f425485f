"""From text to words and identifiers, all texts of a batch at once, as arrays.

Everything is found in one code-point array: a class for every character by table, token boundaries by comparing
neighbours, and each token's hash as a difference of prefix sums (a polynomial hash modulo 2**64, whose base is odd and
so has an inverse). No word is kept, only hashes. Scripts written without spaces (Chinese, Japanese, Thai, Lao, Khmer,
Burmese) are cut into overlapping pairs of characters; full-width forms count as what they are.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["COUNTS", "Text", "Tokens", "hash_word", "scan"]

# What a character is. The first four make words of spaced scripts, the first five words of any.
LETTER, UPPER, DIGIT, UNDERSCORE, UNSPACED, JOINER, QUESTION, EXCLAMATION, MARK = range(1, 10)
COUNTS = ("digits", "capitals", "unspaced", "questions", "exclamations", "marks", "numbers", "names")
"""What is counted in a text: characters of six kinds, words of digits only, and capitalised words in a sentence."""
NUMBER, PROPER_NAME = 0, 1
KINDS = MARK + 1
COUNTED = [DIGIT, UPPER, UNSPACED, QUESTION, EXCLAMATION, MARK, NUMBER, PROPER_NAME]

BASE = 0x9E3779B97F4A7C15
BASE_INVERSE = pow(BASE, -1, 1 << 64)
UNSPACED_RANGES = (
    (0x0E01, 0x0E4F),
    (0x0E81, 0x0ECF),
    (0x1000, 0x103F),
    (0x104A, 0x108F),
    (0x109A, 0x109F),
    (0x1780, 0x17DD),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
)
LOUD = 5
"""Capitals that make a code of a word without a digit."""
BLOCK = 120_000
"""Characters scanned at once: enough to make array calls cheap, few enough to stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a batch of texts in reading order, one entry a token.

    Attributes:
        hashes: uint64, of the token in lower case; the high bits tell tokens apart.
        text: index of the text it stands in.
    """

    hashes: NDArray[np.uint64]
    text: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Text:
    """A scanned batch of texts.

    Attributes:
        words: runs of letters and digits, and character pairs of unspaced scripts.
        identifiers: runs of four or more characters that mix in digits, underscores or capitals as codes do
            (`ord_41`, `KX93J`, `a1@b.io`).
        characters: (texts,) how many characters each has.
        counts: (texts, len(COUNTS)) what else was counted.
        folded: uint16, every character of the batch in lower case, the texts apart.
        word_starts: where in `folded` each word begins.
        word_lengths: how many characters each word has.
    """

    words: Tokens
    identifiers: Tokens
    characters: NDArray[np.intp]
    counts: NDArray[np.int64]
    folded: NDArray[np.uint16]
    word_starts: NDArray[np.intp]
    word_lengths: NDArray[np.intp]


def scan(texts: Sequence[str]) -> Text:
    """Finds the words and identifiers of a batch of texts."""
    blocks = [(first, _scan_block(pieces)) for first, pieces in _blocks(texts)]
    if len(blocks) == 1:
        return blocks[0][1]
    characters = np.zeros(len(texts), np.intp)
    counts = np.zeros((len(texts), len(COUNTS)), np.int64)
    for first, block in blocks:
        span = slice(first, first + len(block.characters))
        characters[span] += block.characters
        counts[span] += block.counts
    begins = np.cumsum([0, *(len(block.folded) for _, block in blocks)])
    starts = [block.word_starts + begin for (_, block), begin in zip(blocks, begins, strict=False)]
    return Text(
        _join([(first, block.words) for first, block in blocks]),
        _join([(first, block.identifiers) for first, block in blocks]),
        characters,
        counts,
        np.concatenate([np.empty(0, np.uint16), *(block.folded for _, block in blocks)]),
        np.concatenate([np.empty(0, np.intp), *starts]),
        np.concatenate([np.empty(0, np.intp), *(block.word_lengths for _, block in blocks)]),
    )


def hash_word(word: str) -> int:
    """The hash `scan` gives a word of one token."""
    return int(scan([word]).words.hashes[0])


def _blocks(texts: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Cuts the batch into (index of the first text, pieces); a text longer than a block is cut itself."""
    blocks: list[tuple[int, list[str]]] = []
    first, pieces, size = 0, [], 0
    for index, text in enumerate(texts):
        if len(text) <= BLOCK and size + len(text) <= BLOCK:
            pieces.append(text)
            size += len(text)
            continue
        if pieces:
            blocks.append((first, pieces))
        parts = [text[at : at + BLOCK] for at in range(0, len(text), BLOCK)]
        blocks += ((index, [part]) for part in parts[:-1])
        first, pieces, size = index, parts[-1:], len(parts[-1])
    return [*blocks, (first, pieces)] if pieces else blocks


def _scan_block(pieces: Sequence[str]) -> Text:
    # Newlines around and between the texts: every character has two neighbours, and no token crosses texts.
    joined = "\n\n" + "\n".join(pieces) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.fromiter(map(len, pieces), np.intp, len(pieces))
    ends = np.cumsum(lengths + 1) + 1
    classes, folded = _look_up(codes)
    marked = np.flatnonzero(classes > LETTER)
    kinds = classes[marked]
    digits, capitals = marked[kinds == DIGIT], marked[kinds == UPPER]

    spaced = classes - np.uint8(1) < np.uint8(UNDERSCORE)
    starts, stops = _runs(spaced)
    numbers = starts[_holding(digits, starts, stops) == stops - starts]
    id_starts, id_stops = _identifiers(starts, stops, classes, marked, kinds)
    if (kinds == UNSPACED).any():
        starts, stops = _with_pairs(starts, stops, classes == UNSPACED)

    powers, inverses = _powers(1 << len(codes).bit_length())
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(folded * powers[: len(codes)], out=sums[1:])
    # One power more than needed, so that the first character, too, reaches the high bits: they tell tokens apart.
    word_hashes, id_hashes = (
        (sums[stops] - sums[starts]) * inverses[starts - 1]
        for starts, stops in ((starts, stops), (id_starts, id_stops))
    )

    names = capitals[~spaced[capitals - 1] & (codes[capitals - 1] == ord(" "))]
    before = names - 2
    names = names[(classes[before] - np.uint8(1) < np.uint8(UNSPACED)) | (codes[before] == ord(","))]
    counted = ((marked, kinds), (numbers, NUMBER), (names, PROPER_NAME))
    counts = np.zeros((len(pieces), KINDS), np.int64)
    for positions, kind in counted:
        index = _text_of(positions, ends) * KINDS + kind
        counts += np.bincount(index, minlength=counts.size).reshape(counts.shape)
    return Text(
        Tokens(word_hashes, _text_of(starts, ends)),
        Tokens(id_hashes, _text_of(id_starts, ends)),
        lengths,
        counts[:, COUNTED],
        folded,
        starts,
        stops - starts,
    )


def _runs(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and stops of the runs of True; the first and the last entry are never True."""
    edges = np.flatnonzero(mask[1:] != mask[:-1]) + 1
    return edges[::2], edges[1::2]


def _identifiers(
    starts: NDArray[np.intp],
    stops: NDArray[np.intp],
    classes: NDArray[np.uint8],
    marked: NDArray[np.intp],
    kinds: NDArray[np.uint8],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and stops of what looks like a code; it runs on over a dash, dot, slash, colon or at sign within it."""
    telling, capital = (kinds == DIGIT) | (kinds == UNDERSCORE), kinds == UPPER
    if not telling.any() and np.count_nonzero(capital) < LOUD:  # as in most messages of a chat
        return starts[:0], stops[:0]
    joiner = marked[kinds == JOINER]
    within = (classes[joiner - 1] - np.uint8(1) < np.uint8(UNDERSCORE)) & (
        classes[joiner + 1] - np.uint8(1) < np.uint8(UNDERSCORE)
    )
    joined = np.searchsorted(starts, joiner[within] + 1)
    first, last = np.ones(len(starts), np.bool_), np.ones(len(starts), np.bool_)
    first[joined], last[joined - 1] = False, False
    starts, stops = starts[first], stops[last]
    length = stops - starts
    code_like = _holding(marked[telling], starts, stops) > 0
    code_like &= length >= 4
    loud = np.flatnonzero(length >= LOUD)
    for edge in (starts, stops - 1):
        loud = loud[classes[edge[loud]] == UPPER]
    if len(loud):
        code_like[loud] |= _holding(marked[capital], starts[loud], stops[loud]) == length[loud]
    found = np.flatnonzero(code_like)
    return starts[found], stops[found]


def _holding(positions: NDArray[np.intp], starts: NDArray[np.intp], stops: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many of the positions each span holds."""
    if not len(positions):
        return np.zeros(len(starts), np.intp)
    span = np.searchsorted(starts, positions, side="right")
    # Those before the first span fall to a span before it that ends nowhere.
    inside = positions < np.concatenate([[0], stops])[span]
    return np.bincount(span[inside], minlength=len(starts) + 1)[1:]


def _with_pairs(
    starts: NDArray[np.intp], stops: NDArray[np.intp], unspaced: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Adds every pair of neighbours in a script without spaces; a lone character stands for itself."""
    pair = np.flatnonzero(unspaced[:-1] & unspaced[1:])
    alone = np.flatnonzero(unspaced[1:-1] & ~unspaced[:-2] & ~unspaced[2:]) + 1
    starts, stops = np.concatenate([starts, pair, alone]), np.concatenate([stops, pair + 2, alone + 1])
    order = np.argsort(starts, kind="stable")
    return starts[order], stops[order]


def _text_of(positions: NDArray[np.intp], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Into which text each of the ascending positions falls."""
    if len(ends) == 1:
        return np.zeros(len(positions), np.intp)
    below = np.searchsorted(positions, ends)
    below[1:] -= below[:-1].copy()
    return np.repeat(np.arange(len(ends)), below)


def _join(parts: Sequence[tuple[int, Tokens]]) -> Tokens:
    return Tokens(
        np.concatenate([np.empty(0, np.uint64), *(tokens.hashes for _, tokens in parts)]),
        np.concatenate([np.empty(0, np.intp), *(tokens.text + first for first, tokens in parts)]),
    )


def _look_up(codes: NDArray[np.uint32]) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Class and lower case of each character."""
    # The last code point of the basic plane is none, and stands for what lies beyond it: emoji count as nothing.
    both = _table().take(codes, mode="clip")
    classes, folded = (both >> 16).astype(np.uint8), both.astype(np.uint16)
    if codes.max() > 0xFFFF:
        # Rare ideographs of the higher planes; hashed by their low bits.
        rare = np.flatnonzero((codes >= 0x20000) & (codes < 0x40000))
        classes[rare], folded[rare] = UNSPACED, codes[rare] & 0xFFFF
    return classes, folded


@functools.cache
def _table() -> NDArray[np.uint32]:
    """For every code point of the basic plane: its class, and in the low half what it is folded to."""
    narrow = [chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else chr(code) for code in range(0x10000)]
    lower = (c.lower() for c in narrow)
    folded = (ord(low) if len(low) == 1 else ord(c) for low, c in zip(lower, narrow, strict=True))
    classes = np.fromiter(map(_class, narrow), np.uint32, 0x10000)
    for low, high in UNSPACED_RANGES:
        classes[low : high + 1] = UNSPACED
    return classes << np.uint32(16) | np.fromiter(folded, np.uint32, 0x10000)


def _class(c: str) -> int:
    if c.isdecimal():
        return DIGIT
    if c.isupper() and c.isalpha():
        return UPPER
    # Vowel signs and accents (category M) belong to the word they stand in.
    if c.isalpha() or unicodedata.category(c)[0] == "M":
        return LETTER
    signs = {"_": UNDERSCORE} | dict.fromkeys("-.@:/", JOINER) | dict.fromkeys("?؟՞", QUESTION) | {"!": EXCLAMATION}
    return signs.get(c, MARK if c in "{}[]()<>=;|`\"'\\*#" else 0)


@functools.cache
def _powers(size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Powers of the base and of its inverse, modulo 2**64."""
    powers = np.full(size, BASE, np.uint64)
    inverses = np.full(size, BASE_INVERSE, np.uint64)
    powers[0] = inverses[0] = 1
    return np.cumprod(powers), np.cumprod(inverses)
