"""Labels without annotation: what a history's later part turned out to need."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lre_core.matching import Match, Turns, words_of
from lre_core.messages import ChatMessage, Message, as_messages
from lre_core.units import Unit, group_from

__all__ = ["answer_overlap", "from_log", "identifier_reuse", "identifiers", "matched_turns", "moments"]

IDENTIFIER = re.compile(r"[\w\-.@:/]*\d[\w\-.@:/]*|\b[A-Z]{5,}\b|[^\W_]+_\w+")
SMALL_NUMBER = re.compile(r"\d{1,3}(\.\d+)?")
CUTS = 4
ANSWER_WEIGHT = 2.0
"""How much more a word of the answer counts than one of the question."""
CLEAR = 6.0
"""Standard deviations by which a turn's best match is ahead of the others where it is no chance match."""
RECENT = 5


def identifiers(text: str) -> set[str]:
    """What in a text looks like a code somebody may have to repeat: ids, tokens, dates, long numbers, addresses.

    Words alone, short numbers and anything under four characters do not count.
    """
    found = (match.strip(".:-/") for match in IDENTIFIER.findall(text))
    return {word for word in found if len(word) >= 4 and not SMALL_NUMBER.fullmatch(word)}


def moments(messages: Sequence[ChatMessage], cuts: int = CUTS) -> list[tuple[list[ChatMessage], NDArray[np.int64]]]:
    """Cuts a run where decisions fall, and labels each prefix by what the rest of the run turned out to need.

    A unit before the cut is needed if it introduced an identifier that a call from the cut on takes as an argument.
    Cutting at several points shows the scorer every unit at the ages it will be asked about, and never calls a unit
    unneeded only because the run ended soon after it.

    Args:
        messages: a whole run, oldest first.
        cuts: at how many points to cut it at most.

    Returns:
        (prefix, labels) pairs, shortest prefix first: the messages before a unit that calls tools, and one 0 or 1 for
        each of their units. A run without calls gives none.

    Raises:
        InvalidMessage: a message that cannot be read.
    """
    read = as_messages(messages)
    units = group_from(read, 0)
    introduced, used = _introduced(read, units), _arguments(read, units)
    decisions = [t for t in range(2, len(units)) if used[t] is not None]
    result: list[tuple[list[ChatMessage], NDArray[np.int64]]] = []
    for cut in _spread(decisions, cuts):
        later: set[str] = set().union(*(values for values in used[cut:] if values))
        labels = np.array([bool(new & later) for new in introduced[:cut]], np.int64)
        result.append((list(messages[: units[cut].start]), labels))
    return result


def identifier_reuse(messages: Sequence[ChatMessage], min_reuse: int = 3) -> NDArray[np.int64]:
    """The paper's rule over a whole run: an identifier the unit introduced stands in enough later steps.

    It sees the whole run, so it suits scorers that know nothing of reuse; for this package's, use `moments`.

    Args:
        messages: a whole run, oldest first.
        min_reuse: in how many later units one identifier must stand.

    Returns:
        (units,) 0 or 1.

    Source: arXiv 2606.20954, labels for agents.
    """
    read = as_messages(messages)
    units = group_from(read, 0)
    introduced = _introduced(read, units)
    holds = [identifiers(text) for text in _texts(read, units)]
    later = Counter[str]()
    labels = np.zeros(len(units), np.int64)
    for index in reversed(range(len(units))):
        labels[index] = any(later[word] >= min_reuse for word in introduced[index])
        later.update(holds[index])
    return labels


def answer_overlap(
    messages: Sequence[ChatMessage], questions: Sequence[Mapping[str, Any]], min_share: float = 0.2
) -> NDArray[np.int64]:
    """Labels the turns that later answers were taken from.

    Each answer, with its question, is matched to the one turn that shares most with it. The paper calls every turn
    needed that covers 40 % of an answer's words, which rewards long turns and common words.

    Args:
        messages: the history, oldest first.
        questions: mappings with `question` and `answer`; `matched_turns` shows what each was matched to.
        min_share: share of the question's and answer's weight that the best turn must cover.

    Returns:
        (units,) 0 or 1.
    """
    labels = np.zeros(len(group_from(as_messages(messages), 0)), np.int64)
    for match in matched_turns(messages, questions):
        if match is not None and match.share >= min_share:
            labels[match.unit] = 1
    return labels


