"""What a unit says as a few thousand numbers: the runs of four characters within its words, hashed.

Words are cut into overlapping runs, their ends marked, as in fastText (Bojanowski 2017), and hashed into signed buckets
(Weinberger 2009), a person's apart from everybody else's. So the forms of a word share what is learned, a word never
seen in training still says something, and no word is stored. A unit's row is the mean over the runs of its distinct
words, of which the rare weigh more, drawn towards zero where they are few. A word is cut once in a history, however
often it comes.

Which runs share a bucket is decided by a salt. Training tries several, since what collides with the most telling runs
of a domain matters. Words of a script that was hardly there in training say nothing: their weights would be noise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lre_core.scripts import SCRIPTS, script_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["WORD_BUCKETS", "Said", "WordMatrix", "WordRows", "WordScores", "runs", "scripts_of"]

WORD_BUCKETS = 2048
"""Into how many signed buckets runs of characters are hashed."""
PADDING = 30.0
"""Added to the weight of a unit's runs before it divides their sum: three words say less than thirty."""
VOICES = 2
SPREAD = 0x9E3779B97F4A7C15


class Said(NamedTuple):
    """The distinct words of new units.

    Attributes:
        unit: of each pair of a unit and a word of it, which of the new units.
        word: the word's number.
        weight: how much it counts there.
        person: (units,) whether a person speaks.
        runs: of the words that are new, in the order of their numbers; what `runs` gives.
        lengths: how many runs each new word has.
    """

    unit: NDArray[np.intp]
    word: NDArray[np.intp]
    weight: NDArray[np.float64]
    person: NDArray[np.bool_]
    runs: NDArray[np.uint64]
    lengths: NDArray[np.intp]

    @property
    def voice(self) -> NDArray[np.intp]:
        """(units,) 0 for a person, 1 for everybody else."""
        return np.where(self.person, 0, 1)


NO_INDEX = np.empty(0, np.intp)
NOTHING_SAID = Said(NO_INDEX, NO_INDEX, np.empty(0), np.empty(0, np.bool_), np.empty(0, np.uint64), NO_INDEX)


def runs(
    folded: NDArray[np.uint16], starts: NDArray[np.intp], lengths: NDArray[np.intp]
) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """The runs of four characters within words, an end mark before and after each, as numbers; and how many a word has.

    Args:
        folded: the characters of a text.
        starts: where in it each word begins.
        lengths: how many characters each word has; one of a single character is one run.
    """
    count = np.maximum(lengths - 1, 1)
    last = np.cumsum(count)
    opens = last - count
    # From the mark before the word on; where a run reaches out of its word stands the mark, 0.
    at = np.repeat(starts - 1 - opens, count) + np.arange(last[-1] if len(last) else 0)
    first, second, third, fourth = (folded.take(at + k, mode="clip").astype(np.uint64) for k in range(4))
    first[opens] = 0
    third[opens[lengths == 1]] = 0
    fourth[last - 1] = 0
    return first | second << np.uint64(16) | third << np.uint64(32) | fourth << np.uint64(48), count


class WordScores:
    """What the words of each unit add to its score; a word's runs are looked up once.

    Args:
        weights: (WORD_BUCKETS,) of the buckets.
        salt: with which they were learned.
        scripts: that they were learned from.
    """

    def __init__(self, weights: NDArray[np.float64], salt: int, scripts: Collection[str]) -> None:
        # A run's place says its bucket and, in the lowest bit, its sign.
        self._signed = np.column_stack([-weights, weights]).ravel()
        self._salt, self._scripts = salt, scripts
        self._size = 0
        self._sums = np.zeros((VOICES, 256))
        self._counts = np.zeros(256)

    def add(self, said: Said) -> NDArray[np.float64]:
        """(units,) what the words of new units add."""
        new = slice(self._size, self._size + len(said.lengths))
        self._grow(new.stop)
        self._counts[new] = said.lengths
        if len(said.lengths):
            opens = np.cumsum(said.lengths) - said.lengths
            known = _known(said.runs, self._scripts)
            for voice, place in enumerate(_places(said.runs, self._salt)):
                self._sums[voice, new] = np.add.reduceat(self._signed.take(place) * known, opens)
        units = len(said.person)
        at = said.word + self._sums.shape[1] * said.voice[said.unit]
        total = np.bincount(said.unit, self._sums.ravel().take(at) * said.weight, units)
        count = np.bincount(said.unit, self._counts.take(said.word) * said.weight, units)
        scores: NDArray[np.float64] = total / (count + PADDING)
        return scores

    def _grow(self, size: int) -> None:
        self._size = size
        room = 2 * size - self._sums.shape[1]
        if room > size:
            self._sums = np.concatenate([self._sums, np.zeros((VOICES, room))], axis=1)
            self._counts = np.concatenate([self._counts, np.zeros(room)])


