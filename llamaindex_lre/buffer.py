"""Learned eviction for chat engines and agents: `ChatMemoryBuffer` with another choice of what the model sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, Unpack

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.llms.llm import LLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.memory.types import DEFAULT_CHAT_STORE_KEY
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore

from llamaindex_lre.messages import copies_of, copy_of
from llamaindex_lre.sessions import Sessions
from llamaindex_lre.settings import NAMES, dump_settings, load_settings, take_settings
from lre_core import Evictor, InvalidSetting, Recalled, Session, Settings, View

__all__ = ["LREChatMemoryBuffer"]


class LREChatMemoryBuffer(ChatMemoryBuffer):
    """A chat memory that shows the model the messages it most likely still needs, verbatim, within a token limit.

    It takes the place of `ChatMemoryBuffer` in any chat engine or agent, on any chat store. The store keeps every
    message. Reading never changes anything: the same messages give the same view, however often one asks.

        memory = LREChatMemoryBuffer.from_defaults(token_limit=3_000)

    Edits of the store behind its back are noticed, except where a message object that lies in a `SimpleChatStore` is
    written into: put another in its place.

    Attributes:
        settings: of the `lre_core.Evictor`; see `lre_core.Settings`.
        eviction_state: what has been decided so far; plain JSON, saved with the memory.
    """

    # A workflow's Context shares what `exclude` marks between its copies of a memory, where it copies all else.
    settings: dict[str, Any] = Field(default_factory=dict, exclude=True)
    eviction_state: dict[str, dict[str, Any]] = Field(default_factory=dict, repr=False)

    _sessions: Sessions = PrivateAttr(default_factory=Sessions)

    def model_post_init(self, context: object) -> None:
        """Refuses wrong settings at once rather than in the first turn."""
        self._evictor()

    @classmethod
    def class_name(cls) -> str:
        """The name it has when serialised."""
        return "LREChatMemoryBuffer"

    @classmethod
    def from_defaults(  # type: ignore[override]
        cls,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        chat_store: BaseChatStore | None = None,
        chat_store_key: str = DEFAULT_CHAT_STORE_KEY,
        token_limit: int | None = None,
        tokenizer_fn: Callable[[str], list[Any]] | None = None,
        **settings: Unpack[Settings],
    ) -> Self:
        """Creates a memory.

        Args:
            chat_history: messages to begin with.
            llm: where `token_limit` is not given, it is three quarters of this model's context window.
            chat_store: where messages are kept; in the process by default.
            chat_store_key: whose messages these are.
            token_limit: tokens that the messages, with `get`'s `initial_token_count`, may take; 3,000 by default.
            tokenizer_fn: from text to tokens; LlamaIndex's global tokenizer by default.
            **settings: of `lre_core.Evictor` (see `lre_core.Settings`): `scorer`, `keep_recent`, `pin` and so on.

        Raises:
            ValueError: a token limit under 1, a setting out of range, or an unknown argument.
            lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        """
        plain = ChatMemoryBuffer.from_defaults(
            chat_history=None if chat_history is None else list(chat_history),
            llm=llm,
            chat_store=chat_store,
            chat_store_key=chat_store_key,
            token_limit=token_limit,
            tokenizer_fn=tokenizer_fn,
            **{name: setting for name, setting in settings.items() if name not in NAMES},
        )
        return cls(**vars(plain), settings=cls._default_settings() | settings)

    def to_dict(self, **kwargs: object) -> dict[str, Any]:
        """Everything that can be written down: messages, settings, the scorer, what was decided.

        A callable, such as a `pin`, cannot be, and a log record says so. Since a Context writes its memory down after
        every run of an agent, a pin for an agent is best in the default of a subclass's `settings`. A `tokenizer_fn` is
        not written either.
        """
        with self._sessions.lock:
            written = super().to_dict(**kwargs)
        return written | {"settings": dump_settings(self.settings, self._default_settings())}

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: object) -> Self:
        """Reads `to_dict`, also that of a `ChatMemoryBuffer`.

        Args:
            data: what `to_dict` gave.
            **kwargs: fields that take the place of those written, such as `chat_store`, or settings, such as a `pin`.

        Raises:
            lre_core.InvalidScorer: its scorer was written by a version this one cannot read.
            lre_core.InvalidSetting: the class of its chat store has not been imported, or needs more than what was
                written, such as a connection.
        """
        settings = cls._default_settings() | load_settings(data.get("settings", {})) | take_settings(kwargs)
        fields = {**data, **kwargs, "settings": settings}
        if "chat_history" in fields:
            fields["chat_store"] = SimpleChatStore(store={DEFAULT_CHAT_STORE_KEY: fields.pop("chat_history")})
        if isinstance(fields.get("chat_store"), Mapping):
            fields["chat_store"] = _load_store(dict(fields["chat_store"]))
        return cls(**fields)

    # The base class's name for it: pydantic takes one serializer a field, and this one replaces that.
    @field_serializer("chat_store")
    def serialize_courses_in_order(self, chat_store: BaseChatStore) -> dict[str, Any]:
        """The chat store as plain JSON."""
        return _dump_store(chat_store)

    def get(
        self, input: str | ChatMessage | None = None, initial_token_count: int = 0, **kwargs: object
    ) -> list[ChatMessage]:
        """The messages for the model, as copies.

        Args:
            input: the message about to be answered. Eviction does not look at it: a view that followed the question
                would change the prompt's prefix on every turn.
            initial_token_count: tokens of the limit that the prompt spends elsewhere; once not all fits, rounded up to
                a 32nd of the limit. Where it leaves nothing, what is pinned comes all the same.
            **kwargs: not used, as in the base class.
        """
        _, view = self._at(initial_token_count)
        return [copy_of(message) for message in view.messages]

    async def aget(
        self, input: str | ChatMessage | None = None, initial_token_count: int = 0, **kwargs: object
    ) -> list[ChatMessage]:
        """The messages for the model, as copies; see `get`."""
        return await asyncio.to_thread(self.get, input, initial_token_count, **kwargs)

    def recall(self, query: str, k: int = 5, initial_token_count: int = 0) -> list[Recalled]:
        """Finds again what `get` does not show; needs the `recall` extra.

        Unlike all that decides what is shown, this reads a query. It changes nothing: what it finds stays out.

        Args:
            query: words of what is looked for, in any script.
            k: how many units at most: messages, or calls with their results.
            initial_token_count: that of the `get` in question.

        Returns:
            The units that share words with the query, best first, their messages as copies.

        Raises:
            lre_core.MissingExtra: bm25s is not installed.
            lre_core.InvalidSetting: the query is not text, or k is not a whole number of 1 or more.
        """
        session, _ = self._at(initial_token_count)
        return copies_of(session.recall(query, k))

    async def arecall(self, query: str, k: int = 5, initial_token_count: int = 0) -> list[Recalled]:
        """Finds again what `get` does not show; see `recall`."""
        return await asyncio.to_thread(self.recall, query, k, initial_token_count)

    def get_all(self) -> list[ChatMessage]:
        """Every message in the store, as copies."""
        return [copy_of(message) for message in super().get_all()]

    async def aget_all(self) -> list[ChatMessage]:
        """Every message in the store, as copies."""
        return [copy_of(message) for message in await super().aget_all()]

    def put(self, message: ChatMessage) -> None:
        """Adds a message."""
        with self._sessions.lock:
            super().put(message)

    async def aput(self, message: ChatMessage) -> None:
        """Adds a message."""
        if type(self.chat_store).async_add_message is BaseChatStore.async_add_message:
            await asyncio.to_thread(self.put, message)
        else:
            await super().aput(message)

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Adds messages; those of another thread come before or after them, not between."""
        with self._sessions.lock:
            super().put_messages(messages)

    def set(self, messages: list[ChatMessage]) -> None:
        """Replaces all messages. The list stays the caller's own."""
        with self._sessions.lock:
            super().set(list(messages))

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Replaces all messages. The list stays the caller's own."""
        await super().aset(list(messages))

    def reset(self) -> None:
        """Forgets all messages and decisions."""
        with self._sessions.lock:
            super().reset()
            self.eviction_state.clear()

    async def areset(self) -> None:
        """Forgets all messages and decisions."""
        await super().areset()
        self.eviction_state.clear()

    def _at(self, initial_token_count: int) -> tuple[Session, View]:
        with self._sessions.lock:
            messages = list(super().get_all())
            return self._sessions.at(self._evictor(), messages, initial_token_count, self.eviction_state)

    def _evictor(self) -> Evictor:
        return self._sessions.evictor(self.token_limit, self.tokenizer_fn, self.settings)

    @classmethod
    def _default_settings(cls) -> dict[str, Any]:
        settings: dict[str, Any] = cls.model_fields["settings"].get_default(call_default_factory=True)
        return settings


