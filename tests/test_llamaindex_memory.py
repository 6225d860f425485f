"""`LREMemory` in the place of `Memory`: archived messages come back; queue, store and blocks are as they were."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import BaseMemoryBlock, InsertMethod, Memory, StaticMemoryBlock
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from llama_index.core.workflow import Context
from llamaindex_histories import (
    DEPRECATED,
    LIMIT,
    QUESTIONS,
    UNCLOSED,
    Model,
    look_up,
    put_by_speakers,
    refused,
    said,
    texts,
    through_every_awaited_way,
    through_every_way,
    tokens,
    tool_turn,
    unclosed,
    work,
)
from sqlalchemy import NullPool, select
from sqlalchemy.ext.asyncio import create_async_engine
from workflows.context.state_store import UnserializableKeyWarning

import lre_core
from llamaindex_lre import LREFunctionAgent, LREMemory
from llamaindex_lre.stored import StoredMessages

__all__ = ["unclosed"]

pytestmark = [
    DEPRECATED,
    UNCLOSED,
]


def memory(kind: type[Memory] = LREMemory, **settings: Any) -> Any:
    return kind.from_defaults(
        **{"token_limit": LIMIT, "token_flush_size": LIMIT // 10, "tokenizer_fn": str.split, **settings}
    )


def at(store: AsyncDBChatStore, session_id: str = "Mara") -> dict[str, Any]:
    return {"chat_store": store, "session_id": session_id}


def put(buffer: Memory, messages: list[ChatMessage]) -> None:
    for message in messages:
        buffer.put(message)


def archived(buffer: Memory) -> list[ChatMessage]:
    return buffer.get_all(status=MessageStatus.ARCHIVED)


class Words(BaseMemoryBlock[str]):
    """Gives so many words, can be cut to fewer, and keeps what leaves the queue."""

    size: int = 20
    received: list[str | None] = Field(default_factory=list)
    asked: list[Any] = Field(default_factory=list)

    async def _aget(self, messages: list[ChatMessage] | None = None, **kwargs: Any) -> str:
        self.asked.append((texts(messages or [])[-1:], kwargs))
        return " ".join([self.name] * self.size)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        self.received += texts(messages)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        return " ".join(content.split()[:-tokens_to_truncate]) or None


def test_all_is_shown_while_it_fits_as_the_original_shows_it() -> None:
    messages = [ChatMessage(role="system", content="Be brief."), *said(4, size=4), *tool_turn(1, calls=2)]
    ours, original = memory(token_limit=1000), memory(Memory, token_limit=1000)
    for message in messages:
        put(ours, [message])
        put(original, [message])
        assert ours.get() == original.get() == ours.get_all() == original.get_all()


def test_an_archived_message_is_shown_while_the_original_has_forgotten_it() -> None:
    needed = ChatMessage(role="user", content="Remember my booking, it is KX93J.")
    ours = memory(pin=lambda message: "KX93J" in str(message.content))
    original = memory(Memory)
    for buffer in (ours, original):
        put(buffer, [needed, *said(20)])
        assert needed in archived(buffer)
    assert ours.get()[0] == needed
    assert needed not in original.get()
    assert archived(ours) == archived(original)
    assert ours.get_all() == original.get_all()


def test_more_than_the_queue_is_shown_valid_and_within_the_limit() -> None:
    ours, original = memory(), memory(Memory)
    for turn in [said(3), tool_turn(1, calls=2), said(9)[6:], tool_turn(2), tool_turn(3, calls=3), said(14)[18:]]:
        for message in turn:
            put(ours, [message])
            put(original, [message])
        view = ours.get()
        assert refused(view) == []
        assert tokens(view) <= LIMIT
    returned = [message for message in ours.get() if message in archived(ours)]
    assert returned
    assert all(message not in original.get() for message in returned)


def test_every_way_in_and_out_is_there_sync_and_async() -> None:
    messages = said(2)[:3]
    expected = [texts(messages)] * 2 + [[]]
    assert through_every_way(memory(), messages) == expected
    assert asyncio_run(through_every_awaited_way(memory(), messages)) == expected
    assert memory(chat_history=said(1)).get() == said(1)
    assert LREMemory.class_name() == "LREMemory"


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"token_limit": 0}, ValueError, "greater than 0"),
        ({"keep_recent": -1}, ValueError, "keep_recent is -1"),
        ({"scorer": "agnet"}, lre_core.UnknownScorer, "'agnet'"),
        ({"token_limti": 5}, TypeError, "token_limti"),
    ],
)
def test_wrong_settings_are_refused_at_once(wrong: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        memory(**wrong)


# Memory blocks


@pytest.mark.parametrize("method", list(InsertMethod))
def test_blocks_stand_where_the_original_puts_them(method: InsertMethod) -> None:
    def shown(kind: type[Memory]) -> list[ChatMessage]:
        blocks = [StaticMemoryBlock(name="who", static_content=[TextBlock(text="Mara, 14 books")]), Words(name="notes")]
        buffer = memory(kind, memory_blocks=blocks, insert_method=method, token_limit=1000)
        put(buffer, [ChatMessage(role="system", content="Be brief."), *said(3)])
        messages: list[ChatMessage] = buffer.get(input="Where is it?")
        return messages

    ours = shown(LREMemory)
    assert ours == shown(Memory)
    assert "Mara, 14 books" in str(ours[0 if method is InsertMethod.SYSTEM else -2].content)


def test_what_leaves_the_queue_goes_to_the_blocks_once_and_in_order() -> None:
    received = []
    for kind in (LREMemory, Memory):
        block = Words(name="notes")
        buffer = memory(kind, memory_blocks=[block])
        put(buffer, said(20))
        buffer.get()
        received.append(block.received)
    assert received[0] == received[1]
    assert received[0] == texts(said(20))[: len(received[0])] != []


def test_blocks_are_cut_by_priority_and_the_history_keeps_its_share() -> None:
    blocks = [Words(name=name, size=60, priority=priority) for name, priority in (("a", 0), ("b", 1), ("c", 2))]
    buffer = memory(memory_blocks=blocks, chat_history_token_ratio=0.6)
    put(buffer, said(20))
    view = buffer.get()
    shown = str(view[0].content).split()
    assert shown.count("a") == 60
    assert shown.count("b") < 60
    share = tokens(view[1:])
    assert share <= LIMIT * 0.6
    assert share > LIMIT * 0.3
    assert refused(view) == []


def test_blocks_are_asked_about_the_newest_message_with_what_get_was_given() -> None:
    block = Words(name="notes")
    buffer = memory(memory_blocks=[block], session_id="Mara")
    put(buffer, said(20))
    buffer.get(input="Where is it?", limit=3)
    assert block.asked == [(["Where is it?"], {"session_id": "Mara", "limit": 3})]


def test_a_get_changes_nothing_in_what_later_gets_show() -> None:
    buffer = memory(memory_blocks=[Words(name="notes")])
    put(buffer, [ChatMessage(role="system", content="Be brief."), *said(20)])
    before, stored = buffer.get(), buffer.get_all()
    for message in buffer.get():
        message.blocks.clear()
    assert (buffer.get(), buffer.get_all()) == (before, stored)


def test_the_prefix_of_the_prompt_seldom_changes() -> None:
    buffer, changed = memory(token_limit=600), 0
    before: list[ChatMessage] = []
    for question, answer in zip(said(40, 5)[::2], said(40, 5)[1::2], strict=True):
        put(buffer, [question])
        view = buffer.get()
        changed += view[: len(before)] != before
        before = view
        put(buffer, [answer])
    assert 0 < changed < 10


# The store


def test_a_session_goes_on_in_another_process_on_the_same_database(tmp_path: Path) -> None:
    where: dict[str, Any] = {"async_database_uri": f"sqlite+aiosqlite:///{tmp_path}/chat.db", "session_id": "Mara"}
    running, other = memory(**where), memory(**where)
    for n, message in enumerate(said(20)):
        put(running if n % 3 else other, [message])
        if n % 4 == 0:
            assert running.get() == other.get() == memory(**where).get()
    assert memory(**where, chat_history=None).get_all() == said(20)
    assert memory(**{**where, "session_id": "Ines"}).get() == []


def test_only_new_messages_are_read_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    original = StoredMessages._rows

    async def rows(*args: Any) -> Any:
        found = await original(*args)
        read.append(len(found))
        return found

    monkeypatch.setattr(StoredMessages, "_rows", rows)
    buffer = memory(chat_history=said(30))
    buffer.get()
    put(buffer, said(31)[-2:])
    assert buffer.get() == buffer.get() == memory(chat_history=said(31)).get()
    # The newest message known is read again, to see that it is still there.
    assert read[:3] == [60, 3, 1]


class PlainStore(SQLAlchemyChatStore):
    """A store of which no more is known than its interface."""

    async def get_messages(self, *args: Any, **kwargs: Any) -> list[ChatMessage]:
        messages: list[ChatMessage] = await super().get_messages(*args, **kwargs)
        return messages


async def insert(store: SQLAlchemyChatStore, message: ChatMessage, before: int) -> None:
    """Adds a message at the time of an older one, as a process does whose clock is late."""
    open_session, table = await store._initialize()
    async with open_session() as session:
        time = (await session.execute(select(table.c.timestamp).where(table.c.id == before))).scalar_one()
        row = {"role": "user", "status": "active", "data": message.model_dump(mode="json")}
        await session.execute(table.insert().values(key="Mara", timestamp=time, **row))
        await session.commit()


async def replace(store: SQLAlchemyChatStore, ids: list[int], messages: list[ChatMessage]) -> None:
    for id in ids:
        await store.delete_message("Mara", id)
    if messages:
        await store.add_messages("Mara", messages)


Edit = Callable[[LREMemory, Any], object]


@pytest.mark.parametrize("kind", [SQLAlchemyChatStore, PlainStore])
@pytest.mark.parametrize(
    "edit",
    [
        lambda buffer, store: buffer.set(said(9)[4:]),
        lambda buffer, store: buffer.reset(),
        lambda buffer, store: asyncio_run(buffer.areset(status=MessageStatus.ARCHIVED)),
        # What follows happens behind its back.
        lambda buffer, store: asyncio_run(store.set_messages("Mara", said(9)[4:])),
        lambda buffer, store: asyncio_run(store.set_messages("Mara", said(30))),
        lambda buffer, store: asyncio_run(store.delete_messages("Mara")),
        lambda buffer, store: asyncio_run(store.delete_messages("Mara", status=MessageStatus.ARCHIVED)),
        lambda buffer, store: asyncio_run(store.add_messages("Mara", said(25)[-10:])),
        lambda buffer, store: asyncio_run(replace(store, [40], [])),
        lambda buffer, store: asyncio_run(replace(store, [3], [])),
        # Its id is given to the next one.
        lambda buffer, store: asyncio_run(replace(store, [40], said(20)[-2:-1])),
        lambda buffer, store: asyncio_run(replace(store, [3, 39, 40], said(23)[-3:])),
        # As many as before, and the last one reads the same.
        lambda buffer, store: asyncio_run(replace(store, [3], said(20)[-1:])),
        lambda buffer, store: asyncio_run(insert(store, said(30)[-2], before=20)),
        lambda buffer, store: setattr(buffer, "session_id", "Ines"),
        lambda buffer, store: setattr(buffer, "sql_store", type(store)("another")),
    ],
)
def test_a_history_replaced_or_cut_is_chosen_from_anew(
    edit: Edit, kind: type[SQLAlchemyChatStore], tmp_path: Path
) -> None:
    uri = f"sqlite+aiosqlite:///{tmp_path}/chat.db"
    buffer = memory(**at(kind("chats", async_database_uri=uri)))
    put(buffer, said(20))
    buffer.get()
    edit(buffer, SQLAlchemyChatStore("chats", async_database_uri=uri))
    for n in (20, 21):
        assert buffer.get() == memory(**at(buffer.sql_store, buffer.session_id)).get()
        put(buffer, said(n + 1)[-2:])


@pytest.mark.parametrize("together", ["put", "aput"])
def test_messages_put_at_the_same_time_are_all_kept_each_speakers_in_order(together: str, tmp_path: Path) -> None:
    # Each thread has a loop of its own, which its connections must not outlive.
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/chat.db", poolclass=NullPool)
    where: dict[str, Any] = {"async_engine": engine, "session_id": "Mara"}
    buffer = memory(**where)
    buffer.get()
    spoken = put_by_speakers(buffer, "abcd", 8, together)
    kept = texts(buffer.get_all())
    assert len(kept) == 32
    for speaker, said_by_speaker in spoken.items():
        assert [text for text in kept if str(text).startswith(speaker)] == said_by_speaker
    assert buffer.get() == memory(**where).get()


# Engines and agents


def test_an_engine_answers_as_with_the_original_while_all_fits_and_gets_valid_prompts_beyond() -> None:
    async def answers(kind: type[Memory], limit: int) -> tuple[list[str], Model]:
        model = Model()
        engine = SimpleChatEngine.from_defaults(memory=kind.from_defaults(token_limit=limit), llm=model.llm)
        return [str(await engine.achat(question)) for question in QUESTIONS], model

    assert asyncio_run(answers(LREMemory, 100_000))[0] == asyncio_run(answers(Memory, 100_000))[0]
    _, model = asyncio_run(answers(LREMemory, 500))
    assert [found for prompt in model.sent if (found := refused(prompt))] == []
    assert max(map(len, model.sent)) < len(QUESTIONS)


@pytest.mark.parametrize("kind", [FunctionAgent, LREFunctionAgent])
def test_an_agent_gets_valid_prompts(kind: type[FunctionAgent]) -> None:
    model = Model(calls=2)
    errands = [f"look up {n}" for n in range(8)]
    agent = kind(tools=[look_up], llm=model.llm, system_prompt="Be brief.")
    asyncio_run(work(agent, memory(), errands))
    assert [found for prompt in model.sent if (found := refused(prompt))] == []
    assert max(map(tokens, model.sent)) < 2 * LIMIT


def test_case_24_a_context_that_was_written_down_takes_the_memory_again() -> None:
    async def run(written: bool) -> list[list[ChatMessage]]:
        model, kept = Model(), memory(token_limit=500)
        agent = LREFunctionAgent(tools=[look_up], llm=model.llm, system_prompt="Be brief.", token_counter=len)
        ctx = Context(agent)
        for n in range(8):
            await agent.run(user_msg=f"look up {n}", ctx=ctx, memory=kept)
            if written:
                ctx = Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict())))
        return model.sent

    with pytest.warns(UnserializableKeyWarning, match="memory"):
        assert asyncio_run(run(True)) == asyncio_run(run(False))
