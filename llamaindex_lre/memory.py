"""Learned eviction for LlamaIndex's `Memory`: what it has archived comes back where it is still needed."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus

from llamaindex_lre.messages import copies_of, copy_of
from llamaindex_lre.sessions import Sessions
from llamaindex_lre.settings import take_settings
from llamaindex_lre.stored import StoredMessages
from lre_core import Evictor, Recalled, Session, View

__all__ = ["LREMemory"]


class LREMemory(Memory):
    """A `Memory` that shows the model the messages it most likely still needs, verbatim, archived ones among them.

    The store, the queue and the memory blocks work as in `Memory`: the oldest messages leave the queue, are archived
    and go to the blocks, whose priorities count as ever. What differs is the chat history that `get` gives: it is
    chosen from all messages of the session, archived or not. It may take the whole `token_limit`, or, beside memory
    blocks, `chat_history_token_ratio` of it.

        memory = LREMemory.from_defaults(session_id="mara", token_limit=8_000)

    Messages are read from the store once. Those that others add or remove behind its back are noticed; an older one
    whose text is changed in the database is not, until the memory is made again.

    Neither a `Memory` nor this one can be written down: a workflow's Context leaves it out and says so. Give it to
    every run; what it shows follows from the messages in the store alone.

    Attributes:
        settings: of the `lre_core.Evictor`; see `lre_core.Settings`.
    """

    # A workflow's Context shares what `exclude` marks between its copies of a memory, where it copies all else.
    settings: dict[str, Any] = Field(default_factory=dict, exclude=True)

    _sessions: Sessions = PrivateAttr(default_factory=Sessions)
    _states: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _stored: StoredMessages = PrivateAttr(default_factory=StoredMessages)

    def model_post_init(self, context: object) -> None:
        """Refuses wrong settings at once rather than in the first turn."""
        self._evictor()

    @classmethod
    def class_name(cls) -> str:
        """The name it has when serialised."""
        return "LREMemory"

    @classmethod
    def from_defaults(cls, *args: Any, **kwargs: Any) -> Self:
        """Creates a memory.

        Args:
            *args: as for `Memory.from_defaults`.
            **kwargs: as for `Memory.from_defaults`, and every setting of `lre_core.Evictor` (see `lre_core.Settings`).

        Raises:
            ValueError: a token limit under 1 or a setting out of range.
            TypeError: an unknown argument.
            lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        """
        settings = take_settings(kwargs)
        plain = Memory.from_defaults(*args, **kwargs)
        return cls(**vars(plain), settings=settings)

    async def aget(self, input: str | ChatMessage | None = None, **block_kwargs: Any) -> list[ChatMessage]:
        """The messages for the model, with what the memory blocks hold.

        Args:
            input: the message about to be answered; for the memory blocks. Eviction does not look at it.
            **block_kwargs: for the memory blocks.
        """
        _, view = await self._at()
        shown = [copy_of(message) for message in view.messages]
        if not self.memory_blocks:
            return shown
        # The same memory over what is in view: blocks, their priorities and their place in the prompt are its own. It
        # asks for the tokens of all that is in view on every turn; the evictor has counted most of it.
        count = self._evictor().count
        counted = {"sql_store": _Shown(shown), "tokenizer_fn": lambda text: range(count(text))}
        memory = self.model_copy(update=counted)
        return await super(LREMemory, memory).aget(input, **block_kwargs)

    def recall(self, query: str, k: int = 5) -> list[Recalled]:
        """Finds again what `get` does not show; needs the `recall` extra.

        Unlike all that decides what is shown, this reads a query. It changes nothing: what it finds stays out.

        Args:
            query: words of what is looked for, in any script.
            k: how many units at most: messages, or calls with their results.

        Returns:
            The units that share words with the query, best first, their messages as copies.

        Raises:
            lre_core.MissingExtra: bm25s is not installed.
            lre_core.InvalidSetting: the query is not text, or k is not a whole number of 1 or more.
        """
        found: list[Recalled] = asyncio_run(self.arecall(query, k))
        return found

    async def arecall(self, query: str, k: int = 5) -> list[Recalled]:
        """Finds again what `get` does not show; see `recall`."""
        session, _ = await self._at()
        return copies_of(await asyncio.to_thread(session.recall, query, k))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Adds messages."""
        if messages:  # for no messages the store would write a row of nothing, and fail (llama_index#23185)
            await super().aput_messages(messages)

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Replaces all messages."""
        await super().aset(messages)
        self._forget()

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Forgets all messages, or those of a status, and all decisions."""
        await super().areset(status)
        self._forget()

    def _forget(self) -> None:
        self._stored.forget()
        self._states.clear()

    async def _at(self) -> tuple[Session, View]:
        """The session that has read the whole history, and what it shows."""
        history = await self._stored.read(self.sql_store, self.session_id)
        blocks = self.token_limit - int(self.token_limit * self.chat_history_token_ratio) if self.memory_blocks else 0
        with self._sessions.lock:
            return self._sessions.at(self._evictor(), history, blocks, self._states)

    def _evictor(self) -> Evictor:
        return self._sessions.evictor(self.token_limit, self.tokenizer_fn, self.settings)


class _Shown:
    """The store of a memory that holds what is in view and nothing else."""

    def __init__(self, messages: list[ChatMessage]) -> None:
        self._messages = messages

    async def get_messages(self, key: str, status: MessageStatus | None = None) -> list[ChatMessage]:
        return self._messages