def matched_turns(messages: Sequence[ChatMessage], questions: Sequence[Mapping[str, Any]]) -> list[Match | None]:
    """For every question with its answer the unit that matches best, None where no unit shares a word.

    Words and their first letters weigh by how rare they are in this history, those of the answer twice, and long turns
    are discounted; see `lre_core.matching`. A system message is in view anyway, and is matched to nothing.

    Args:
        messages: the history, oldest first.
        questions: mappings with `question` and `answer`.
    """
    read = as_messages(messages)
    units = group_from(read, 0)
    turns = Turns(_words(read, units), [unit.role for unit in units])
    matches = []
    for item in questions:
        asked, answered = words_of([str(item.get(key, "")) for key in ("question", "answer")])
        matches.append(turns.best(dict.fromkeys(asked, 1.0) | dict.fromkeys(answered, ANSWER_WEIGHT)))
    return matches


def from_log(messages: Sequence[ChatMessage], cuts: int = CUTS) -> list[tuple[list[ChatMessage], NDArray[np.int64]]]:
    """Labels from a plain log, without questions: what its later turns turned out to need.

    A run with tool calls is cut by `moments`. A chat is cut at human turns. What a later human turn and the reply to it
    say that was not said in the units right before them may have been taken from further back: the older unit that
    matches it best was needed, if no other does nearly as well.

    Args:
        messages: a whole history, oldest first.
        cuts: at how many points to cut it at most.

    Returns:
        (prefix, labels) pairs, shortest prefix first.
    """
    read = as_messages(messages)
    units = group_from(read, 0)
    if any(unit.kind == "step" for unit in units):
        return moments(messages, cuts)
    answered = [index for index, unit in enumerate(units[:-1]) if unit.role == "human" and index > RECENT]
    words, roles = _words(read, units), [unit.role for unit in units]
    taken_up = {}
    for human in answered:
        near = set().union(*words[human - RECENT : human])
        taken_up[human] = {word: 1.0 for said in words[human : human + 2] for word in said if word not in near}
    pairs: list[tuple[list[ChatMessage], NDArray[np.int64]]] = []
    # Away from both ends: before the first nearly everything is needed, after the last nearly nothing.
    for cut in sorted({answered[int((k + 0.5) / cuts * len(answered))] for k in range(cuts if answered else 0)}):
        turns, labels = Turns(words[:cut], roles[:cut]), np.zeros(cut, np.int64)
        for match in (turns.best(text) for human, text in taken_up.items() if human >= cut):
            if match is not None and match.lead >= CLEAR:
                labels[match.unit] = 1
        pairs.append((list(messages[: units[cut].start]), labels))
    return pairs


def _spread(points: Sequence[int], count: int) -> list[int]:
    """At most `count` of the points, evenly from the first to the last."""
    if not points:
        return []
    return sorted({points[round(at)] for at in np.linspace(0, len(points) - 1, count)})


def _texts(messages: Sequence[Message], units: Sequence[Unit]) -> Iterator[str]:
    for unit in units:
        parts = []
        for message in messages[unit.start : unit.stop]:
            parts += [message.text, *(call.values for call in message.calls)]
        yield " ".join(parts)


def _words(messages: Sequence[Message], units: Sequence[Unit]) -> list[list[int]]:
    """What each unit says, its speaker's name among it, as `lre_core.matching` reads it; a system message nothing."""
    texts = zip(units, _texts(messages, units), strict=True)
    return words_of(
        ["" if unit.role == "system" else f"{messages[unit.start].name or ''} {text}" for unit, text in texts]
    )


def _introduced(messages: Sequence[Message], units: Sequence[Unit]) -> list[set[str]]:
    """For each unit, the identifiers that stand there first; a system message is in view anyway and introduces none."""
    seen: set[str] = set()
    introduced: list[set[str]] = []
    for unit, text in zip(units, _texts(messages, units), strict=True):
        found = identifiers(text)
        introduced.append(found - seen if unit.role != "system" else set())
        seen |= found
    return introduced


def _arguments(messages: Sequence[Message], units: Sequence[Unit]) -> list[set[str] | None]:
    """For each unit, the identifiers among the values its calls take; None for a unit without calls."""
    result: list[set[str] | None] = []
    for unit in units:
        calls = [call for message in messages[unit.start : unit.stop] for call in message.calls]
        result.append(identifiers(" ".join(call.values for call in calls)) if calls else None)
    return result
