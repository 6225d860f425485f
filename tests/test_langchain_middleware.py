"""`LREMiddleware` in a real `create_agent` loop: what the model sees, and what the graph keeps."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from langchain_lre import LREMiddleware, to_message
from lre_core import InvalidSetting, Message, ToolCall, UnknownScorer
from lre_core.tokens import counter, message_tokens

BUDGET = 1_500
STEPS = 12
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Recorder(BaseChatModel):
    """Calls the tool a dozen times, then answers; remembers every prompt it was given."""

    prompts: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.prompts.append(messages)
        n = len(self.prompts)
        message = AIMessage("Done.")
        if n % (STEPS + 1):
            message = AIMessage("", tool_calls=[{"name": "look", "args": {"shelf": n}, "id": f"call_{n}"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def look(shelf: int) -> str:
    """Look at a shelf of the store room."""
    return f"Shelf {shelf} holds box bx_{shelf * 7919}. " + "Nothing else was found there. " * 30


def agent(model: Recorder, max_tokens: int = BUDGET, **settings: Any) -> Any:
    middleware = LREMiddleware(max_tokens, **settings)
    return create_agent(
        model, [look], system_prompt="Keep the store room.", middleware=[middleware], checkpointer=InMemorySaver()
    )


def ask(graph: Any, text: str) -> dict[str, Any]:
    result: dict[str, Any] = graph.invoke({"messages": [HumanMessage(text)]}, THREAD)
    return result


def ask_async(graph: Any, text: str) -> dict[str, Any]:
    result: dict[str, Any] = asyncio.run(graph.ainvoke({"messages": [HumanMessage(text)]}, THREAD))
    return result


@pytest.mark.parametrize("ask", [ask, ask_async])
def test_the_model_sees_less_and_the_state_keeps_everything(ask: Callable[[Any, str], dict[str, Any]]) -> None:
    model = Recorder(prompts=[])
    graph = agent(model)
    ask(graph, "What is on the shelves?")
    result = ask(graph, "And again?")
    kept = result["messages"]
    assert len(kept) == 2 * (2 * STEPS + 2)
    assert max(map(len, model.prompts)) < len(kept)
    for prompt in model.prompts:
        assert isinstance(prompt[0], SystemMessage)
        assert isinstance(prompt[1], HumanMessage)
        stored = {message.id: message for message in kept}
        assert all(message == stored[message.id] for message in prompt[1:])
    assert "lre_state" not in result


def test_system_prompt_and_tool_definitions_count_against_the_budget() -> None:
    count = counter()

    def tokens(prompt: Sequence[BaseMessage]) -> int:
        return sum(message_tokens(to_message(message), count) for message in prompt)

    peaks = []
    for text in ("", "Look closely. " * 40):
        model, described = Recorder(prompts=[]), look.model_copy(update={"description": f"Look. {text}"})
        middleware = LREMiddleware(BUDGET)
        ask(create_agent(model, [described], middleware=[middleware], checkpointer=InMemorySaver()), "Go.")
        peaks.append(max(map(tokens, model.prompts)))
    assert peaks[0] <= BUDGET
    assert peaks[1] <= BUDGET - 100 < peaks[0] + 400


def test_results_follow_their_calls_in_every_prompt() -> None:
    model = Recorder(prompts=[])
    ask(agent(model), "What is on the shelves?")
    for prompt in model.prompts:
        for before, message in itertools.pairwise(prompt):
            if isinstance(message, ToolMessage):
                assert isinstance(before, AIMessage)
                assert [call["id"] for call in before.tool_calls] == [message.tool_call_id]


def test_promise_5_the_prefix_mostly_stays_as_it_was() -> None:
    model = Recorder(prompts=[])
    graph = agent(model, max_tokens=4 * BUDGET)
    for _ in range(4):
        ask(graph, "What is on the shelves?")
    prompts = [[message.id for message in prompt[1:]] for prompt in model.prompts]
    changed = sum(later[: len(before)] != before for before, later in itertools.pairwise(prompts))
    assert 0 < changed < len(prompts) / 5


def test_two_threads_share_no_state() -> None:
    model = Recorder(prompts=[])
    graph = agent(model)
    ask(graph, "What is on the shelves?")
    first = list(model.prompts)
    model.prompts.clear()
    graph.invoke({"messages": [HumanMessage("What is on the shelves?")]}, {"configurable": {"thread_id": "2"}})

    def shape(prompts: Sequence[Sequence[BaseMessage]]) -> list[list[str]]:
        return [[str(message.content)[:20] for message in prompt] for prompt in prompts]

    assert shape(model.prompts) == shape(first)


def test_a_pinned_message_stays() -> None:
    model = Recorder(prompts=[])
    graph = agent(model, pin=lambda message: message.content == "The key is under box bx_1.")
    ask(graph, "The key is under box bx_1.")
    for _ in range(2):
        ask(graph, "What is on the shelves?")
    assert all(any("under box" in str(m.content) for m in prompt) for prompt in model.prompts)


def test_bad_settings_are_refused_when_the_middleware_is_made() -> None:
    with pytest.raises(InvalidSetting, match="budget is 0"):
        LREMiddleware(0)
    with pytest.raises(UnknownScorer, match="'agnet'"):
        LREMiddleware(100, scorer="agnet")


def test_its_name_can_be_set() -> None:
    assert LREMiddleware(100).name == "LREMiddleware"
    assert LREMiddleware(100, name="short memory").name == "short memory"


CALL: dict[str, Any] = {"name": "look", "args": {"shelf": 1}, "id": "a"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("hi", name="Ana"), Message("user", "hi", name="Ana")),
        (SystemMessage("be brief"), Message("system", "be brief")),
        (AIMessage("", tool_calls=[CALL]), Message("assistant", "", (ToolCall("look", '{"shelf": 1}', "a"),))),
        (
            AIMessage("", invalid_tool_calls=[{"name": "look", "args": "{", "id": "b", "error": None}]),
            Message("assistant", "", (ToolCall("look", "{", "b"),)),
        ),
        (ToolMessage("14", tool_call_id="a"), Message("tool", "14", (), "a")),
        (FunctionMessage(content="14", name="look"), Message("function", "14", name="look")),
        (ChatMessage(content="14", role="assistant"), Message("assistant", "14")),
        (ChatMessage(content="14", role="critic"), Message("user", "14")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_message_kind_is_read(message: BaseMessage, expected: Message) -> None:
    before = message.model_copy(deep=True)
    assert to_message(message) == expected
    assert message == before


def test_a_tool_call_carried_twice_counts_once() -> None:
    block = {"type": "tool_use", "id": "a", "name": "look", "input": {"shelf": 1}}
    message = AIMessage([{"type": "text", "text": "Looking."}, block], tool_calls=[CALL])
    assert len(to_message(message).calls) == 1
    assert isinstance(look, BaseTool)
