"""A session a thread: many threads share one middleware, hook or edit, and each call reads its new messages only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.config import get_config

from langchain_lre.thinking import without_stale_thinking
from lre_core import Evictor, Recalled, Session, View

__all__ = ["STATE_KEY", "Thread", "Threads", "shown"]

STATE_KEY = "lre_state"
"""Where a graph's state keeps what was decided in a thread: plain JSON, private to the graph."""

REMEMBERED = 64
"""Threads whose sessions are kept. One more costs its next call a reading of its whole history, nothing else."""


def shown(messages: Sequence[BaseMessage], view: View) -> list[BaseMessage]:
    """What the model is given for a view of these messages: see `without_stale_thinking`; with the note, if any."""
    return view.with_note(without_stale_thinking(messages, view.kept))


class Thread:
    """A history as read so far, and what of it is in view. For one caller at a time.

    Every message is a moment of decision, whether or not a view was asked for just then. So what is in view follows
    from the messages alone, and from the state and the budget where they are given.

    Args:
        evictor: that of the agent.
        state: `View.state` to go on from; without one the history is gone through from its first message on.
    """

    def __init__(self, evictor: Evictor, state: Mapping[str, Any] | None = None) -> None:
        self._evictor = evictor
        self._session: Session = evictor.session(state)
        self._resumed = state is not None
        self._messages: list[BaseMessage] = []

    def serves(self, evictor: Evictor) -> bool:
        """Whether it is that evictor's."""
        return evictor is self._evictor

    def follows(self, messages: Sequence[BaseMessage], state: Mapping[str, Any] | None) -> bool:
        """Whether these messages begin with those read so far, and the state, if given, is what was decided."""
        read = len(self._messages)
        return (
            (state is None or state == self._session.state)
            # Objects loaded anew from a checkpoint are equal; within a run they are the same, which is quick to see.
            and list(messages[:read]) == self._messages
        )

    def view(self, messages: Sequence[BaseMessage], reserved: int = 0) -> View:
        """The view of a history that begins with what was read so far; `reserved` as in `lre_core.Evictor.view`."""
        unread = list(messages[len(self._messages) :])
        if self._resumed:
            self._resumed = False
            # A state is kept with the model's answer to the view it describes: what lies before that is decided.
            answer = max((n for n, message in enumerate(unread) if isinstance(message, AIMessage)), default=0)
            self._session.append(unread[:answer])
            self._session.view(reserved)
            unread = unread[answer:]
        view = self._session.advance(unread, reserved)
        self._messages = list(messages)
        return view

    def recall(self, query: str, k: int) -> list[Recalled]:
        """What has left the view and shares words with the query; see `lre_core.Session.recall`."""
        return self._session.recall(query, k)


class Threads:
    """The threads lately seen by one middleware, hook or edit. Safe to use from several threads of the process.

    What counts is what a call is given. A session kept from an earlier call serves only a history that begins with the
    very messages it has read and, where the graph keeps state, a state equal to its own; else one is made anew. So a
    thread that is rewound, edited, forked or continued elsewhere is never answered from memory of something else.
    """

    def __init__(self) -> None:
        self._threads: OrderedDict[tuple[str | None, str | None], Thread] = OrderedDict()
        self._lock = threading.Lock()

    def view(
        self,
        evictor: Evictor,
        messages: Sequence[BaseMessage],
        state: Mapping[str, Any] | None = None,
        reserved: int = 0,
    ) -> View:
        """The messages to send now.

        Args:
            evictor: that of the agent.
            messages: the thread's whole history, oldest first.
            state: `View.state` of the call before, where the graph keeps it.
            reserved: tokens of the budget that the prompt spends elsewhere.
        """
        key = _key(messages)
        with self._lock:
            # Taken out while in use: a fork of the thread that runs at the same time makes one of its own.
            thread = self._threads.pop(key, None)
        if thread is None or not thread.serves(evictor) or not thread.follows(messages, state):
            thread = Thread(evictor, state)
        view = thread.view(messages, reserved)
        with self._lock:
            self._threads[key] = thread
            while len(self._threads) > REMEMBERED:
                self._threads.popitem(last=False)
        return view

    def recall(
        self, evictor: Evictor, messages: Sequence[BaseMessage], state: Mapping[str, Any] | None, query: str, k: int
    ) -> list[Recalled]:
        """Units of a history that are out of view and share words with the query, best first; nothing is decided.

        Args:
            evictor: makes the view anew where the session of the last call is not there any more.
            messages: the thread's whole history, oldest first.
            state: `View.state` of the last call, where the graph keeps it.
            query: words of what is looked for.
            k: how many units at most.
        """
        with self._lock:
            thread = self._threads.get(_key(messages))
        if thread is None or not thread.follows(messages, state):
            thread = Thread(evictor, state)
            thread.view(messages)
        return thread.recall(query, k)


def _key(messages: Sequence[BaseMessage]) -> tuple[str | None, str | None]:
    return _thread_id(), messages[0].id if messages else None


def _thread_id() -> str | None:
    """The thread of the graph that is running; None outside of a graph or without a checkpointer."""
    try:
        thread: str | None = get_config().get("configurable", {}).get("thread_id")
    except RuntimeError:
        return None
    return thread
