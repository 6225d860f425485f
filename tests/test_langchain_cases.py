"""Public bug reports against LangChain's and LangGraph's trimming, on real agent loops: middleware, hook and edit.

Every model here refuses what a provider would refuse (`agents.refusals`), so that an invalid prompt fails the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from agents import Scripted, call, fetch, look, react_agent, rounds, shaped, stored, texts, tokens
from langchain.agents import create_agent
from langchain.agents.middleware import ContextEditingMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_lre import LREEdit, LREMiddleware, lre_pre_model_hook

THREAD: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 200}
Maker = Callable[..., Any]


def by_middleware(model: Scripted, tools: Sequence[BaseTool], max_tokens: int, **settings: Any) -> Any:
    middleware = LREMiddleware(max_tokens, **settings)
    return create_agent(model, tools, middleware=[middleware], checkpointer=InMemorySaver())


def by_edit(model: Scripted, tools: Sequence[BaseTool], max_tokens: int, **settings: Any) -> Any:
    middleware = ContextEditingMiddleware(edits=[LREEdit(max_tokens, **settings)])
    return create_agent(model, tools, middleware=[middleware], checkpointer=InMemorySaver())


def by_hook(model: Scripted, tools: Sequence[BaseTool], max_tokens: int, **settings: Any) -> Any:
    return react_agent(model, tools, lre_pre_model_hook(max_tokens, **settings), InMemorySaver())


every_adapter = pytest.mark.parametrize("make", [by_middleware, by_edit, by_hook])


def run(graph: Any, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return list(stored(graph.invoke({"messages": list(messages)}, THREAD)))


@every_adapter
def test_langchain_33245_and_38352_histories_handed_over_are_cut_where_a_provider_allows_it(make: Maker) -> None:
    for notation in ("S H AI*1 T1 H AI H AI H", "H AI*a AI*b Ta Tb AI H", "H AI*a,b Tb Ta AI H AI H"):
        lengths = set()
        for budget in range(20, 220, 25):
            model = Scripted(script=iter([AIMessage("Done.")]))
            run(make(model, [], budget, keep_recent=1), shaped(notation))
            lengths.add(len(model.prompts[0]))
        assert len(lengths) > 1


@every_adapter
def test_langchain_26895_a_lone_question_larger_than_the_budget_is_asked(make: Maker) -> None:
    model = Scripted(script=iter([AIMessage("Done.")]))
    question = HumanMessage("word " * 2_000)
    run(make(model, [], 100), [question])
    assert texts(model.prompts[0]) == texts([question])


@every_adapter
def test_langchain_26895_a_result_larger_than_the_budget_is_shown_to_the_model(make: Maker) -> None:
    script = iter([call(fetch, "a", size=8_000), AIMessage("Done.")])
    model = Scripted(script=script)
    run(make(model, [fetch], 1_000), [SystemMessage("Be brief."), HumanMessage("Fetch the page.")])
    # Left out, the model would only fetch it again.
    assert [message.type for message in model.prompts[1]] == ["system", "human", "ai", "tool"]


@every_adapter
def test_langchain_34282_ten_parallel_calls_are_not_torn(make: Maker) -> None:
    def ten(n: int) -> AIMessage:
        calls = [{"name": "look", "args": {"shelf": k}, "id": f"call_{n}_{k}"} for k in range(10)]
        return AIMessage("", tool_calls=calls)

    model = Scripted(script=iter([ten(1), ten(2), ten(3), AIMessage("Done.")]))
    run(make(model, [look], 1_000, keep_recent=1), [HumanMessage("Look at all shelves, three times.")])
    results = [sum(isinstance(message, ToolMessage) for message in prompt) for prompt in model.prompts]
    assert results == [0, 10, 10, 10]


@every_adapter
def test_langchain_39261_a_run_of_large_results_keeps_its_question(make: Maker) -> None:
    script = [call(fetch, f"call_{n}", size=400) for n in range(6)]
    model = Scripted(script=iter([*script, AIMessage("Done.")]))
    question = HumanMessage("Fetch six pages.")
    run(make(model, [fetch], 1_000), [question])
    for prompt in model.prompts:
        assert texts(prompt)[0] == ("human", "Fetch six pages.")
        assert tokens(prompt) <= 1_000
    assert len(model.prompts[-1]) < 13


@every_adapter
def test_langchain_33856_the_system_message_of_the_history_stays(make: Maker) -> None:
    model = Scripted(script=rounds(steps=5))
    graph = make(model, [look], 600)
    run(graph, [SystemMessage("Be brief."), HumanMessage("Look.")])
    for n in range(3):
        run(graph, [HumanMessage(f"Look again, {n}.")])
    for prompt in model.prompts:
        assert texts(prompt)[0] == ("system", "Be brief.")
    assert len(model.prompts[-1]) < 20


@every_adapter
def test_langmem_126_a_parallel_pair_is_not_cut_after_its_first_result(make: Maker) -> None:
    def pair(n: int) -> AIMessage:
        calls = [{"name": "look", "args": {"shelf": k}, "id": f"call_{n}_{k}"} for k in (1, 2)]
        return AIMessage("", tool_calls=calls)

    for budget in range(100, 500, 50):
        model = Scripted(script=iter([*map(pair, range(6)), AIMessage("Done.")]))
        run(make(model, [look], budget, keep_recent=2), [HumanMessage("Look twice, six times.")])
        for prompt in model.prompts:
            assert sum(isinstance(message, ToolMessage) for message in prompt) % 2 == 0


@every_adapter
def test_langmem_77_and_111_the_newest_question_is_never_swallowed(make: Maker) -> None:
    model = Scripted(script=rounds(steps=4))
    graph = make(model, [look], 300)
    for n in range(4):
        run(graph, [HumanMessage(f"Question {n}: what is on the shelves?")])
        for prompt in model.prompts[-5:]:
            newest = [message.content for message in prompt if isinstance(message, HumanMessage)][-1]
            assert newest == f"Question {n}: what is on the shelves?"


@every_adapter
def test_langchain_37815_what_has_left_stays_out_and_nothing_is_decided_twice(make: Maker) -> None:
    model = Scripted(script=rounds(steps=6))
    graph = make(model, [look], 900)
    gone: set[str] = set()
    for n in range(5):
        kept = run(graph, [HumanMessage(f"Look, {n}.")])
        ids = [str(message.id) for message in kept]
        for prompt in model.prompts[-7:]:
            shown = {str(message.id) for message in prompt}
            assert not gone & shown
            last = ids.index(str(prompt[-1].id))
            gone |= set(ids[:last]) - shown
    assert len(gone) > 30


@every_adapter
def test_case_25_call_ids_used_again_and_equal_messages_are_told_apart_by_their_place(make: Maker) -> None:
    script = [*[call(look, "call_0", shelf=1)] * 8, AIMessage("Done.")] * 3
    model = Scripted(script=iter([message.model_copy() for message in script]))
    graph = make(model, [look], 500)
    for _ in range(3):
        kept = run(graph, [HumanMessage("yes")])
    assert len(kept) == 3 * 18
    assert all(tokens(prompt) <= 500 for prompt in model.prompts)
    assert len(model.prompts[-1]) < 18


def test_case_25_an_edit_takes_messages_without_ids_and_the_same_one_twice() -> None:
    yes = HumanMessage("yes")
    messages = [yes, AIMessage("14 boxes " * 40), yes, AIMessage("ordered " * 40), yes, yes, AIMessage("done"), yes]
    edit = LREEdit(120, keep_recent=2)
    for _ in range(2):
        edited: list[Any] = list(messages)
        edit.apply(edited, count_tokens=count_tokens_approximately)
        assert edited[-1] is yes
        assert edited[0] is yes
        assert tokens(edited) <= 120
        assert len(edited) < len(messages)


@every_adapter
def test_langgraph_8925_the_model_is_called_with_something_in_view_on_every_call(make: Maker) -> None:
    model = Scripted(script=rounds(steps=3))
    graph = make(model, [look], 1)  # nothing but the pinned fits
    for n in range(3):
        asyncio.run(graph.ainvoke({"messages": [HumanMessage(f"Look, {n}.")]}, THREAD))
    assert len(model.prompts) == 12
    for prompt in model.prompts:
        assert 1 <= len(prompt) <= 3


@every_adapter
def test_called_asynchronously_the_model_sees_the_same(make: Maker) -> None:
    async def ask(graph: Any, n: int) -> None:
        await graph.ainvoke({"messages": [HumanMessage(f"Look, {n}.")]}, THREAD)

    prompts = []
    for asynchronous in (True, False):
        model = Scripted(script=rounds(steps=6))
        graph = make(model, [look], 900)
        for n in range(3):
            if asynchronous:
                asyncio.run(ask(graph, n))
            else:
                run(graph, [HumanMessage(f"Look, {n}.")])
        prompts.append([texts(prompt) for prompt in model.prompts])
    assert prompts[0] == prompts[1]
    assert len(prompts[0][-1]) < 30


@every_adapter
def test_two_threads_of_one_graph_share_nothing(make: Maker) -> None:
    def turn(graph: Any, thread: str, n: int) -> list[list[tuple[str, str]]]:
        graph.invoke({"messages": [HumanMessage(f"{thread}: look, {n}.")]}, {"configurable": {"thread_id": thread}})
        prompts = [texts(prompt) for prompt in model.prompts]
        model.prompts.clear()
        return prompts

    alone = []
    for thread in ("1", "2"):
        model = Scripted(script=rounds(steps=6))
        graph = make(model, [look], 900)
        alone.append([turn(graph, thread, n) for n in range(4)])
    model = Scripted(script=rounds(steps=6))
    graph = make(model, [look], 900)
    scripts = {thread: rounds(steps=6) for thread in ("1", "2")}
    together: dict[str, list[Any]] = {"1": [], "2": []}
    for n in range(4):
        for thread in ("1", "2"):
            model.script = scripts[thread]
            together[thread].append(turn(graph, thread, n))
    assert list(together.values()) == alone
    assert len(alone[0][-1][-1]) < 30, "nothing was evicted"


def test_an_empty_history_is_an_empty_edit() -> None:
    messages: list[Any] = []
    LREEdit(100).apply(messages, count_tokens=count_tokens_approximately)
    assert messages == []
    assert lre_pre_model_hook(100)({"messages": []})["llm_input_messages"] == []


def test_an_edit_changes_the_list_and_no_message_of_it() -> None:
    messages = shaped("S H AI*1 T1 AI H AI H AI H")
    before = [message.model_copy(deep=True) for message in messages]
    edited: list[Any] = list(messages)
    LREEdit(80, keep_recent=1).apply(edited, count_tokens=count_tokens_approximately)
    assert messages == before
    assert 1 < len(edited) < len(messages)
    assert all(any(message is own for own in messages) for message in edited)


@every_adapter
def test_a_note_says_what_was_left_out_and_costs_its_tokens(make: Maker) -> None:
    model = Scripted(script=rounds(steps=6))
    graph = make(model, [look], 900, note=True)
    for n in range(3):
        kept = run(graph, [HumanMessage(f"Look, {n}.")])
    assert not any("left out" in str(message.content) for message in kept)
    notes = [[text for _, text in texts(prompt) if "left out here" in text] for prompt in model.prompts]
    assert notes[0] == []
    assert all(len(note) <= 1 for note in notes)
    assert sum(map(len, notes)) > 5
    assert all(tokens(prompt) <= 900 for prompt in model.prompts)


@every_adapter
def test_steps_of_tools_to_keep_stay_and_of_tools_to_exclude_go(make: Maker) -> None:
    script = [call(fetch, "f", size=3), *(call(look, f"call_{n}", shelf=n) for n in range(9)), AIMessage("Done.")]
    for settings, stays in (({"keep_tools": ["fetch"]}, True), ({"exclude_tools": ["fetch"]}, False)):
        model = Scripted(script=iter([message.model_copy() for message in script]))
        run(make(model, [look, fetch], 700, **settings), [HumanMessage("Fetch, then look nine times.")])
        assert "word word word" in str(model.prompts[1])
        assert all(("word word word" in str(prompt)) == stays for prompt in model.prompts[2:])
