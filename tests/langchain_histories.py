"""Histories of LangChain messages for the tests, and what a provider would refuse about them, told slowly."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from histories import words
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

with warnings.catch_warnings():  # langchain-community says on import that it is no longer maintained
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.chat_message_histories import FileChatMessageHistory, SQLChatMessageHistory

__all__ = ["BOOKING", "FileChatMessageHistory", "Recorder", "SQLChatMessageHistory", "Store", "chat", "problems", "say"]

BOOKING = "KX93J-7Q"


class Store(BaseChatMessageHistory):
    """A store that counts how often it is read, and gives new objects on each read, as databases do."""

    def __init__(self, messages: Sequence[BaseMessage] = ()) -> None:
        self.stored = list(messages)
        self.reads = 0

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        self.reads += 1
        return [message.model_copy(deep=True) for message in self.stored]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.stored += messages

    def clear(self) -> None:
        self.stored.clear()


class Recorder(BaseChatModel):
    """Answers at some length, and remembers every prompt it was given."""

    prompts: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "recorder"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.prompts = [*self.prompts, messages]
        text = f"Answer {len(self.prompts)}: " + words(len(self.prompts), 20)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def chat(notation: str, size: int = 5) -> list[BaseMessage]:
    """Messages in the notation of bug reports: `S` system, `H` human, `AI`, `AI*a,b` calls a and b, `Ta` a's result."""
    messages: list[BaseMessage] = []
    for n, word in enumerate(notation.split()):
        text = f"{n} {words(n, size)}"
        if word.startswith("AI*"):
            calls: list[Any] = [{"name": "look_up", "args": {}, "id": id} for id in word[3:].split(",")]
            messages.append(AIMessage(text, tool_calls=calls))
        elif word.startswith("T"):
            messages.append(ToolMessage(text, tool_call_id=word[1:]))
        else:
            messages.append({"S": SystemMessage, "H": HumanMessage, "AI": AIMessage}[word](text))
    return messages


def say(n: int) -> str:
    """The n-th of many things a person says; the third holds what has to be known in the end."""
    if n == 3:
        return f"My booking code is {BOOKING}, please use it for every change of the trip."
    return f"Tell me about stop {n}: " + ("is it pretty there, and what would you eat? " * (1 + n % 3))


def problems(messages: Sequence[BaseMessage]) -> list[str]:
    """Why a provider would refuse these messages; empty if none would. Each step's calls have ids of their own."""
    found = []
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    if not spoken or not isinstance(spoken[0], HumanMessage):
        found.append("the first message after the system's is not human")
    if any(isinstance(message, SystemMessage) for message in messages[len(messages) - len(spoken) :]):
        found.append("a system message comes later")
    waiting: set[str | None] = set()
    for message in spoken:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                found.append(f"{message.tool_call_id} answers no call before it")
            waiting.discard(message.tool_call_id)
        elif isinstance(message, AIMessage) and message.tool_calls:
            waiting |= {call["id"] for call in message.tool_calls}
        elif waiting:
            found.append(f"{waiting} have no result")
            waiting = set()
    return found
