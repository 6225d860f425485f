"""What has been read of a chat store and chosen from it: each message is read once, however often it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sized
from typing import Any, NamedTuple

from llama_index.core.base.llms.types import ChatMessage

from llamaindex_lre.messages import to_message
from llamaindex_lre.settings import evictor_of
from lre_core import Evictor, Session, View

__all__ = ["STEPS", "Sessions"]

STEPS = 32
"""A reserve is rounded up to a multiple of this share of the budget."""


class Progress(NamedTuple):
    """A session, and how many messages it has read."""

    session: Session
    read: int


class Sessions:
    """The sessions over the messages of one chat store, one for each reserve. Safe to use from several threads.

    Every message is a moment of decision, whether or not somebody asked for a view just then. So a view follows from
    the messages and the settings alone, and asking for one never changes another. A reserve is rounded up, so that a
    prompt which differs a little from turn to turn neither chooses the history anew nor reads it again.

    A copy starts with nothing read: it belongs to another buffer, perhaps with another store.

    Attributes:
        lock: held while the store is read or written.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._settings: tuple[Any, ...] = ()
        self._evictor: Evictor | None = None
        self._reset()

    def __reduce__(self) -> tuple[Callable[[], Sessions], tuple[()]]:
        return Sessions, ()

    def evictor(self, budget: int, tokenizer: Callable[[str], Sized], settings: Mapping[str, Any]) -> Evictor:
        """The evictor of these settings; the same one until they change, for it remembers what texts cost.

        Raises:
            lre_core.InvalidSetting: a budget under 1 or a setting out of range.
            lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        """
        wanted = (budget, tokenizer, dict(settings))
        with self.lock:
            if self._evictor is None or wanted != self._settings:
                self._evictor = evictor_of(budget, settings, token_counter=lambda text: len(tokenizer(text)))
                self._settings = wanted
                self._reset()
            return self._evictor

    def at(
        self, evictor: Evictor, messages: list[ChatMessage], reserved: int, states: dict[str, dict[str, Any]]
    ) -> tuple[Session, View]:
        """The session that has read all messages, and those to send now.

        Args:
            evictor: what `evictor` gave.
            messages: the whole history as it stands in the store. Where it does not begin with what was read before
                (something was edited or removed), all is read and chosen anew. A message object that was itself written
                into is taken for unchanged; one that the store has made anew is compared.
            reserved: tokens of the budget that the prompt spends elsewhere.
            states: plain JSON, changed in place: what was decided, for a buffer that reads the same store later.
        """
        with self.lock:
            read = len(self._messages)
            if messages[:read] != self._messages:
                states.clear()
                self._reset()
                read = 0
            new = messages[read:]
            self._messages += new
            self._total += sum(evictor.message_cost(to_message(message), message) for message in new)
            reserve = 0
            if self._total + reserved > evictor.budget:
                step = -(-evictor.budget // STEPS)
                reserve = min(-(-reserved // step) * step, evictor.budget)
            return self._advance(evictor, reserve, states)

    def _reset(self) -> None:
        self._messages: list[ChatMessage] = []
        self._total = 0
        self._progress: dict[int, Progress] = {}

    def _advance(self, evictor: Evictor, reserve: int, states: dict[str, dict[str, Any]]) -> tuple[Session, View]:
        """Takes the session of a reserve through the messages it has not read yet, one by one."""
        session, read = self._progress.get(reserve) or self._resume(evictor, reserve, states)
        view = session.advance(self._messages[read:], reserve)
        self._progress[reserve] = Progress(session, len(self._messages))
        states[str(reserve)] = {"messages": len(self._messages), "state": session.state}
        return session, view

    def _resume(self, evictor: Evictor, reserve: int, states: dict[str, dict[str, Any]]) -> Progress:
        """Goes on from a state if the messages are still those it was made from, else from the first message."""
        saved = states.get(str(reserve))
        if saved is not None and saved["messages"] <= len(self._messages):
            session = evictor.session(saved["state"])
            session.append(self._messages[: saved["messages"]])
            session.view(reserve)
            if session.state == saved["state"]:
                return Progress(session, saved["messages"])
        return Progress(evictor.session(), 0)
