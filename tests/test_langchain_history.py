"""`LREChatMessageHistory` around LangChain's stores: the view shrinks, the store keeps every message once."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_histories import FileChatMessageHistory, SQLChatMessageHistory, Store, chat, problems, say
from sqlalchemy.ext.asyncio import create_async_engine

from langchain_lre import LREChatMessageHistory
from lre_core import InvalidMessage, InvalidSetting, Scorer, UnknownScorer

BUDGET = 400


def turn(n: int) -> list[BaseMessage]:
    return [HumanMessage(say(n)), AIMessage(f"Stop {n} is pretty. " * 4)]


def texts(messages: list[BaseMessage]) -> list[str]:
    return [str(message.content) for message in messages]


def sql(folder: Path) -> BaseChatMessageHistory:
    return SQLChatMessageHistory("1", connection=f"sqlite:///{folder}/chats.db")


def file(folder: Path) -> BaseChatMessageHistory:
    return FileChatMessageHistory(str(folder / "chat.json"))


@pytest.mark.parametrize("store", [sql, file, lambda _: Store()], ids=["sql", "file", "own"])
def test_langchain_10078_5053_11919_the_view_shrinks_and_the_store_keeps_all(store: Any, tmp_path: Path) -> None:
    history = LREChatMessageHistory(store(tmp_path), max_tokens=BUDGET)
    said: list[BaseMessage] = []
    for n in range(40):
        history.add_messages(turn(n))
        said += turn(n)
        assert problems(history.messages) == []
        assert history.view.tokens <= BUDGET
        assert texts(history.messages)[-2:] == texts(said)[-2:]
    assert texts(history.inner.messages) == texts(said)
    assert len(history.messages) < 30
    again = LREChatMessageHistory(store(tmp_path), max_tokens=BUDGET)
    if again.inner.messages:  # a store that outlives its process
        assert texts(again.messages) == texts(history.messages)
    history.clear()
    assert history.messages == history.inner.messages == []


def test_a_sql_store_read_and_written_asynchronously(tmp_path: Path) -> None:
    async def talk() -> tuple[list[str], list[str]]:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/chats.db")
        history = LREChatMessageHistory(SQLChatMessageHistory("1", connection=engine), max_tokens=BUDGET)
        for n in range(40):
            await history.aadd_messages(turn(n))
            assert problems(await history.aget_messages()) == []
        shown, stored = await history.aget_messages(), await history.inner.aget_messages()
        await history.aclear()
        assert await history.aget_messages() == []
        await engine.dispose()
        return texts(shown), texts(stored)

    shown, stored = asyncio.run(talk())
    assert stored == texts([message for n in range(40) for message in turn(n)])
    assert len(shown) < 30
    sync = LREChatMessageHistory(Store([message for n in range(40) for message in turn(n)]), max_tokens=BUDGET)
    assert texts(sync.messages) == shown


def test_reading_changes_nothing_and_reads_the_store_once_after_each_addition() -> None:
    store = Store()
    history = LREChatMessageHistory(store, max_tokens=BUDGET)
    for n in range(30):
        history.add_message(turn(n)[0])
        history.add_ai_message(f"Stop {n}. " * 30)
        before = store.reads
        first = history.messages
        first.append(HumanMessage("of the caller's own list"))
        assert history.messages == first[:-1]
        assert asyncio.run(history.aget_messages()) == first[:-1]
        assert store.reads == before + 1
    assert len(store.stored) == 60


def test_a_restart_and_a_history_made_for_every_request_show_the_same() -> None:
    store = Store()
    kept = LREChatMessageHistory(store, max_tokens=BUDGET)
    for n in range(40):
        LREChatMessageHistory(store, max_tokens=BUDGET).add_messages(turn(n))
        kept.refresh()
        shown = LREChatMessageHistory(store, max_tokens=BUDGET).messages
        assert texts(shown) == texts(kept.messages)
    # Nothing has been read under these settings, which say the defaults: as in a process begun anew.
    afresh = LREChatMessageHistory(store, max_tokens=BUDGET, keep_recent=5, message_overhead=3)
    assert texts(afresh.messages) == texts(kept.messages)


def test_what_another_process_adds_is_seen_with_the_next_addition_and_never_within_a_turn() -> None:
    store = Store()
    here, there = (LREChatMessageHistory(store, max_tokens=BUDGET) for _ in range(2))
    here.add_messages(turn(1))
    before = here.messages
    there.add_messages(turn(2))
    assert here.messages == before
    here.add_messages(turn(3))
    assert texts(here.messages) == texts([*turn(1), *turn(2), *turn(3)])
    there.clear()
    there.add_messages(turn(4))
    here.refresh()
    assert texts(here.messages) == texts(turn(4))


def test_what_is_added_while_the_store_is_being_read_is_not_lost() -> None:
    class Slow(Store):
        async def aget_messages(self) -> list[BaseMessage]:
            read = self.messages
            await asyncio.sleep(0)
            return read

    async def race() -> list[str]:
        history = LREChatMessageHistory(Slow(turn(1)), max_tokens=BUDGET)
        await asyncio.gather(history.aget_messages(), history.aadd_messages(turn(2)))
        return texts(await history.aget_messages())

    assert asyncio.run(race()) == texts([*turn(1), *turn(2)])


def test_case_25_messages_without_ids_and_messages_alike() -> None:
    store = Store()
    history = LREChatMessageHistory(store, max_tokens=120)
    for _ in range(50):
        history.add_messages([HumanMessage("yes"), AIMessage("done " * 10)])
        assert texts(history.messages)[-2:] == ["yes", "done " * 10]
        assert problems(history.messages) == []
    assert len(store.stored) == 100
    assert 2 < len(history.messages) < 25


@pytest.mark.parametrize("notation", ["S H AI*a,b Ta Tb AI H AI", "S H AI*a AI*b Ta Tb AI", "S H AI*1 T1 H AI H AI"])
def test_steps_added_message_by_message_stay_whole(notation: str) -> None:
    history = LREChatMessageHistory(Store(), max_tokens=140)
    for message in chat(notation, size=8):
        history.add_message(message)
        shown = history.messages
        assert isinstance(shown[0], SystemMessage)
        assert history.view.tokens <= 140 or history.view.over_budget
    assert problems(history.messages) == []


def test_a_remove_message_is_refused_and_nothing_of_the_batch_is_stored() -> None:
    store = Store()
    history = LREChatMessageHistory(store, max_tokens=BUDGET)
    batch = [HumanMessage("hi"), RemoveMessage(id="1")]
    with pytest.raises(InvalidMessage, match="RemoveMessage"):
        history.add_messages(batch)
    with pytest.raises(InvalidMessage, match="RemoveMessage"):
        asyncio.run(history.aadd_messages(batch))
    assert store.stored == []


def test_bad_settings_are_refused_when_the_history_is_made() -> None:
    with pytest.raises(InvalidSetting, match="budget is 0"):
        LREChatMessageHistory(Store(), max_tokens=0)
    with pytest.raises(UnknownScorer, match="'agnet'"):
        LREChatMessageHistory(Store(), max_tokens=100, scorer="agnet")


def test_a_scorer_trained_again_under_the_same_name_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "scorer.json"
    store = Store([message for n in range(40) for message in turn(n)])
    shown = []
    first = Scorer.from_pretrained("assistant")
    for at, scorer in enumerate((first, replace(first, weights=-first.weights))):
        scorer.save(path)
        os.utime(path, ns=(at, at))
        shown.append(texts(LREChatMessageHistory(store, max_tokens=BUDGET, scorer=str(path)).messages))
        assert shown[-1] == texts(LREChatMessageHistory(store, max_tokens=BUDGET, scorer=scorer).messages)
    assert shown[0] != shown[1]
