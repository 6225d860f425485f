"""Calls to a model, each of which repeats the history of the one before: only the longest of them is a history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lre_core.messages import Message

__all__ = ["Growing"]

OPEN = 64
"""Conversations that may be under way at once in a log; memory stays bounded, and one rarely waits longer."""

Item = TypeVar("Item")


@dataclass(slots=True)
class _Open(Generic[Item]):
    keys: list[str]
    item: Item


@dataclass(slots=True)
class Growing(Generic[Item]):
    """Holds back the latest call of each conversation until nothing extends it any more.

    Two calls are of one conversation if the messages of one, the system's left out, begin with those of the other.
    """

    _open: list[_Open[Item]] = field(default_factory=list)

    def add(self, messages: Sequence[Message], item: Item) -> Iterator[Item]:
        """Takes the next call; yields the conversation that has waited longest, if too many are open."""
        keys = [message.key for message in messages if message.kind != "system"]
        known = next((call for call in self._open if _is_prefix(call.keys, keys) or _is_prefix(keys, call.keys)), None)
        if known is None:
            self._open.append(_Open(keys, item))
        else:
            if len(keys) >= len(known.keys):
                known.keys, known.item = keys, item
            self._open.remove(known)
            self._open.append(known)
        if len(self._open) > OPEN:
            yield self._open.pop(0).item

    def rest(self) -> Iterator[Item]:
        """What is still held back."""
        while self._open:
            yield self._open.pop(0).item


def _is_prefix(one: Sequence[str], other: Sequence[str]) -> bool:
    return 0 < len(one) <= len(other) and one[-1] == other[len(one) - 1] and other[: len(one)] == one
