"""A line in the prompt that says how much was left out; where it stands and what it costs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lre_core.reading import Reading

__all__ = ["LARGEST", "Left", "Note", "chat_note", "place"]

LARGEST = (999_999, 999_999_999)
"""Messages and tokens left out in the longest note that room is set aside for."""


def chat_note(messages: int, tokens: int) -> dict[str, Any]:
    """The note as a chat dict. It is the user's: before the first human message anything else would be refused."""
    return {"role": "user", "content": f"[Earlier messages left out here: {messages:,} ({tokens:,} tokens)]"}


class Note(NamedTuple):
    """A message in the caller's own form, and what it costs."""

    message: Any
    tokens: int


class Left(NamedTuple):
    """What has left the view for good.

    Attributes:
        messages: how many messages.
        tokens: what they cost.
        until: index after the newest of them.
    """

    messages: int = 0
    tokens: int = 0
    until: int = 0

    def plus(self, history: Reading, leaving: Iterable[int]) -> Left:
        """With these units of the history as well."""
        messages, tokens, until = self
        for unit in leaving:
            start, stop = history.units[unit].start, history.units[unit].stop
            messages, tokens, until = messages + stop - start, tokens + history.costs[unit], max(until, stop)
        return Left(messages, tokens, until)


def place(history: Reading, kept: Sequence[int], left: Left) -> int | None:
    """Where the note goes among the messages kept: where the newest of those that left stood.

    There it moves when something leaves and at no other time, and only the end of the prompt changes with it. System
    messages stay together, so it goes behind them. Where nothing follows there is no place: it must not stand as the
    message to answer.
    """
    at = bisect_left(kept, left.until)
    while at < len(kept) and history.is_system(kept[at]):
        at += 1
    return at if at < len(kept) else None
