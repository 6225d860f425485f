"""Claude's thinking blocks: the running turn keeps them, and none is sent that was signed for another prompt."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Scripted, look, stored
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_lre import LREMiddleware
from langchain_lre.thinking import without_stale_thinking

THREAD: Any = {"configurable": {"thread_id": "1"}}
THINKING: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Two look-ups are needed.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "c2ln"},
    {"type": "reasoning_content", "reasoning_content": {"text": "Two look-ups.", "signature": "c2ln"}},
    {"type": "reasoning", "reasoning": "Two look-ups are needed.", "extras": {"signature": "c2ln"}},
]
OPENAI = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
TEXT = {"type": "text", "text": "I look."}


def history(thought: dict[str, Any]) -> list[BaseMessage]:
    calls = [{"name": "look", "args": {"shelf": n}, "id": f"call_{n}"} for n in range(3)]
    return [
        HumanMessage("Look at shelf 0."),
        AIMessage([TEXT], tool_calls=[calls[0]]),
        ToolMessage("empty", tool_call_id="call_0"),
        AIMessage([thought, TEXT], tool_calls=[calls[1]]),
        ToolMessage("empty", tool_call_id="call_1"),
        AIMessage([thought, TEXT]),
        HumanMessage("And shelf 2?"),
        AIMessage([thought, TEXT], tool_calls=[calls[2]]),
        ToolMessage("empty", tool_call_id="call_2"),
    ]


@pytest.mark.parametrize("thought", THINKING, ids=lambda block: block["type"])
def test_thinking_of_earlier_turns_goes_once_something_before_it_has_gone(thought: dict[str, Any]) -> None:
    messages = history(thought)
    before = [message.model_copy(deep=True) for message in messages]
    shown = without_stale_thinking(messages, [0, 3, 4, 5, 6, 7, 8])
    assert [message.content for message in shown[1:4]] == [[TEXT], "empty", [TEXT]]
    assert shown[1].tool_calls == messages[3].tool_calls  # type: ignore[attr-defined]
    # The running turn, and all that has no thinking, is the very same.
    assert all(shown[n] is messages[index] for n, index in [(0, 0), (2, 4), (4, 6), (5, 7), (6, 8)])
    assert messages == before


@pytest.mark.parametrize("thought", THINKING, ids=lambda block: block["type"])
def test_while_nothing_before_it_has_gone_thinking_stays(thought: dict[str, Any]) -> None:
    messages = history(thought)
    for kept in (list(range(9)), [0, 1, 2, 3, 4, 6, 7, 8]):
        shown = without_stale_thinking(messages, kept)
        assert all(message is messages[index] for message, index in zip(shown, kept, strict=True))


def test_reasoning_of_openai_stays_with_its_call() -> None:
    messages = history(OPENAI)
    assert without_stale_thinking(messages, [0, 3, 4, 5, 6])[1] is messages[3]


def test_a_message_of_nothing_but_thinking_is_not_emptied() -> None:
    messages = history(THINKING[0])
    messages[5] = AIMessage([THINKING[0]])
    assert without_stale_thinking(messages, [0, 3, 4, 5, 6])[3] is messages[5]


def test_langchain_34794_the_running_turn_keeps_its_thinking_and_earlier_ones_do_not() -> None:
    thought = THINKING[0]
    steps = 8

    def turn(start: int) -> list[AIMessage]:
        calls = [{"name": "look", "args": {"shelf": n}, "id": f"call_{n}"} for n in range(start, start + steps)]
        first, *rest = calls
        return [
            AIMessage([thought, TEXT], tool_calls=[first]),
            *(AIMessage([TEXT], tool_calls=[call]) for call in rest),
            AIMessage([thought, TEXT]),
        ]

    model = Scripted(script=iter([message for n in range(4) for message in turn(n * steps)]))
    graph = create_agent(model, [look], middleware=[LREMiddleware(1_200)], checkpointer=InMemorySaver())
    for n in range(4):
        result: dict[str, Any] = graph.invoke({"messages": [HumanMessage(f"Look at the shelves, {n}.")]}, THREAD)
    kept = stored(result)
    assert sum(thinks(message) for message in kept) == 8
    stripped = 0
    for prompt in model.prompts:
        human = max(n for n, message in enumerate(prompt) if isinstance(message, HumanMessage))
        running = prompt[human + 1 :]
        # A run of tool calls must open with the thinking it opened with.
        assert not running or thinks(running[0])
        known = {message.id: message for message in kept}
        changed = [message for message in prompt if message != known[message.id]]
        assert not any(map(thinks, changed))
        assert not any(message in running for message in changed)
        stripped += bool(changed)
    assert stripped
    assert any(len(prompt) < len(kept) / 2 for prompt in model.prompts)


def thinks(message: BaseMessage) -> bool:
    return isinstance(message.content, list) and THINKING[0] in message.content