def _dump_store(store: BaseChatStore) -> dict[str, Any]:
    """A chat store as plain JSON. `SimpleChatStore` cannot write its messages itself under pydantic 2.14."""
    if not isinstance(store, SimpleChatStore):
        return store.model_dump(mode="json") | {"class_name": store.class_name()}
    messages = {key: [message.model_dump(mode="json") for message in kept] for key, kept in store.store.items()}
    return store.model_dump(mode="json", exclude={"store"}) | {"store": messages, "class_name": store.class_name()}


def _load_store(dumped: dict[str, Any]) -> BaseChatStore:
    """A chat store of any class that has been imported; LlamaIndex's own loader knows only `SimpleChatStore`."""
    name = dumped.get("class_name")
    known: dict[str, type[BaseChatStore]] = {}
    for store in _chat_stores(BaseChatStore):
        # A subclass that keeps its parent's name does not stand in for the parent.
        known.setdefault(store.class_name(), store)
    if name not in known:
        raise InvalidSetting(
            f"no chat store {name!r} has been imported; there are {', '.join(map(repr, sorted(known)))}. Import its "
            "package first, or give the store itself: from_dict(data, chat_store=...)"
        )
    try:
        return known[name].from_dict(dumped)
    except TypeError as error:
        raise InvalidSetting(
            f"{known[name].__name__!r} cannot be made again from what was written ({error}); give the store itself: "
            "from_dict(data, chat_store=...)"
        ) from None


def _chat_stores(cls: type[Any]) -> Iterator[type[BaseChatStore]]:
    for subclass in cls.__subclasses__():
        yield subclass
        yield from _chat_stores(subclass)
