"""A deterministic chat model that can use only what stands in the prompt it was given."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks.demo.evidence import ALL_DONE, Evidence
from benchmarks.demo.planner import CannotGoOn, next_step


class PromptOnlyModel(BaseChatModel):
    """Plans over the prompt and remembers nothing: the same messages always get the same answer.

    What it does not see it must fetch again by calling a tool. It makes one call at a time, and says so in words
    when all errands of the prompt are proven done by results in the prompt.
    """

    @property
    def _llm_type(self) -> str:
        return "prompt-only"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: object,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Hand the model its tools, as OpenAI's schemas."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _answer(messages: Sequence[BaseMessage]) -> AIMessage:
    try:
        step = next_step(Evidence(messages))
    except CannotGoOn as question:
        return AIMessage(str(question))
    if step is None:
        return AIMessage(ALL_DONE)
    call = {"name": step.tool, "args": dict(step.arguments), "id": f"call_{_digest(messages)}", "type": "tool_call"}
    return AIMessage(step.thought, tool_calls=[call])


def _digest(messages: Sequence[BaseMessage]) -> str:
    # An identifier must be new in every run of prompts, and the model may not count: the prompt itself names it.
    shown = "\x00".join(f"{message.text}\x01{getattr(message, 'tool_call_id', '')}" for message in messages)
    return hashlib.sha256(shown.encode()).hexdigest()[:12]