class WordRows:
    """The same, kept to learn weights from."""

    def __init__(self) -> None:
        self._said: list[Said] = []

    def add(self, said: Said) -> NDArray[np.float64]:
        """(units,) zeros: nothing is weighed yet."""
        self._said.append(said)
        return np.zeros(len(said.person))

    @property
    def said(self) -> Said:
        """All of it, as if it had been added at once."""
        return _joined(self._said, same_words=True)


class WordMatrix:
    """Hashed words of the units of several histories. Needs scipy, which the `train` extra brings.

    Args:
        histories: what was said in each.
        scripts: whose words count.
    """

    def __init__(self, histories: Sequence[Said], scripts: Collection[str] = SCRIPTS) -> None:
        from scipy.sparse import csr_matrix

        said = _joined(histories, same_words=False)
        units, words = len(said.person), len(said.lengths)
        share = said.weight / (np.bincount(said.unit, said.lengths[said.word] * said.weight) + PADDING)[said.unit]
        # A word stands twice, once for each voice.
        place = said.word + words * said.voice[said.unit]
        self._shares = csr_matrix((share, (said.unit, place)), shape=(units, VOICES * words))
        self._runs, self._known = said.runs, _known(said.runs, scripts)
        self._ends = np.cumsum(said.lengths)

    def hashed(self, salt: int) -> csr_matrix:
        """(units, WORD_BUCKETS) under a salt, sparse."""
        from scipy.sparse import csr_matrix

        place = np.concatenate(list(_places(self._runs, salt)))
        sign = np.tile(self._known, VOICES) * (2.0 * (place & 1) - 1.0)
        ends = [voice * len(self._runs) + self._ends for voice in range(VOICES)]
        shape = (VOICES * len(self._ends), WORD_BUCKETS)
        return self._shares @ csr_matrix((sign, place >> 1, np.concatenate([[0], *ends])), shape=shape)


def scripts_of(histories: Sequence[Said]) -> NDArray[np.intp]:
    """(len(SCRIPTS),) how many runs of each script the words of these histories have."""
    counts = np.zeros(len(SCRIPTS), np.intp)
    for said in histories:
        counts += np.bincount(_script(said.runs), minlength=len(SCRIPTS))
    return counts


def _joined(parts: Sequence[Said], same_words: bool) -> Said:
    """Parts as one, their units numbered through, and their words too unless they are already the same history's."""
    unit = word = 0
    numbered = []
    for said in parts:
        numbered.append(said._replace(unit=said.unit + unit, word=said.word + word))
        unit += len(said.person)
        word += 0 if same_words else len(said.lengths)
    return Said(*map(np.concatenate, zip(NOTHING_SAID, *numbered, strict=True)))


def _script(runs: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Of each run, by its second character: the first may be the mark before a word."""
    return script_of((runs >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.intp))


def _known(runs: NDArray[np.uint64], scripts: Collection[str]) -> NDArray[np.bool_]:
    """Whether each run is of one of these scripts."""
    return np.array([name in scripts for name in SCRIPTS]).take(_script(runs))


def _places(runs: NDArray[np.uint64], salt: int) -> Iterator[NDArray[np.intp]]:
    """Where each run goes when a person says it, and when others do: twice its bucket, and one more for a plus."""
    hashes = _mix(runs ^ np.uint64(salt * SPREAD % (1 << 64)))
    for voice in range(VOICES):
        yield (hashes >> np.uint64(32 * voice)).astype(np.intp) & (2 * WORD_BUCKETS - 1)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads what tells the values apart over all their bits, in place (the finaliser of splitmix64, Steele 2014)."""
    values ^= values >> np.uint64(30)
    values *= np.uint64(0xBF58476D1CE4E5B9)
    values ^= values >> np.uint64(27)
    values *= np.uint64(0x94D049BB133111EB)
    values ^= values >> np.uint64(31)
    return values
