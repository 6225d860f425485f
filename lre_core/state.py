"""What a session has decided, as plain JSON: with the same messages it goes on as if never stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lre_core.errors import InvalidSetting
from lre_core.messages import Message
from lre_core.units import Unit

__all__ = ["State", "digest"]

STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class State:
    """What a session has decided: plain JSON, a few bytes a stretch of kept messages.

    Attributes:
        messages: how many messages are decided.
        kept: [start, stop) stretches of them that are in view, ascending.
        digest: of those messages, to notice a history that is not the same any more.
        units: how many units they are; known once the history is read.
    """

    messages: int = 0
    kept: tuple[tuple[int, int], ...] = ()
    digest: str = ""
    units: int = 0

    @classmethod
    def of(cls, units: Sequence[Unit], messages: int, digest: str, size: int) -> State:
        """The state in which `units` are kept out of the first `messages` messages."""
        spans: list[tuple[int, int]] = []
        for unit in units:
            if spans and spans[-1][1] == unit.start:
                spans[-1] = (spans[-1][0], unit.stop)
            else:
                spans.append((unit.start, unit.stop))
        return cls(messages, tuple(spans), digest, size)

    @classmethod
    def from_json(cls, state: Mapping[str, Any] | None) -> State:
        """Reads `to_json`; None and `{}` are the state of a session that has not begun.

        Raises:
            InvalidSetting: it is of another version, damaged, or no state at all; the text says which.
        """
        if state is None:
            return cls()
        if not isinstance(state, Mapping):
            raise InvalidSetting(f"state is {type(state).__name__}; expected what View.state or Session.state gave")
        if not state:
            return cls()
        if state.get("version") != STATE_VERSION:
            raise InvalidSetting(f"state version {state.get('version')!r}; this package reads version {STATE_VERSION}")
        messages, kept, digest = (state.get(key) for key in ("messages", "kept", "digest"))
        if not isinstance(messages, int) or not _whole(messages) or not isinstance(digest, str):
            raise InvalidSetting(f"damaged state: messages is {messages!r} and digest {digest!r}; expected int and str")
        spans: list[tuple[int, int]] = []
        for span in kept if isinstance(kept, list | tuple) else [kept]:
            if not isinstance(span, list | tuple) or len(span) != 2 or not all(map(_whole, span)):
                raise InvalidSetting(f"damaged state: {span!r:.80} among what is kept; expected [start, stop]")
            if not (spans[-1][1] if spans else 0) <= span[0] < span[1] <= messages:
                raise InvalidSetting(f"damaged state: {span!r} is out of place among stretches of {messages} messages")
            spans.append((span[0], span[1]))
        return cls(messages, tuple(spans), digest)

    def to_json(self) -> dict[str, Any]:
        """Plain dict, list, str and int."""
        return {
            "version": STATE_VERSION,
            "messages": self.messages,
            "kept": [list(span) for span in self.kept],
            "digest": self.digest,
        }

    def made_from(self, messages: Sequence[Message]) -> bool:
        """Whether these are the messages it decided on, whatever follows them."""
        return len(messages) >= self.messages and digest(messages[: self.messages]) == self.digest

    def with_units(self, units: int) -> State:
        """The same, knowing how many units it covers."""
        return replace(self, units=units)


def digest(messages: Iterable[Message], before: str = "") -> str:
    """Digest of messages, chained to that of the messages before them."""
    for message in messages:
        before = hashlib.blake2b(f"{before}{message.key}".encode(), digest_size=8).hexdigest()
    return before


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
