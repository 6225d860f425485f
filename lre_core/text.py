"""From text to words and identifiers, all texts of a batch at once, as arrays.

Everything is found in one code-point array: character classes by table, token boundaries by comparing neighbours, and
each token's hash as a difference of prefix sums (a polynomial hash modulo 2**64, whose base is odd and so has an
inverse). No word is kept, only hashes. Scripts written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese)
are cut into overlapping pairs of characters; full-width forms count as what they are.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["COUNTS", "Text", "Tokens", "hash_word", "scan"]

LETTER, DIGIT, UPPER, UNSPACED, JOINER = (1 << bit for bit in range(16, 21))
WORD = LETTER | DIGIT
FOLDED = 0xFFFF
COUNTS = ("digits", "capitals", "unspaced", "questions", "exclamations", "marks", "numbers", "names")
"""What is counted in a text: characters of six kinds, words of digits only, and capitalised words in a sentence."""

BASE = 0x9E3779B97F4A7C15
BASE_INVERSE = pow(BASE, -1, 1 << 64)
UNSPACED_RANGES = (
    (0x0E01, 0x0E4F),
    (0x0E81, 0x0ECF),
    (0x1000, 0x109F),
    (0x1780, 0x17DD),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
)
# Enough characters to make array calls cheap, few enough for the arrays to stay in the processor's cache, and for
# three counts of them to fit one integer.
BLOCK = 60_000
PACKED = 20


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a batch of texts in reading order, one entry a token.

    Attributes:
        hashes: uint64, of the token in lower case.
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
    """

    words: Tokens
    identifiers: Tokens
    characters: NDArray[np.intp]
    counts: NDArray[np.int64]


def scan(texts: Sequence[str]) -> Text:
    """Finds the words and identifiers of a batch of texts."""
    blocks = [_scan_block(first, pieces) for first, pieces in _blocks(texts)]
    if len(blocks) == 1:
        return blocks[0][1]
    characters = np.zeros(len(texts), np.intp)
    counts = np.zeros((len(texts), len(COUNTS)), np.int64)
    for first, block in blocks:
        span = slice(first, first + len(block.characters))
        characters[span] += block.characters
        counts[span] += block.counts
    words = _join([(first, block.words) for first, block in blocks])
    return Text(words, _join([(first, block.identifiers) for first, block in blocks]), characters, counts)


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


def _scan_block(first: int, pieces: list[str]) -> tuple[int, Text]:
    # Newlines around and between the texts: every character has two neighbours, and no token crosses texts.
    joined = "\n\n" + "\n".join(pieces) + "\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.fromiter(map(len, pieces), np.intp, len(pieces))
    ends = np.cumsum(lengths + 1) + 1
    classes, inner, outer = _look_up(codes)
    # Digits, capitals and underscores up to each character, three counts packed into one sum.
    running = np.cumsum(inner)

    spaced = (classes & (WORD | UNSPACED)) - np.uint32(1) < np.uint32(UNSPACED - 1)
    starts, stops = _runs(spaced)
    unspaced = (classes & UNSPACED) != 0
    if unspaced.any():
        # Every pair of neighbours; a lone character stands for itself.
        pair = np.flatnonzero(unspaced[:-1] & unspaced[1:])
        alone = np.flatnonzero(unspaced[1:-1] & ~unspaced[:-2] & ~unspaced[2:]) + 1
        starts, stops = np.concatenate([starts, pair, alone]), np.concatenate([stops, pair + 2, alone + 1])
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], stops[order]

    # Identifiers run on over a single dash, dot, slash, colon or at sign between letters.
    inside = spaced.copy()
    inside[1:-1] |= ((classes[1:-1] & JOINER) != 0) & spaced[:-2] & spaced[2:]
    id_starts, id_stops = _runs(inside)
    long = id_stops - id_starts >= 4
    id_starts, id_stops = id_starts[long], id_stops[long]
    length = id_stops - id_starts
    digits, capitals, underscores = _unpack(running[id_stops - 1] - running[id_starts - 1])
    code_like = (digits > 0) | (underscores > 0) | ((capitals == length) & (length >= 5))
    id_starts, id_stops = id_starts[code_like], id_stops[code_like]

    powers, inverses = _powers(1 << len(codes).bit_length())
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum((classes & FOLDED) * powers[: len(codes)], out=sums[1:])

    def hashes(starts: NDArray[np.intp], stops: NDArray[np.intp]) -> NDArray[np.uint64]:
        values = (sums[stops] - sums[starts]) * inverses[starts]
        # Polynomials modulo a power of two are weak in their low bits; mix (the finaliser of splitmix64).
        values ^= values >> np.uint64(30)
        values *= np.uint64(0xBF58476D1CE4E5B9)
        values ^= values >> np.uint64(31)
        return values

    begins = ends - lengths
    counts = np.empty((len(pieces), len(COUNTS)), np.int64)
    counts[:, 0], counts[:, 1], _ = _unpack(running[ends] - running[begins - 1])
    totals = np.add.reduceat(outer, begins)
    for column in range(4):
        counts[:, 2 + column] = totals >> 16 * column & 0xFFFF
    word_digits = running[stops - 1] - running[starts - 1] & (1 << PACKED) - 1
    counts[:, 6] = _per_text(starts[word_digits == stops - starts], ends)
    capital = starts[(classes[starts] & UPPER) != 0]
    in_sentence = (codes[capital - 1] == ord(" ")) & (
        ((classes[capital - 2] & WORD) != 0) | (codes[capital - 2] == ord(","))
    )
    counts[:, 7] = _per_text(capital[in_sentence], ends)

    texts = np.arange(len(pieces))
    return first, Text(
        Tokens(hashes(starts, stops), np.repeat(texts, _per_text(starts, ends))),
        Tokens(hashes(id_starts, id_stops), np.repeat(texts, _per_text(id_starts, ends))),
        lengths,
        counts,
    )


