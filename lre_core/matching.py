"""Which earlier turn a text takes up: by shared words, the rare ones above all."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lre_core.text import BASE, Text, scan

__all__ = ["Match", "Turns", "words_of"]

LONG_TURN = 200
"""Words at which a turn's match counts half: a long turn shares words with any text."""
STEM = 5
"""Letters at a word's beginning that count as a word of their own: what is taken up seldom keeps its form."""


class Match(NamedTuple):
    """What a question was matched to: the unit, and the share of the question's and answer's weight it covers."""

    unit: int
    share: float


class Turns:
    """The units of a history that texts may be matched to.

    A match counts by what share of a text's weight a unit covers, per word of what its role usually says (an
    assistant's replies may be ten times as long as a person's turns, and echo whatever was asked), and less for a long
    unit. A word weighs the square of its inverse document frequency here.

    Args:
        words: of each unit, as `words_of` gives them.
        roles: of each unit.
    """

    def __init__(self, words: Sequence[Sequence[int]], roles: Sequence[str]) -> None:
        self._units = len(words)
        self._holders: dict[int, list[int]] = defaultdict(list)
        for unit, said in enumerate(words):
            for word in dict.fromkeys(said):
                self._holders[word].append(unit)
        lengths = np.array([len(said) / 2 for said in words])
        usual = {role: lengths[np.array(roles) == role].mean() for role in set(roles)}
        self._discount = np.array([usual[role] for role in roles]) * (1.0 + lengths / LONG_TURN)

    def best(self, text: Mapping[int, float]) -> Match | None:
        """The unit that matches best, of equals the first; None where no unit shares a word.

        Args:
            text: words, and how much each of them counts.
        """
        covered: dict[int, float] = defaultdict(float)
        total = 0.0
        for word, counts in text.items():
            holders = self._holders.get(word, ())
            weight = counts * math.log((self._units + 1) / max(1, len(holders))) ** 2
            total += weight
            for unit in holders:
                covered[unit] += weight
        if not covered or not total:
            return None
        best = max(sorted(covered), key=lambda unit: covered[unit] / self._discount[unit])
        return Match(best, covered[best] / total)


def words_of(texts: Sequence[str]) -> list[list[int]]:
    """For each text its words and, as many again, their stems; as hashes."""
    text = scan(texts)
    words: list[list[int]] = [[] for _ in texts]
    for hashes in (text.words.hashes, _stems(text)):
        for word, number in zip(hashes.tolist(), text.words.text.tolist(), strict=True):
            words[number].append(word)
    return words


def _stems(text: Text) -> NDArray[np.uint64]:
    """For each word, a hash of its first letters; it differs from any word's."""
    stems = np.zeros(len(text.word_starts), np.uint64)
    for k in range(STEM):
        letter = text.folded.take(text.word_starts + k, mode="clip").astype(np.uint64)
        stems = stems * np.uint64(BASE) + np.where(k < text.word_lengths, letter, np.uint64(0))
    return stems
