"""A chat model that plays a script, calls tools, and refuses every prompt a provider would refuse."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from histories import problems
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from pydantic import ConfigDict, Field

from langchain_lre import to_message
from lre_core.tokens import counter, message_tokens

try:
    from langchain_core.exceptions import ContextOverflowError as ContextOverflowError
except ImportError:  # langchain-core before 1.2.10
    from langchain_lre.middleware import ContextOverflowError as ContextOverflowError  # type: ignore[attr-defined]

Answer = AIMessage | Callable[[list[BaseMessage]], AIMessage]


class Scripted(BaseChatModel):
    """Gives the script's answers in turn.

    Attributes:
        script: an answer a call, or a function from the prompt to it.
        prompts: every prompt it was given.
        tools: the tools it was last offered.
        window: tokens above which it says `ContextOverflowError`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)
    script: Iterator[Answer]
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    tools: list[Any] = Field(default_factory=list)
    window: int | None = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        self.tools = list(tools)
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        assert refusals(messages) == []
        self.prompts.append(messages)
        if self.window is not None and tokens(messages) > self.window:
            raise ContextOverflowError(f"{tokens(messages)} tokens; the window has {self.window}")
        answer = next(self.script)
        message = answer if isinstance(answer, AIMessage) else answer(messages)
        return ChatResult(generations=[ChatGeneration(message=message)])


def refusals(prompt: Sequence[BaseMessage]) -> list[str]:
    """Why a provider would refuse a prompt: the rules of `histories.problems`, system first, no id twice."""
    found = problems(convert_to_openai_messages(list(prompt)))
    if any(isinstance(message, SystemMessage) for message in prompt[1:]):
        found.append("a system message behind the first")
    ids = [message.id for message in prompt if message.id is not None]
    if len(set(ids)) < len(ids):
        found.append("a message twice")
    return found


def tokens(prompt: Iterable[BaseMessage]) -> int:
    """What a prompt costs, tool definitions apart, told slowly."""
    return sum(message_tokens(to_message(message), counter()) for message in prompt)


def react_agent(model: Scripted, tools: Sequence[BaseTool], hook: Any, checkpointer: Any) -> Any:
    """LangGraph's older agent, with a hook before the model."""
    from langgraph.prebuilt import create_react_agent

    with warnings.catch_warnings():
        # It is deprecated in favour of create_agent; who still uses it knows.
        warnings.simplefilter("ignore")
        return create_react_agent(model, list(tools), pre_model_hook=hook, checkpointer=checkpointer)


@tool
def look(shelf: int) -> str:
    """Look at a shelf of the store room."""
    return f"Shelf {shelf} holds box bx_{shelf * 7919}. " + "Nothing else was found there. " * 30


@tool
def fetch(size: int) -> str:
    """Fetch a page of that many words."""
    return "word " * size


def call(of: BaseTool, id: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": of.name, "args": arguments, "id": id}])


def rounds(*, steps: int, of: BaseTool = look) -> Iterator[AIMessage]:
    """For every question that many calls one after the other, then an answer; on and on."""
    for n in itertools.count(1):
        yield call(of, f"call_{n}", shelf=n) if n % (steps + 1) else AIMessage(f"Done, round {n}.")


def stored(result: dict[str, Any]) -> list[AnyMessage]:
    messages: list[AnyMessage] = result["messages"]
    return messages


def texts(prompt: Iterable[BaseMessage]) -> list[tuple[str, str]]:
    """A prompt without the ids a run makes up."""
    return [(message.type, str(message.content)) for message in prompt]


def shaped(notation: str, text: str = "some words about box bx_14 ") -> list[BaseMessage]:
    """Messages in the notation of bug reports, as `histories.shape`; without ids."""
    made: list[BaseMessage] = []
    for n, word in enumerate(notation.split()):
        said = f"{n} {text}"
        if word.startswith("AI*"):
            calls = [{"name": "look", "args": {"shelf": n}, "id": id} for id in word[3:].split(",")]
            made.append(AIMessage(said, tool_calls=calls))
        elif word.startswith("T"):
            made.append(ToolMessage(said, tool_call_id=word[1:], name="look"))
        else:
            made.append({"S": SystemMessage, "H": HumanMessage, "AI": AIMessage}[word](said))
    return made
