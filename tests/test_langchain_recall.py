"""The recall tool in an agent loop: the model finds again, word for word, what has left its view."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any

import pytest
from agents import Scripted, call, fetch, look, rounds, stored, tokens
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_lre import LREMiddleware
from lre_core import MissingExtra

BUDGET = 1_200
THREAD: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 100}
SECRET = "The alarm of the north gate is switched off with the word bergamot."
TOLD = f"{SECRET} {'You may want to know that it was put there long ago. ' * 16}"
"""The secret in a message that is the first to leave: it is long."""


def asking(query: str, id: str = "r") -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "recall", "args": {"query": query}, "id": id}])


def run(script: list[AIMessage], *questions: str, budget: float = BUDGET, **fields: Any) -> tuple[Scripted, list[Any]]:
    model = Scripted(script=iter(script), **fields)
    middleware = LREMiddleware(budget, recall=True, keep_recent=1, scorer="agent")
    graph = create_agent(model, [look, fetch], middleware=[middleware], checkpointer=InMemorySaver())
    for question in questions:
        result: dict[str, Any] = graph.invoke({"messages": [HumanMessage(question)]}, THREAD)
    return model, stored(result)


def filler(n: int) -> list[AIMessage]:
    return [*(call(look, f"call_{n}_{k}", shelf=k) for k in range(6)), AIMessage("Done.")]


def answers(messages: list[Any]) -> list[str]:
    return [str(m.content) for m in messages if isinstance(m, ToolMessage) and m.name == "recall"]


@pytest.mark.parametrize("budget", [BUDGET, 0.5])
def test_what_has_left_is_found_word_for_word(budget: float) -> None:
    script = [AIMessage(TOLD), *filler(1), *filler(2), asking("bergamot alarm")]
    model, kept = run(
        [*script, AIMessage("It is bergamot.")],
        "What is the alarm's word?",
        "Look around.",
        "And again.",
        "What was the word?",
        budget=budget,
        profile={"max_input_tokens": 2 * BUDGET},
    )
    before, after = model.prompts[-2:]
    assert SECRET not in str(before)
    assert SECRET in str(after)
    (found,) = answers(kept)
    assert TOLD in found
    assert "bx_" not in found
    assert tokens(after) <= BUDGET


def test_only_what_is_out_of_view_is_found() -> None:
    _, kept = run([asking("password"), AIMessage("swordfish")], "The password is swordfish. What is it?")
    assert answers(kept) == ["Nothing earlier that is no longer shown has any of these words."]


def test_an_answer_takes_a_quarter_of_the_budget_at_most_and_says_that_it_was_cut() -> None:
    script = [call(fetch, "f", size=3_000), AIMessage("A long page."), *filler(1), *filler(2), asking("word word")]
    _, kept = run([*script, AIMessage("Done.")], "Fetch it.", "Look.", "Look.", "Recall it.")
    (found,) = answers(kept)
    assert "more characters]" in found
    assert tokens([HumanMessage(found)]) <= BUDGET / 4 + 30


def test_it_does_not_find_what_it_found_before() -> None:
    script = [AIMessage(TOLD), *filler(1), *filler(2), asking("bergamot", "r1"), AIMessage("Found.")]
    script += [*filler(3), *filler(4), asking("bergamot", "r2"), AIMessage("Found.")]
    _, kept = run(script, "Tell.", "Look.", "Look.", "Recall.", "Look.", "Look.", "Recall.")
    first, second = answers(kept)
    assert first.count(SECRET) == second.count(SECRET) == 1


def test_after_a_restart_between_call_and_tool_the_same_is_found() -> None:
    saver = InMemorySaver()
    script = iter([AIMessage(TOLD), *filler(1), *filler(2), asking("bergamot"), AIMessage("Done.")])

    def process(**settings: Any) -> Any:
        middleware = LREMiddleware(BUDGET, recall=True, keep_recent=1)
        model = Scripted(script=script)
        return create_agent(model, [look], middleware=[middleware], checkpointer=saver, **settings)

    graph = process()
    for question in ("Tell.", "Look.", "Look."):
        graph.invoke({"messages": [HumanMessage(question)]}, THREAD)
    process(interrupt_before=["tools"]).invoke({"messages": [HumanMessage("Recall.")]}, THREAD)
    result = asyncio.run(process().ainvoke(None, THREAD))
    assert SECRET in answers(stored(result))[0]


def test_the_tool_is_offered_only_when_asked_for() -> None:
    for recall in (True, False):
        model = Scripted(script=rounds(steps=0))
        graph = create_agent(model, [look], middleware=[LREMiddleware(BUDGET, recall=recall)])
        graph.invoke({"messages": [HumanMessage("Look.")]})
        assert ("recall" in [tool.name for tool in model.tools]) == recall


def test_without_bm25s_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"lre-memory\[recall\]"):
        LREMiddleware(BUDGET, recall=True)
