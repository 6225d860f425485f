"""Ours on the chat stores people run: Redis, PostgreSQL, SQLite. The same views as in the process, nothing lost."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.storage.chat_store.postgres import PostgresChatStore
from llama_index.storage.chat_store.redis import RedisChatStore
from llamaindex_histories import LIMIT, UNCLOSED, memory, refused, said, texts, tokens, tool_turn, unclosed

import lre_core
from llamaindex_lre import LREChatMemoryBuffer, LREMemory

__all__ = ["unclosed"]

pytestmark = UNCLOSED

Open = Callable[[], BaseChatStore]
tables = count()


@pytest.fixture(params=["redis", "postgresql"])
def open_store(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens the store as a process does when it starts."""
    if request.param == "redis":
        url = request.getfixturevalue("redis_url")
        yield lambda: RedisChatStore(redis_url=url)
    else:
        url = request.getfixturevalue("postgresql_url").partition("://")[2]
        table = f"chats_{next(tables)}"
        yield lambda: PostgresChatStore.from_params(
            connection_string=f"postgresql+psycopg://{url}",
            async_connection_string=f"postgresql+asyncpg://{url}",
            table_name=table,
        )


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database for `Memory`."""
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{tmp_path}/chat.db"
    return f"postgresql+asyncpg://{request.getfixturevalue('postgresql_url').partition('://')[2]}"


def turns() -> list[list[ChatMessage]]:
    called = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"n": 1}'}}
    older = [
        ChatMessage(role="user", content="look it up"),
        ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [called]}),
        ChatMessage(role="tool", content="found", additional_kwargs={"tool_call_id": "call_1"}),
    ]
    return [said(2), tool_turn(1, calls=2), older, said(9)[4:], tool_turn(2), said(14)[18:], tool_turn(3, calls=3)]


def test_a_view_is_the_same_in_every_store_and_the_store_keeps_all(open_store: Open) -> None:
    stored, simple = memory(chat_store=open_store()), memory(chat_store=SimpleChatStore())
    for turn in turns():
        for message in turn:
            stored.put(message)
            simple.put(message)
        assert stored.get() == simple.get()
        assert stored.get(initial_token_count=60) == simple.get(initial_token_count=60)
        assert refused(stored.get()) == []
        assert tokens(stored.get()) <= LIMIT
    assert len(stored.get()) < len(stored.get_all())
    assert stored.get_all() == simple.get_all() == [message for turn in turns() for message in turn]


def test_case_15_a_process_that_starts_again_goes_on_where_the_last_one_stopped(open_store: Open) -> None:
    running = memory(chat_store=SimpleChatStore())
    for turn in turns():
        restarted = memory(chat_store=open_store())
        restarted.put_messages(turn)
        running.put_messages(turn)
        assert restarted.get() == running.get()


def test_messages_are_put_and_shown_in_a_running_loop_too(open_store: Open) -> None:
    async def converse() -> list[ChatMessage]:
        buffer = memory(chat_store=open_store())
        for turn in turns():
            await buffer.aput_messages(turn)
        assert await buffer.aget_all() == [message for turn in turns() for message in turn]
        return await buffer.aget()

    simple = memory([message for turn in turns() for message in turn])
    assert asyncio.run(converse()) == simple.get()


def test_messages_put_at_the_same_time_are_all_kept_each_speakers_in_order(open_store: Open) -> None:
    buffer = memory(chat_store=open_store())
    spoken = {speaker: [f"{speaker} says {n}" for n in range(8)] for speaker in "abcd"}

    def speak(speaker: str) -> None:
        for text in spoken[speaker]:
            buffer.put(ChatMessage(role="user", content=text))
            buffer.get()

    threads = [threading.Thread(target=speak, args=(speaker,)) for speaker in spoken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = texts(buffer.get_all())
    assert len(kept) == 32
    for speaker, said_by_speaker in spoken.items():
        assert [text for text in kept if str(text).startswith(speaker)] == said_by_speaker


def test_two_people_in_one_store_do_not_see_each_other(open_store: Open) -> None:
    store = open_store()
    mara, ines = (memory(chat_store=store, chat_store_key=key) for key in ("Mara", "Ines"))
    mara.put_messages(said(12))
    ines.put_messages(tool_turn(1))
    assert ines.get() == tool_turn(1)
    ines.reset()
    assert mara.get_all() == said(12)


class Function(BaseModel):
    name: str = "look_up"
    arguments: str = "{}"


class Call(BaseModel):
    """A call as a provider's client holds it: an object, which some stores write down as they can."""

    id: str
    function: Function = Function()


def test_case_24_calls_that_are_objects_are_paired_after_they_were_stored(open_store: Open) -> None:
    buffer = memory(chat_store=open_store())
    for n in range(12):
        id = f"call_{n}"
        buffer.put_messages(
            [
                ChatMessage(role="user", content=f"look up number {n}"),
                ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [Call(id=id)]}),
                ChatMessage(role="tool", content=f"found {n}", additional_kwargs={"tool_call_id": id}),
                ChatMessage(role="assistant", content=f"number {n} is here"),
            ]
        )
        assert refused(buffer.get()) == []
    assert 4 < len(buffer.get()) < 48


def test_a_store_that_cannot_be_made_again_from_what_was_written_is_asked_for(open_store: Open) -> None:
    store = open_store()
    buffer = memory(chat_store=store)
    buffer.put_messages(said(12))
    given = LREChatMemoryBuffer.from_dict(buffer.to_dict(), chat_store=store, tokenizer_fn=str.split)
    assert given.get() == buffer.get()
    if isinstance(store, PostgresChatStore):
        with pytest.raises(lre_core.InvalidSetting, match=r"'PostgresChatStore'.*chat_store="):
            LREChatMemoryBuffer.from_dict(buffer.to_dict())


def where(database: str) -> dict[str, Any]:
    return {
        "session_id": "Mara",
        "async_database_uri": database,
        "token_limit": LIMIT,
        "token_flush_size": LIMIT // 10,
        "tokenizer_fn": str.split,
    }


def test_a_memory_on_a_database_goes_on_in_the_next_process(database: str) -> None:
    async def put(turn: list[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage]]:
        buffer = LREMemory.from_defaults(**where(database))
        await buffer.aput_messages(turn)
        return await buffer.aget(), await buffer.aget_all()

    so_far: list[ChatMessage] = []
    for turn in turns():
        so_far += turn
        shown, stored = asyncio_run(put(turn))
        assert stored == so_far
        assert refused(shown) == []
        assert tokens(shown) <= LIMIT
        assert shown == memory(so_far).get()
    assert len(shown) < len(stored)


def test_a_memory_on_a_database_sees_what_another_process_puts_and_removes(database: str) -> None:
    async def converse() -> None:
        running = LREMemory.from_defaults(**where(database))
        so_far: list[ChatMessage] = []
        for turn in turns():
            other = LREMemory.from_defaults(**where(database))
            await other.aput_messages(turn)
            so_far += turn
            assert await running.aget() == await other.aget() == memory(so_far).get()
        await other.areset(MessageStatus.ARCHIVED)
        left = await other.aget_all()
        assert 0 < len(left) < len(so_far)
        assert await running.aget() == memory(left).get()

    asyncio_run(converse())
