"""Causal features of units: statistics and hashed words, for a whole history at once or as messages arrive.

A unit's row says what is known at the moment of decision: what it says, how that compares with what came before it,
and what has happened since (replies, reuse so far, age). Nothing is read from after the newest unit, and nothing
depends on how long the history will become. All counting is over hashes; no word is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lre_core.grams import Said, WordRows, WordScores, runs
from lre_core.lexicon import LEXICON, lexicon_flags
from lre_core.messages import Message
from lre_core.scripts import SCRIPTS
from lre_core.text import COUNTS, Text, scan
from lre_core.units import Unit
from lre_core.vocabulary import Vocabulary

__all__ = ["FEATURES", "FEATURE_SET", "Features"]

FEATURE_SET = 2
"""Version of the columns and of the hashing; a scorer fits one version only."""

PROSE, CALL, RESULT, NAME = range(4)

OPENING = (4, 16, 32, 64, 128)
"""Units after which the chance to be needed may bend: how a history opens often frames what follows."""

OWN = (
    "human",
    "assistant",
    "step",
    "system",
    "log_words",
    "log_characters",
    "log_call_characters",
    "log_result_characters",
    "unseen_words",
    "unseen_share",
    "idf_sum",
    "idf_mean",
    "idf_max",
    "rare_words",
    "repeats_previous",
    "numbers",
    "digit_share",
    "names",
    "capital_share",
    "question",
    "exclamation",
    "mark_share",
    "identifiers_introduced",
    "identifiers_seen_before",
    "identifiers_in_calls",
    "calls",
    *LEXICON,
    "same_role_as_previous",
    "same_speaker_as_previous",
    "log_gap",
    "session_index",
    "opens_session",
    "history_so_far",
    *(f"history_over_{units}" for units in OPENING),
)
PREVIOUS = ("question", "log_words", "idf_sum", "names", "human", "step")
NEXT = ("question", "log_words", "repeats_previous", "exclamation", "acknowledgement", "unseen_share", "human", "step")
SINCE = (
    "log_age",
    "log_tokens_since",
    "has_reply",
    "reuse_words",
    "reuse_units",
    "reuse_identifiers",
    "reuse_in_calls",
    "reuse_any_call",
    "reuse_share",
    "log_since_reuse",
    "log_since_call",
    "calls_again",
    "call_again_share",
    "identifiers_unused",
)
FEATURES: tuple[str, ...] = (
    *OWN,
    *(f"previous_{name}" for name in PREVIOUS),
    *(f"next_{name}" for name in NEXT),
    *SINCE,
)
"""The columns of `Features.matrix`, in order."""

REUSE = ("word", "unit", "identifier", "call", "used", "one")
KIND_NAMES = ("human", "assistant", "step", "system")
KIND_NUMBER = {name: number for number, name in enumerate(KIND_NAMES)}
STEP = KIND_NUMBER["step"]

SESSION_GAP = 3600.0
"""Seconds of silence after which a new session begins."""
RARE = 2
OFTEN = 5
"""A word that stood in more units than this says nothing when it comes again."""
NEVER = 5.0
"""Stands for the logarithm of the units since the last reuse where there was none."""

BATCH = 1 << 20
"""Characters scanned at once, to bound memory."""
LONGEST = 1 << 23
"""Characters of one message that are read."""


COLUMN = {name: index for index, name in enumerate(OWN)}
LOGARITHMS = [
    COLUMN[name]
    for name in OWN
    if name.startswith(("log_", "identifiers_", "unseen_words", "rare_words", "idf_sum", "calls", "session_index"))
    or name in {"numbers", "names", "history_so_far", *LEXICON}
]
"""Columns of which the logarithm of one more is taken, since the tenth counts less than the first."""
PREVIOUS_COLUMNS, NEXT_COLUMNS = [COLUMN[name] for name in PREVIOUS], [COLUMN[name] for name in NEXT]
SO_FAR = COLUMN["history_so_far"]
BENDS = np.log1p(OPENING)
BITS = np.arange(len(LEXICON), dtype=np.uint8)[:, np.newaxis]

Columns = dict[str, NDArray[Any]]


class Features:
    """Features of a history's units, extended in place as units arrive; a new unit costs its own length.

    Args:
        word_weights: (WORD_BUCKETS,) weights of the hashed words. Given these, a unit's words are folded into one
            number; without them they are kept in `said`, which training learns from.
        salt: of the hashing that the weights were learned with.
        scripts: that they were learned from; words of others count for nothing.
    """

    def __init__(
        self,
        word_weights: NDArray[np.float64] | None = None,
        salt: int = 0,
        scripts: Collection[str] = SCRIPTS,
    ) -> None:
        self.size = 0
        self._said = WordRows() if word_weights is None else WordScores(word_weights, salt, scripts)
        self._own = np.zeros((64, len(OWN)))
        self._word_score = np.zeros(64)
        # Characters and steps before each unit.
        self._so_far = np.zeros((65, 2))
        self._reuse = np.zeros((64, len(REUSE)))
        # One more than the last unit that used an identifier again, in whatever way and in a call; 0 for none.
        self._last_use = np.zeros((64, 2), np.intp)
        self._words, self._identifiers = Vocabulary(), Vocabulary()
        self._kind = -1
        self._speaker: str | None = None
        self._time: float | None = None
        self._session = -1

    def extend(self, messages: Sequence[Message], units: Sequence[Unit]) -> None:
        """Adds units that are final, oldest first.

        Args:
            messages: the whole history.
            units: the units to add; only their messages are read.
        """
        texts: list[str] = []
        owners: list[int] = []
        fields: list[int] = []
        size, first = 0, 0
        for row, unit in enumerate(units):
            if unit.kind == "turn":
                texts.append(messages[unit.start].text[:LONGEST])
                fields.append(PROSE)
                owners.append(row - first)
                size += len(texts[-1])
            else:
                spoken = _spoken(messages[unit.start : unit.stop])
                texts += (text for text, _ in spoken)
                fields += (field for _, field in spoken)
                owners += [row - first] * len(spoken)
                size += sum(len(text) for text, _ in spoken)
            if size > BATCH:
                self._extend(messages, units[first : row + 1], texts, owners, fields)
                texts, owners, fields, size, first = [], [], [], 0, row + 1
        if first < len(units):
            self._extend(messages, units[first:], texts, owners, fields)

    def _extend(
        self,
        messages: Sequence[Message],
        units: Sequence[Unit],
        texts: Sequence[str],
        owners: Sequence[int],
        fields: Sequence[int],
    ) -> None:
        start, n = self.size, len(units)
        new = slice(start, start + n)
        owner, field = np.array(owners, np.intp), np.array(fields, np.intp)
        self._grow(start + n)
        text = scan(texts)
        columns = self._describe(messages, units)
        columns |= _count_characters(text, owner, field)
        columns |= self._read_words(text, owner[text.words.text], columns["human"])
        columns |= self._read_identifiers(text, owner, field, n)

        own = np.array([columns[name] for name in OWN[: -len(OPENING)]], np.float64)
        own[LOGARITHMS] = np.log1p(own[LOGARITHMS])
        self._own[new, : len(own)] = own.T
        self._own[new, len(own) :] = np.maximum(0.0, own[SO_FAR][:, np.newaxis] - BENDS)
        self._so_far[start + 1 : start + n + 1] = self._so_far[start] + np.cumsum(
            np.array([columns["characters"], columns["step"]], np.float64).T, axis=0
        )
        self.size += n

    def _describe(self, messages: Sequence[Message], units: Sequence[Unit]) -> Columns:
        """What the messages' fields say: role, speaker, calls, time."""
        n = len(units)
        opening = [messages[unit.start] for unit in units]
        kind = np.array([self._kind, *(KIND_NUMBER[unit.role] if unit.kind == "turn" else STEP for unit in units)])
        speakers = [self._speaker, *(message.name for message in opening)]
        calls = np.zeros(n)
        for row in np.flatnonzero(kind[1:] == STEP).tolist():
            calls[row] = sum(len(message.calls) for message in messages[units[row].start : units[row].stop])
        gaps = self._gaps(np.array([message.timestamp for message in opening], np.float64))
        same = kind[1:] == kind[:-1]
        opens = gaps > SESSION_GAP
        opens[0] |= self._kind < 0
        # How many units since the session opened: a running index less its value at the last opening.
        index = np.arange(self.size, self.size + n)
        opened = np.maximum.accumulate(np.where(opens, index, self._session))
        self._kind, self._speaker, self._session = int(kind[-1]), speakers[-1], int(opened[-1])
        return {
            **{name: kind[1:] == number for number, name in enumerate(KIND_NAMES)},
            "calls": calls,
            "same_role_as_previous": same,
            "same_speaker_as_previous": same & np.fromiter(map(eq, speakers, speakers[1:]), np.bool_, n),
            "log_gap": gaps,
            "opens_session": opens,
            "session_index": index - opened,
            "history_so_far": index,
        }

    def _gaps(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Seconds since the last unit whose time is known; 0 where a time is not or runs backwards."""
        gaps = np.zeros(len(times))
        known = np.flatnonzero(np.isfinite(times))
        if len(known):
            stamps = times[known]
            before = np.concatenate([stamps[:1] if self._time is None else [self._time], stamps[:-1]])
            gaps[known] = np.maximum(0.0, stamps - before)
            self._time = float(stamps[-1])
        return gaps

    def _read_words(self, text: Text, owner: NDArray[np.intp], person: NDArray[np.bool_]) -> Columns:
        """How new, rare and telling the words are; and which earlier units had introduced them."""
        n = len(person)
        pairs = self._words.observe(text.words.hashes, owner + self.size)
        row, before = pairs.unit - self.size, pairs.before
        idf = np.log((pairs.unit + 1) / (before + 1))
        distinct = np.bincount(row, minlength=n)
        told = (idf, before == 0, before <= RARE, pairs.previous == pairs.unit - 1)
        idf_sum, unseen, rare, repeats = _sums(row, told, n)
        highest = np.zeros(n)
        np.maximum.at(highest, row, idf)
        listed, flags = lexicon_flags(pairs.token)
        lexicon = _sums(row[listed], flags >> BITS & np.uint8(1), n)
        again = np.flatnonzero((before > 0) & (before <= OFTEN))
        self._count("word", pairs.first[again])
        self._credit("unit", pairs.first[again], pairs.unit[again])
        new_runs = runs(text.folded, text.word_starts[pairs.new], text.word_lengths[pairs.new])
        self._word_score[self.size : self.size + n] = self._said.add(
            Said(row, pairs.number, 1.0 + idf, person, *new_runs)
        )
        per_word = 1.0 / np.maximum(1.0, distinct)
        return {
            "log_words": np.bincount(owner, minlength=n),
            "unseen_words": unseen,
            "unseen_share": unseen * per_word,
            "idf_sum": idf_sum,
            "idf_mean": idf_sum * per_word,
            "idf_max": highest,
            "rare_words": rare,
            "repeats_previous": repeats * per_word,
            **dict(zip(LEXICON, lexicon, strict=True)),
        }

    def _read_identifiers(self, text: Text, owner: NDArray[np.intp], field: NDArray[np.intp], n: int) -> Columns:
        """Which identifiers are new, known, and taken in calls; and which earlier units had introduced them."""
        spoken = field[text.identifiers.text] != NAME
        hashes, place = text.identifiers.hashes[spoken], text.identifiers.text[spoken]
        if not len(hashes):
            none = np.zeros(n)
            return dict.fromkeys(("identifiers_introduced", "identifiers_seen_before", "identifiers_in_calls"), none)
        ids = self._identifiers.observe(hashes, owner[place] + self.size, field[place] == CALL)
        again = ids.before > 0
        self._credit("identifier", ids.first[again], ids.unit[again])
        np.maximum.at(self._last_use[:, 0], ids.first[again], ids.unit[again] + 1)
        taken = again & ids.called
        if taken.any():
            self._credit("call", ids.first[taken], ids.unit[taken])
            np.maximum.at(self._last_use[:, 1], ids.first[taken], ids.unit[taken] + 1)
            self._count("used", ids.first[taken & (ids.calls == 1)])
            np.maximum.at(self._reuse[:, REUSE.index("one")], ids.first[taken], ids.calls[taken])
        introduced, seen, called = _sums(ids.unit - self.size, (~again, again, ids.called), n)
        return {"identifiers_introduced": introduced, "identifiers_seen_before": seen, "identifiers_in_calls": called}

    def _count(self, name: str, introducer: NDArray[np.integer]) -> None:
        np.add.at(self._reuse[:, REUSE.index(name)], introducer, 1.0)

    def _credit(self, name: str, introducer: NDArray[np.int32], unit: NDArray[np.intp]) -> None:
        """Counts, for each unit, the later units that use again what it introduced; each pair of them once."""
        pair = np.sort(introducer.astype(np.int64) << 32 | unit)
        first = np.ones(len(pair), np.bool_)
        first[1:] = pair[1:] != pair[:-1]
        self._count(name, pair[first] >> 32)

    def matrix(self, units: int | NDArray[np.intp] = 0) -> NDArray[np.float64]:
        """(rows, len(FEATURES)): features as of the newest unit, of the units from `units` on, or of these units."""
        n = self.size
        rows = np.arange(units, n) if isinstance(units, int) else units
        own = self._own[rows]
        out = np.empty((len(rows), len(FEATURES)))
        at = len(OWN)
        out[:, :at] = own
        out[:, at : at + len(PREVIOUS)] = self._own[rows[:, np.newaxis] - 1, PREVIOUS_COLUMNS]
        out[rows == 0, at : at + len(PREVIOUS)] = 0.0
        at += len(PREVIOUS)
        out[:, at : at + len(NEXT)] = self._own[np.minimum(rows[:, np.newaxis] + 1, n - 1), NEXT_COLUMNS]
        out[rows == n - 1, at : at + len(NEXT)] = 0.0
        at += len(NEXT)
        age = n - 1 - rows
        words, units_again, identifiers, calls, used, one = self._reuse[rows].T
        # Most identifiers are taken once and done with; one taken again, a session's token say, goes on being taken.
        again = np.maximum(0.0, one - 1.0)
        introduced = np.expm1(own[:, COLUMN["identifiers_introduced"]])
        last, last_call = self._last_use[rows].T
        characters, steps = (self._so_far[n] - self._so_far[rows + 1]).T
        since = (
            np.log1p(age),
            np.log1p(characters),
            age > 0,
            np.log1p(words),
            np.log1p(units_again),
            np.log1p(identifiers),
            np.log1p(calls),
            calls > 0,
            used / np.maximum(1.0, introduced),
            np.where(last > 0, np.log1p(n - last), NEVER),
            np.where(last_call > 0, np.log1p(n - last_call), NEVER),
            np.log1p(again),
            again / np.maximum(1.0, steps),
            np.log1p(np.maximum(0.0, introduced - used)),
        )
        out[:, at:] = np.array(since, np.float64).T
        return out

    @property
    def said(self) -> Said:
        """The words of every unit.

        Raises:
            TypeError: word weights were given, and so no words are kept.
        """
        if isinstance(self._said, WordScores):
            raise TypeError("features that were given word weights keep no words")
        return self._said.said

    @property
    def word_scores(self) -> NDArray[np.float64]:
        """(units,): what each unit's hashed words add to its log-odds under `word_weights`."""
        return self._word_score[: self.size]

    def _grow(self, size: int) -> None:
        if size >= len(self._own):
            room = max(size, 2 * len(self._own))
            for name in ("_own", "_word_score", "_so_far", "_reuse", "_last_use"):
                old = getattr(self, name)
                new = np.zeros((room + 1, *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                setattr(self, name, new)


def _spoken(messages: Sequence[Message]) -> list[tuple[str, int]]:
    """What the messages of a unit say, and in which field."""
    spoken: list[tuple[str, int]] = []
    for message in messages:
        spoken.append((message.text[:LONGEST], RESULT if message.kind == "tool" else PROSE))
        for call in message.calls:
            # Parameters' names come again in every call of a tool, and say nothing of what it needs.
            spoken += ((call.name, NAME), (call.values[:LONGEST], CALL))
    return spoken


def _count_characters(text: Text, owner: NDArray[np.intp], field: NDArray[np.intp]) -> Columns:
    """How long each unit is, in all, in calls and in results; and what kinds of characters it holds."""
    length = text.characters
    told = np.column_stack([text.counts, length, length * (field == CALL), length * (field == RESULT)])
    opens = np.ones(len(owner), np.bool_)
    opens[1:] = owner[1:] != owner[:-1]
    sums = np.add.reduceat(told, np.flatnonzero(opens), axis=0).T
    count = dict(zip((*COUNTS, "characters", "log_call_characters", "log_result_characters"), sums, strict=True))
    per_character = 1.0 / np.maximum(1, count["characters"])
    return count | {
        "log_characters": count["characters"],
        "digit_share": count["digits"] * per_character,
        "capital_share": count["capitals"] * per_character,
        "mark_share": count["marks"] * per_character,
        "question": np.minimum(count["questions"], 3),
        "exclamation": np.minimum(count["exclamations"], 3),
    }


def _sums(rows: NDArray[np.intp], columns: Iterable[NDArray[Any]], n: int) -> list[NDArray[Any]]:
    """Each column, one value an entry, summed by row: (n,) each."""
    return [np.bincount(rows, column, n) for column in columns]
