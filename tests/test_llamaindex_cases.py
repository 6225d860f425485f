"""Public cases 16 to 26 through both memories, and those of identity and of foreign messages through an agent too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.memory import ChatMemoryBuffer
from llamaindex_histories import (
    DEPRECATED,
    LIMIT,
    UNCLOSED,
    Model,
    look_up,
    refused,
    said,
    texts,
    tokens,
    tool_turn,
    unclosed,
)

from llamaindex_lre import LREChatMemoryBuffer, LREFunctionAgent, LREMemory

__all__ = ["unclosed"]

pytestmark = [
    DEPRECATED,
    UNCLOSED,
]

Show = Callable[[list[ChatMessage]], list[ChatMessage]]


def shown_by(kind: Any) -> Show:
    """What a memory of a kind shows of messages that were put one by one."""

    def show(messages: list[ChatMessage]) -> list[ChatMessage]:
        memory = kind.from_defaults(token_limit=LIMIT, tokenizer_fn=str.split)
        for message in messages:
            memory.put(message)
        stored: list[ChatMessage] = memory.get_all()
        assert texts(stored) == texts(messages)
        shown: list[ChatMessage] = memory.get()
        return shown

    return show


def shown_by_an_agent(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The prompt of an agent whose memory shows it all."""
    asked = Model()
    agent: Any = LREFunctionAgent(
        tools=[look_up], llm=asked.llm, max_tokens=LIMIT + 60, token_counter=lambda text: len(text.split())
    )
    memory = ChatMemoryBuffer.from_defaults(chat_history=messages[:-1], token_limit=100_000)

    async def run() -> None:
        await agent.run(user_msg=messages[-1], memory=memory)

    asyncio.run(run())
    return asked.sent[0]


memories = pytest.mark.parametrize(
    "show", [shown_by(LREChatMemoryBuffer), shown_by(LREMemory)], ids=["buffer", "memory"]
)
all_three = pytest.mark.parametrize(
    "show", [shown_by(LREChatMemoryBuffer), shown_by(LREMemory), shown_by_an_agent], ids=["buffer", "memory", "agent"]
)


def sound(shown: Sequence[ChatMessage]) -> bool:
    return refused(list(shown)) == [] and tokens(list(shown)) <= LIMIT and shown[0].role in ("user", "system")


@memories
def test_case_16_arguments_of_a_call_without_content_count_against_the_limit(show: Show) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "save", "arguments": "x " * 150}}
    turn = [
        ChatMessage(role="user", content="save it"),
        ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [call]}),
        ChatMessage(role="tool", content="saved", additional_kwargs={"tool_call_id": "call_1"}),
    ]
    shown = show([*turn, *said(5)])
    assert sound(shown)
    assert turn[1] not in shown


@memories
def test_case_17_the_system_message_does_not_go_first(show: Show) -> None:
    system = ChatMessage(role="system", content="Answer in French. " * 5)
    shown = show([system, *said(10)])
    assert sound(shown)
    assert shown[0] == system
    assert len(shown) < 21


@memories
@pytest.mark.parametrize("after", [[], said(1)[:1]])
def test_case_18_a_turn_larger_than_the_limit_does_not_leave_only_the_assistant(
    show: Show, after: list[ChatMessage]
) -> None:
    shown = show([*tool_turn(1, result="found " * 300), *after])
    assert sound(shown)
    assert shown[0].role == "user"


@pytest.mark.parametrize("kind", [LREChatMemoryBuffer, LREMemory])
def test_case_23_no_messages_to_put_and_a_message_as_input(kind: Any) -> None:
    memory = kind.from_defaults(chat_history=said(30), token_limit=LIMIT, tokenizer_fn=str.split)
    memory.put_messages([])
    asyncio_run(memory.aput_messages([]))
    expected = memory.get()
    assert len(memory.get_all()) == 60
    for given in ("Where is the order?", ChatMessage(role="user", content="Where is the order?"), None):
        assert asyncio_run(memory.aget(input=given)) == memory.get(input=given) == memory.get(given) == expected


def call(id: str | None, name: str = "look_up") -> ChatMessage:
    block: Any = ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs={"n": 1})
    return ChatMessage(role="assistant", blocks=[block])


def result(id: str | None, text: str) -> ChatMessage:
    return ChatMessage(role="tool", content=text, additional_kwargs={} if id is None else {"tool_call_id": id})


@all_three
@pytest.mark.parametrize("ids", [["call_1"] * 12, [None] * 12, [f"call_{n // 2}" for n in range(12)]])
def test_case_25_an_id_used_twice_or_none_and_messages_that_are_alike(show: Show, ids: list[str | None]) -> None:
    history: list[ChatMessage] = []
    for n, id in enumerate(ids):
        again = ChatMessage(role="user", content="again")
        history += [
            again,
            call(id),
            result(id, f"found {n} {'book ' * 20}"),
            ChatMessage(role="assistant", content="ok"),
        ]
    shown = show([*history, ChatMessage(role="user", content="again")])
    roles = [str(message.role.value) for message in shown]
    assert tokens(shown) <= LIMIT + 60
    assert roles[0] == roles[-1] == "user"
    assert 4 < len(shown) < len(history)
    # Each call that is shown stands directly before its own result, and each result behind its call.
    calls = [message for message in shown if any(isinstance(block, ToolCallBlock) for block in message.blocks)]
    pairs = [(before, after) for before, after in pairwise(shown) if after.role == "tool"]
    assert all(before == history[history.index(after) - 1] for before, after in pairs)
    assert len(pairs) == len(calls) == roles.count("tool") > 0


@all_three
def test_case_26_a_history_handed_over_from_another_provider(show: Show) -> None:
    older = {"name": "look_up", "arguments": '{"n": 1}'}
    refusal: Any = {"refusal": "I cannot help with that."}
    foreign = [
        ChatMessage(role="developer", content="Answer in French."),
        ChatMessage(role="user", blocks=[TextBlock(text="What is this?"), ImageBlock(url="https://a.example/b.png")]),
        ChatMessage(role="assistant", content=None, additional_kwargs={"function_call": older}),
        ChatMessage(role="function", content="a book", additional_kwargs={"name": "look_up"}),
        ChatMessage(role="assistant", content=None, additional_kwargs=refusal),
        ChatMessage(role="user", content=""),
        ChatMessage(role="assistant", blocks=[]),
        ChatMessage(role="chatbot", content="It is a book."),
    ]
    shown = show([*foreign, *said(10), ChatMessage(role="user", content="And now?")])
    roles = [message.role.value for message in shown]
    assert foreign[0] in shown
    assert texts(shown)[-1] == "And now?"
    assert tokens(shown) <= LIMIT + 60
    assert len(shown) < 29
    assert next(role for role in roles if role not in ("system", "developer")) == "user"
    assert (foreign[2] in shown) == (foreign[3] in shown)
