"""`LREMiddleware` in a real `create_agent` loop: what the model sees, and what the graph keeps."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from agents import ContextOverflowError, Scripted, call, fetch, look, rounds, stored, texts, tokens
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, types
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

import langchain_lre.middleware
from langchain_lre import LREMiddleware, to_message
from lre_core import Evictor, InvalidSetting, Message, ToolCall, UnknownScorer

BUDGET = 1_500
STEPS = 12
THREAD: Any = {"configurable": {"thread_id": "1"}}


def agent(model: Scripted, max_tokens: float = BUDGET, **settings: Any) -> Any:
    middleware = LREMiddleware(max_tokens, **settings)
    return create_agent(
        model, [look], system_prompt="Keep the store room.", middleware=[middleware], checkpointer=InMemorySaver()
    )


def store_keeper(**fields: Any) -> Scripted:
    return Scripted(script=rounds(steps=STEPS), **fields)


def ask(graph: Any, text: str, thread: Any = THREAD) -> dict[str, Any]:
    result: dict[str, Any] = graph.invoke({"messages": [HumanMessage(text)]}, thread)
    return result


def ask_async(graph: Any, text: str, thread: Any = THREAD) -> dict[str, Any]:
    result: dict[str, Any] = asyncio.run(graph.ainvoke({"messages": [HumanMessage(text)]}, thread))
    return result


@pytest.mark.parametrize("ask", [ask, ask_async])
def test_the_model_sees_less_and_the_state_keeps_everything(ask: Callable[[Any, str], dict[str, Any]]) -> None:
    model = store_keeper()
    graph = agent(model)
    ask(graph, "What is on the shelves?")
    result = ask(graph, "And again?")
    kept = stored(result)
    assert len(kept) == 2 * (2 * STEPS + 2)
    assert max(map(len, model.prompts)) < len(kept)
    for prompt in model.prompts:
        assert isinstance(prompt[0], SystemMessage)
        assert isinstance(prompt[1], HumanMessage)
        by_id = {message.id: message for message in kept}
        assert all(message == by_id[message.id] for message in prompt[1:])
    assert "lre_state" not in result


@pytest.mark.skipif(
    not hasattr(types, "ExtendedModelResponse"), reason="langchain 1.1 takes no state from a model call"
)
def test_what_was_decided_is_private_state_in_plain_json() -> None:
    model = store_keeper()
    graph = agent(model)
    assert "lre_state" not in ask(graph, "What is on the shelves?")
    state = graph.get_state(THREAD).values["lre_state"]
    assert state["messages"] > 0
    assert json.loads(json.dumps(state)) == state


def test_promise_1_the_model_is_given_the_very_messages_of_the_state() -> None:
    seen: list[tuple[Sequence[BaseMessage], Sequence[BaseMessage]]] = []

    class Looking(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
            seen.append((request.state["messages"], request.messages))
            return handler(request)

    graph = create_agent(store_keeper(), [look], middleware=[LREMiddleware(BUDGET), Looking()])
    ask(graph, "What is on the shelves?")
    assert len(seen) == STEPS + 1
    for state, shown in seen:
        assert {id(message) for message in shown} <= {id(message) for message in state}
    assert len(seen[-1][1]) < len(seen[-1][0])


def test_promise_2_system_prompt_and_tool_definitions_count_against_the_budget() -> None:
    peaks = []
    for text in ("", "Look closely. " * 40):
        model, described = store_keeper(), look.model_copy(update={"description": f"Look. {text}"})
        ask(create_agent(model, [described], middleware=[LREMiddleware(BUDGET)]), "Go.")
        peaks.append(max(map(tokens, model.prompts)))
    assert peaks[0] <= BUDGET
    assert peaks[1] <= BUDGET - 100 < peaks[0] + 400
    model = store_keeper()
    ask(create_agent(model, [look], system_prompt="Be brief. " * 100, middleware=[LREMiddleware(BUDGET)]), "Go.")
    assert all(200 < tokens(prompt) <= BUDGET for prompt in model.prompts)


class Inventory(BaseModel):
    """What is in the store room, shelf by shelf, as the yearly stocktaking wants it written down by its clerks."""

    boxes: list[str]
    shelves: list[int]
    remarks: str


@pytest.mark.parametrize("answer", [Inventory, ToolStrategy(Inventory)], ids=["any way", "by a tool"])
def test_promise_2_the_schema_of_a_structured_answer_counts_against_the_budget(answer: Any) -> None:
    peaks = []
    for answer_format in (None, answer):
        final = AIMessage("Done.")
        if answer_format is not None:
            arguments = {"boxes": [], "shelves": [], "remarks": ""}
            final = AIMessage("", tool_calls=[{"name": "Inventory", "args": arguments, "id": "final"}])
        script = [*(call(fetch, f"call_{n}", size=20) for n in range(60)), final]
        model = Scripted(script=iter(script))
        graph = create_agent(model, [fetch], middleware=[LREMiddleware(BUDGET)], response_format=answer_format)
        graph.invoke({"messages": [HumanMessage("Count.")]}, {"recursion_limit": 200})
        peaks.append(max(map(tokens, model.prompts)))
    schema = Evictor(1).count(str(Inventory.model_json_schema()))
    assert schema > 80
    assert peaks[1] <= peaks[0] - schema / 2
    assert peaks[0] <= BUDGET


def test_promise_5_the_prefix_mostly_stays_as_it_was() -> None:
    model = store_keeper()
    graph = agent(model, max_tokens=4 * BUDGET)
    for _ in range(4):
        ask(graph, "What is on the shelves?")
    prompts = [[message.id for message in prompt[1:]] for prompt in model.prompts]
    changed = sum(later[: len(before)] != before for before, later in itertools.pairwise(prompts))
    assert 0 < changed < len(prompts) / 5


def test_promise_6_a_call_reads_its_new_messages_only() -> None:
    read: list[BaseMessage] = []

    def reader(message: BaseMessage) -> Any:
        read.append(message)
        return to_message(message)

    model = store_keeper()
    graph = agent(model, reader=reader)
    for _ in range(3):
        ask(graph, "What is on the shelves?")
    # Each message once: a checkpoint loaded anew for the next question is recognised.
    assert len(read) == len(stored(graph.get_state(THREAD).values)) - 1


def test_a_thread_rewound_to_an_earlier_checkpoint_goes_on_from_what_was_decided_there() -> None:
    model = store_keeper()
    graph = agent(model)
    ask(graph, "What is on the shelves?")
    earlier = graph.get_state(THREAD).config
    runs = []
    for _ in range(2):
        model.script = rounds(steps=STEPS)
        model.prompts.clear()
        graph.invoke({"messages": [HumanMessage("And now?")]}, earlier)
        runs.append([texts(prompt) for prompt in model.prompts])
    assert runs[0] == runs[1]


def test_a_message_removed_from_the_state_is_gone_from_the_view() -> None:
    model = store_keeper()
    graph = agent(model, max_tokens=50_000)
    asked = stored(ask(graph, "The password is swordfish."))
    ask(graph, "What is on the shelves?")
    graph.update_state(THREAD, {"messages": [RemoveMessage(id=str(asked[0].id))]})
    ask(graph, "Go on.")
    assert "swordfish" in str(model.prompts[-STEPS - 2])
    assert "swordfish" not in str(model.prompts[-1])


def test_an_agent_inside_another_graph_keeps_its_decisions_between_turns() -> None:
    def prompts(nested: bool) -> list[list[tuple[str, str]]]:
        model = store_keeper()
        graph: Any = create_agent(model, [look], middleware=[LREMiddleware(BUDGET)], checkpointer=InMemorySaver())
        if nested:
            inner = create_agent(model, [look], middleware=[LREMiddleware(BUDGET)])
            builder = StateGraph(MessagesState).add_node("agent", inner).add_edge(START, "agent")
            graph = builder.compile(checkpointer=InMemorySaver())
        for n in range(4):
            result = ask(graph, f"What is on the shelves? {n}")
            assert "lre_state" not in result
        return [texts(prompt) for prompt in model.prompts]

    assert prompts(nested=True) == prompts(nested=False)


def test_without_state_from_a_model_call_the_views_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # langchain before 1.2 has no ExtendedModelResponse.
    def prompts() -> list[list[tuple[str, str]]]:
        model = store_keeper()
        graph = agent(model)
        for n in range(3):
            ask(graph, f"What is on the shelves? {n}")
        return [texts(prompt) for prompt in model.prompts]

    expected = prompts()
    monkeypatch.setattr(langchain_lre.middleware, "ExtendedModelResponse", None)
    assert prompts() == expected


@pytest.mark.parametrize("ask", [ask, ask_async])
def test_a_prompt_too_long_for_the_model_is_tried_once_more_with_two_thirds(
    ask: Callable[[Any, str], dict[str, Any]],
) -> None:
    model = store_keeper(window=1_000)
    graph = agent(model, max_tokens=1_400)
    result = ask(graph, "What is on the shelves?")
    assert stored(result)[-1].content == f"Done, round {STEPS + 1}."
    sizes = list(map(tokens, model.prompts))
    refused = [n for n, size in enumerate(sizes) if size > 1_000]
    assert refused
    for n in refused:
        assert sizes[n + 1] <= 2 / 3 * sizes[n] + 70  # the tool's definition is sent and counted as well
        assert model.prompts[n][0] is model.prompts[n + 1][0]


@pytest.mark.parametrize("ask", [ask, ask_async])
def test_a_prompt_that_cannot_shrink_says_so_with_the_models_own_error(
    ask: Callable[[Any, str], dict[str, Any]],
) -> None:
    model = store_keeper(window=10)
    with pytest.raises(ContextOverflowError, match="the window has 10"):
        ask(agent(model), "What is on the shelves?")
    assert len(model.prompts) == 1


def test_a_fraction_is_taken_of_the_models_profile() -> None:
    by_number, by_fraction = store_keeper(), store_keeper(profile={"max_input_tokens": 2 * BUDGET})
    ask(agent(by_number), "What is on the shelves?")
    ask(agent(by_fraction, max_tokens=0.5), "What is on the shelves?")
    assert [*map(texts, by_fraction.prompts)] == [*map(texts, by_number.prompts)]


def test_a_fraction_of_no_profile_names_the_model_and_the_way_out() -> None:
    with pytest.raises(InvalidSetting, match=r"0\.5, but Scripted has no profile.*max_input_tokens"):
        ask(agent(store_keeper(), max_tokens=0.5), "What is on the shelves?")


def test_what_a_caching_middleware_behind_it_marks_is_what_is_sent() -> None:
    marked: list[str | None] = []

    class Caching(AgentMiddleware[Any, Any]):
        """Marks the last message, as the providers' prompt-caching middlewares do."""

        def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
            *before, last = request.messages
            marked.append(last.id)
            mark = last.model_copy(update={"additional_kwargs": {"cache_control": {"type": "ephemeral"}}})
            return handler(request.override(messages=[*before, mark]))

    model = store_keeper()
    graph = create_agent(model, [look], middleware=[LREMiddleware(BUDGET), Caching()], checkpointer=InMemorySaver())
    kept = stored(ask(graph, "What is on the shelves?"))
    assert len(model.prompts[-1]) < len(kept)
    for prompt, id in zip(model.prompts, marked, strict=True):
        assert [message.id for message in prompt if message.additional_kwargs] == [id]
    assert not any(message.additional_kwargs for message in kept)


def test_an_inner_middleware_may_answer_with_a_bare_message() -> None:
    class Curt(AgentMiddleware[Any, Any]):
        def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
            return AIMessage("No.")

        async def awrap_model_call(
            self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
        ) -> Any:
            return AIMessage("No.")

    graph = create_agent(store_keeper(), [look], middleware=[LREMiddleware(BUDGET), Curt()])
    assert stored(ask(graph, "Look."))[-1].content == "No."
    assert stored(ask_async(graph, "Look."))[-1].content == "No."


def test_a_pinned_message_stays() -> None:
    model = store_keeper()
    graph = agent(model, pin=lambda message: message.content == "The key is under box bx_1.")
    ask(graph, "The key is under box bx_1.")
    for _ in range(2):
        ask(graph, "What is on the shelves?")
    assert all(any("under box" in str(m.content) for m in prompt) for prompt in model.prompts)


def test_bad_settings_are_refused_when_the_middleware_is_made() -> None:
    with pytest.raises(InvalidSetting, match="budget is 0"):
        LREMiddleware(0)
    for fraction in (1.5, 0.0, -0.5, 1.0):
        with pytest.raises(InvalidSetting, match=f"max_tokens is {fraction}"):
            LREMiddleware(fraction)
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
