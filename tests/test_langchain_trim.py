"""`lre_trim_messages` in the place of `trim_messages`: its signature, its Runnable, and the reports made against it."""

from __future__ import annotations

import asyncio
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import count_tokens_approximately, trim_messages
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_histories import BOOKING, Recorder, chat, problems, say

from langchain_lre import lre_trim_messages
from langchain_lre.replay import Replays
from langchain_lre.settings import evictor
from lre_core import InvalidMessage, InvalidSetting, UnknownScorer

APPROXIMATE: dict[str, Any] = {"token_counter": "approximate"}


def every_budget(history: list[BaseMessage], **settings: Any) -> list[list[BaseMessage]]:
    """What is kept at some thirty budgets, from one token to all."""
    total = count_tokens_approximately(history)
    return [
        lre_trim_messages(history, max_tokens=budget, **APPROXIMATE, **settings)
        for budget in (*range(1, total, max(1, total // 30)), total)
    ]


def test_langchain_33245_a_cut_never_starts_with_an_orphan_result() -> None:
    history = chat("S H AI*1 T1 H AI H AI", size=8)
    for settings in ({}, {"keep_recent": 0}, {"whole_turn": True}):
        for kept in every_budget(history, **settings):
            assert problems(kept) == []
            assert kept[0] is history[0]


def test_langchain_26895_and_30376_nothing_becomes_empty_or_system_only() -> None:
    assert lre_trim_messages([], max_tokens=100) == []
    large = [*chat("S H AI*1"), ToolMessage("x" * 40_000, tool_call_id="1")]
    assert lre_trim_messages(large, max_tokens=1_000) == large
    lone = [HumanMessage("x" * 40_000)]
    assert lre_trim_messages(lone, max_tokens=1_000) == lone
    # trim_messages keeps nothing of it.
    assert trim_messages(lone, max_tokens=1_000, token_counter=count_tokens_approximately) == []


@pytest.mark.parametrize("notation", ["H AI*a AI*b Ta Tb", "S H AI*a AI*b Tb Ta AI H AI"])
def test_langchain_38352_two_calls_before_their_results_stand_or_fall_together(notation: str) -> None:
    for kept in every_budget(chat(notation)):
        ids = [message.tool_call_id for message in kept if isinstance(message, ToolMessage)]
        assert sorted(ids) in ([], ["a", "b"])
        assert problems(kept) == []


def test_langchain_34282_ten_parallel_calls_are_not_torn() -> None:
    ids = [f"call_{n}" for n in range(10)]
    history = chat(f"H AI*{','.join(ids)} {' '.join(f'T{id}' for id in ids)} AI H AI")
    for kept in [*every_budget(history, keep_recent=6), *every_budget(history, keep_recent=1)]:
        assert sum(isinstance(message, ToolMessage) for message in kept) in (0, 10)
        assert problems(kept) == []


def test_langmem_126_a_parallel_pair_is_not_cut_after_its_first_result() -> None:
    for kept in every_budget(chat("H AI*a,b Ta Tb AI H AI", size=12)):
        assert sum(isinstance(message, ToolMessage) for message in kept) in (0, 2)


def test_langchain_39261_a_long_turn_of_large_results_has_its_human_message() -> None:
    history = chat("H AI*1 T1 AI*2 T2 AI*3 T3 AI*4 T4 AI*5 T5 AI*6 T6", size=60)
    for kept in every_budget(history):
        assert kept[0] is history[0]
        assert problems(kept) == []


@pytest.mark.parametrize("system", [SystemMessage("Be brief."), ChatMessage(content="Be brief.", role="developer")])
def test_langchain_33856_the_system_message_at_the_start_stays(system: BaseMessage) -> None:
    history = [system, *chat("H AI H AI*a Ta AI H AI H AI", size=12)]
    for kept in [*every_budget(history), *every_budget(history, keep_recent=0)]:
        assert kept[0] is system
        assert len(kept) > 1


@pytest.mark.parametrize("notation", ["S H AI H", "S H AI*a Ta H AI*b Tb", "H AI H AI*a Ta AI*b Tb", "H H H"])
def test_langmem_77_and_111_the_newest_human_message_is_never_swallowed(notation: str) -> None:
    history = chat(notation, size=30)
    newest = [message for message in history if isinstance(message, HumanMessage)][-1]
    assert all(any(message is newest for message in kept) for kept in every_budget(history))


def test_case_25_messages_alike_are_told_apart_by_their_place_and_an_id_may_come_twice() -> None:
    same = HumanMessage("yes", id="1")
    history = [same, AIMessage("14 " * 40, id="1"), same, AIMessage("ordered " * 40), same, AIMessage("done"), same]
    for kept in every_budget(history):
        assert kept[-1] is same
        assert problems(kept) == []


def test_promises_1_and_2_the_callers_own_objects_within_budget() -> None:
    history = chat("S" + " H AI" * 60, size=20)
    for given in (history, [message.model_copy() for message in history]):
        before = [message.model_copy(deep=True) for message in given]
        kept = lre_trim_messages(given, max_tokens=600, **APPROXIMATE)
        own = {id(message) for message in given}
        assert all(id(message) in own for message in kept)
        assert 300 < count_tokens_approximately(kept) <= 600
        assert given == before


def test_promise_5_the_beginning_mostly_stays_and_what_has_left_stays_out() -> None:
    history = chat("S" + " H AI" * 150, size=20)
    views = [lre_trim_messages(history[:stop], max_tokens=1_500) for stop in range(2, len(history), 2)]
    changed = 0
    for before, after in itertools.pairwise(views):
        changed += after[: len(before)] != before
        known = {id(message) for message in before}
        returned = [message for message in after[:-2] if id(message) not in known]
        assert returned == []
    assert 0 < changed < len(views) / 2


def test_the_result_follows_from_the_messages_alone() -> None:
    history = chat("S" + " H AI*1 T1 AI" * 50, size=12)
    grown = [lre_trim_messages(history[:stop], max_tokens=400) for stop in range(2, len(history) + 1)]
    for stop in range(2, len(history) + 1, 7):
        afresh = Replays(evictor(400)).view(history[:stop]).messages
        assert afresh == grown[stop - 2] == lre_trim_messages(history[:stop], max_tokens=400)
    assert len(grown[-1]) < 60


def test_one_history_read_by_several_threads_gives_one_result() -> None:
    history = chat("S" + " H AI" * 100, size=12)
    expected = Replays(evictor(500)).view(history).messages
    trimmer = lre_trim_messages(max_tokens=500, keep_recent=5)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(trimmer.invoke, [history[: 160 + n] for n in range(40)] + [history] * 8))
    assert results[-8:] == [expected] * 8
    assert results[0] == Replays(evictor(500)).view(history[:160]).messages


def test_it_takes_what_trim_messages_takes_and_is_a_runnable_without_messages() -> None:
    history = chat("S" + " H AI" * 20, size=10)
    trimmer = lre_trim_messages(
        max_tokens=300, strategy="last", token_counter=len, allow_partial=False, include_system=True, start_on="human"
    )
    direct = lre_trim_messages(history, max_tokens=300, token_counter=len, start_on=[HumanMessage, "system"])
    assert trimmer.invoke(history) == direct == history
    small = lre_trim_messages(max_tokens=100, **APPROXIMATE)
    expected = lre_trim_messages(history, max_tokens=100, **APPROXIMATE)
    assert small.invoke(history) == asyncio.run(small.ainvoke(history)) == small.batch([history])[0] == expected
    assert 1 < len(expected) < len(history)


def test_it_stands_in_a_chain_between_prompt_and_model() -> None:
    model = Recorder()
    prompt = ChatPromptTemplate([("system", "You plan trips."), MessagesPlaceholder("history"), ("human", "{input}")])
    chain = prompt | lre_trim_messages(max_tokens=800) | model
    history: list[BaseMessage] = []
    for n in range(1, 61):
        answer = chain.invoke({"history": history, "input": say(n)})
        history += [HumanMessage(say(n)), answer]
    for shown in model.prompts:
        assert problems(shown) == []
        assert shown[0].content == "You plan trips."
    assert len(model.prompts[-1]) < 60
    assert any(BOOKING in str(message.content) for message in model.prompts[-1])


def test_dicts_tuples_and_prompts_are_taken_as_trim_messages_takes_them() -> None:
    given: list[Any] = [("system", "Be brief."), {"role": "user", "content": "hi"}, ("ai", "hello"), "how are you?"]
    kept = lre_trim_messages(given, max_tokens=1_000)
    assert [message.type for message in kept] == ["system", "human", "ai", "human"]
    value = ChatPromptTemplate([("system", "Be brief."), ("human", "hi")]).invoke({})
    assert [message.type for message in lre_trim_messages(value, max_tokens=1_000)] == ["system", "human"]


def test_end_on_drops_what_comes_after() -> None:
    history = chat("S H AI H AI")
    assert lre_trim_messages(history, max_tokens=1_000, end_on="human") == history[:4]
    assert lre_trim_messages(history, max_tokens=1_000, end_on=(SystemMessage, "tool")) == history[:1]
    assert len(history) == 5


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"strategy": "first"}, "strategy is 'first'"),
        ({"allow_partial": True}, "allow_partial is true"),
        ({"include_system": False}, "include_system is false"),
        ({"start_on": "ai"}, "start_on is 'ai'"),
        ({"start_on": [AIMessage, "tool"]}, "start_on is"),
        ({"max_tokens": 0}, "budget is 0"),
    ],
)
def test_what_cannot_be_honoured_is_refused(option: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"max_tokens": 100, **option}
    for messages in (None, chat("H AI")):
        with pytest.raises(InvalidSetting, match=message):
            lre_trim_messages(messages, **given)


def test_an_unknown_scorer_and_a_remove_message_are_refused() -> None:
    with pytest.raises(UnknownScorer, match="'agnet'"):
        lre_trim_messages(max_tokens=100, scorer="agnet")
    with pytest.raises(InvalidMessage, match="RemoveMessage"):
        lre_trim_messages([*chat("H AI"), RemoveMessage(id="1")], max_tokens=100)
