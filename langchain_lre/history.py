"""Learned eviction around any of LangChain's chat message histories: the store keeps everything, a prompt sees less."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Unpack

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

from langchain_lre.messages import to_message
from langchain_lre.replay import replays
from langchain_lre.settings import Settings
from lre_core import View

__all__ = ["LREChatMessageHistory"]


class LREChatMessageHistory(BaseChatMessageHistory):
    """A history that gives back the messages worth sending and stores every one.

        def history(session_id):
            store = SQLChatMessageHistory(session_id, connection="sqlite:///chats.db")
            return LREChatMessageHistory(store, max_tokens=2_048)

        chain = RunnableWithMessageHistory(prompt | model, history, ...)

    `messages` is a list of the store's messages under the budget. It changes when messages are added, never when it is
    read: `RunnableWithMessageHistory` reads it twice in a turn and takes what is longer for new. So the store is read
    once after each addition, at the first use; that also brings in what other processes have added to it since, and
    any it missed in between comes with the next addition, or with `refresh`. The view follows from what is stored and
    the settings alone: a history made anew over the same store, in this process or after a restart, has the same.

    Args:
        inner: where messages are stored: in memory, in a file, an SQL database, Redis or PostgreSQL.
        max_tokens: tokens the messages may take. The system prompt, the new question and the answer come on top.
        settings: `token_counter` and the other settings of `langchain_lre.Settings`.

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """

    def __init__(self, inner: BaseChatMessageHistory, max_tokens: int, **settings: Unpack[Settings]) -> None:
        super().__init__()
        self.inner = inner
        self._replays = replays(max_tokens, settings)
        self._view: View | None = None
        self._additions = 0
        self._lock = threading.Lock()

    @property
    def view(self) -> View:
        """What is in view and why: which messages left, their scores, what they cost."""
        view, additions = self._view, self._additions
        return view or self._show(self.inner.messages, additions)

    async def aview(self) -> View:
        """The same; the store is read through its asynchronous methods."""
        view, additions = self._view, self._additions
        return view or self._show(await self.inner.aget_messages(), additions)

    def refresh(self) -> None:
        """Has the store read again at the next use."""
        with self._lock:
            self._additions += 1
            self._view = None

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages in view; a new list each time."""
        return list(self.view.messages)

    async def aget_messages(self) -> list[BaseMessage]:
        """The messages in view; a new list each time."""
        return list((await self.aview()).messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Stores messages.

        Raises:
            lre_core.InvalidMessage: a `RemoveMessage`. Then none of them is stored.
        """
        for message in messages:
            to_message(message)
        self.inner.add_messages(messages)
        self.refresh()

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Stores messages.

        Raises:
            lre_core.InvalidMessage: a `RemoveMessage`. Then none of them is stored.
        """
        for message in messages:
            to_message(message)
        await self.inner.aadd_messages(messages)
        self.refresh()

    def clear(self) -> None:
        """Removes all messages from the store."""
        self.inner.clear()
        self.refresh()

    async def aclear(self) -> None:
        """Removes all messages from the store."""
        await self.inner.aclear()
        self.refresh()

    def _show(self, stored: Sequence[BaseMessage], additions: int) -> View:
        view = self._replays.view(list(stored))
        with self._lock:
            if additions == self._additions:  # else something was added while the store was being read
                self._view = view
        return view