def _runs(mask: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Starts and stops of the runs of True; the first and the last entry are never True."""
    edges = np.flatnonzero(mask[1:] != mask[:-1]) + 1
    return edges[::2], edges[1::2]


def _per_text(positions: NDArray[np.intp], ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many of the ascending positions fall into each text."""
    below = np.searchsorted(positions, ends)
    below[1:] -= below[:-1].copy()
    return below


def _unpack(packed: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    mask = (1 << PACKED) - 1
    return packed & mask, packed >> PACKED & mask, packed >> 2 * PACKED


def _join(parts: Sequence[tuple[int, Tokens]]) -> Tokens:
    empty = Tokens(np.empty(0, np.uint64), np.empty(0, np.intp))
    return Tokens(
        np.concatenate([empty.hashes, *(tokens.hashes for _, tokens in parts)]),
        np.concatenate([empty.text, *(tokens.text + first for first, tokens in parts)]),
    )


def _look_up(codes: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Flags and folded code point of each character, and its share in the inner and the outer counts."""
    classes, inner, outer = _tables()
    if codes.max() > 0xFFFF:
        # Rare ideographs of the higher planes; hashed by their low bits. Emoji count as nothing.
        ideograph = (codes >= 0x20000) & (codes < 0x40000)
        index = np.where(codes > 0xFFFF, 0, codes).astype(np.intp)
        rare = (codes & FOLDED) | np.uint32(LETTER | UNSPACED)
        return np.where(ideograph, rare, classes[index]), inner[index], outer[index]
    index = codes.astype(np.intp)
    return classes[index], inner[index], outer[index]


@functools.cache
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """For every code point of the basic plane: flags with what it is folded to, and two rows of packed counts."""
    characters = [chr(code) for code in range(0x10000)]
    narrow = [chr(code - 0xFEE0) if 0xFF01 <= code <= 0xFF5E else c for code, c in enumerate(characters)]

    def where(test: Callable[[str], bool]) -> NDArray[np.bool_]:
        return np.fromiter(map(test, narrow), np.bool_, 0x10000)

    # Vowel signs and accents (category M) belong to the word they stand in.
    letter = where(lambda c: c == "_" or c.isalpha() or unicodedata.category(c)[0] == "M")
    digit, upper = where(str.isdecimal), where(str.isupper)
    unspaced = np.zeros(0x10000, np.bool_)
    for low, high in UNSPACED_RANGES:
        unspaced[low : high + 1] = True
    lower = (c.lower() for c in narrow)
    classes = np.fromiter(
        (ord(low) if len(low) == 1 else ord(c) for low, c in zip(lower, narrow, strict=True)), np.uint32, 0x10000
    )
    joiner = where("-.@:/".__contains__)
    for flag, members in (
        (LETTER, letter | unspaced),
        (DIGIT, digit),
        (UPPER, upper),
        (UNSPACED, unspaced),
        (JOINER, joiner),
    ):
        classes |= members * np.uint32(flag)
    inner = digit + (upper * (1 << PACKED)) + (where("_".__eq__) * (1 << 2 * PACKED))
    outer = np.zeros(0x10000, np.int64)
    for place, members in enumerate(
        (unspaced, where("?؟՞".__contains__), where("!".__eq__), where("{}[]()<>=;|`\"'\\*#".__contains__))
    ):
        outer += members * (1 << 16 * place)
    return classes, inner, outer


@functools.cache
def _powers(size: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Powers of the base and of its inverse, modulo 2**64."""
    powers = np.full(size, BASE, np.uint64)
    inverses = np.full(size, BASE_INVERSE, np.uint64)
    powers[0] = inverses[0] = 1
    return np.cumprod(powers), np.cumprod(inverses)
