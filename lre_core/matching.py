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

TINY = 1e-9
NOWHERE = np.empty(0, np.intp)


class Match(NamedTuple):
    """What a question was matched to.

    Attributes:
        unit: the unit that matches best.
        share: of the question's and answer's weight, what it covers.
        lead: by how many standard deviations of the other units' matches it is ahead of their mean.
    """

    unit: int
    share: float
    lead: float


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
        holders: dict[int, list[int]] = defaultdict(list)
        for unit, said in enumerate(words):
            for word in dict.fromkeys(said):
                holders[word].append(unit)
        self._holders = {word: np.array(units) for word, units in holders.items()}
        lengths = np.array([len(said) / 2 for said in words])
        usual = {role: lengths[np.array(roles) == role].mean() for role in set(roles)}
        # At least one word, for units that say nothing.
        self._discount = np.maximum(1.0, [usual[role] for role in roles]) * (1.0 + lengths / LONG_TURN)

    def best(self, text: Mapping[int, float]) -> Match | None:
        """The unit that matches best, of equals the first; None where no unit shares a word.

        Args:
            text: words, and how much each of them counts.
        """
        covered = np.zeros(self._units)
        total = 0.0
        for word, counts in text.items():
            holders = self._holders.get(word, NOWHERE)
            weight = counts * math.log((self._units + 1) / max(1, len(holders))) ** 2
            total += weight
            covered[holders] += weight
        if not covered.any():
            return None
        matches = covered / self._discount
        best = int(matches.argmax())
        others = np.delete(matches, best)
        lead = (matches[best] - others.mean()) / max(float(others.std()), TINY) if len(others) else np.inf
        return Match(best, float(covered[best] / total), float(lead))


def words_of(texts: Sequence[str]) -> list[list[int]]:
    """For each text its words and, as many again, their stems; as hashes."""
    text = scan(texts)
    words: list[list[int]] = [[] for _ in texts]
    for hashes in (text.words.hashes, _stems(text)):
        for word, number in zip(hashes.tolist(), text.words.text.tolist(), strict=True):
            words[number].append(word)
    return words


def _stems(text: Text) -> NDArray[np.uint64]:
    """For each word, a hash of its first letters; the mark before them tells it from any word's."""
    stems = np.ones(len(text.word_starts), np.uint64)
    for k in range(STEM):
        letter = text.folded.take(text.word_starts + k, mode="clip").astype(np.uint64)
        stems = stems * np.uint64(BASE) + np.where(k < text.word_lengths, letter, np.uint64(0))
    return stems
