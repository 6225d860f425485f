"""Learned eviction inside an agent's run, where tool results pile up that its memory does not see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.react.types import BaseReasoningStep
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.agent.workflow.agent_context import AgentContext
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.agent.workflow.workflow_events import AgentOutput, AgentWorkflowStartEvent
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import BaseMemory
from llama_index.core.tools import AsyncBaseTool
from llama_index.core.workflow import Context

from llamaindex_lre.buffer import LREChatMemoryBuffer
from llamaindex_lre.messages import to_message
from llamaindex_lre.recall import SHOWN_KEY, searching, shown_keys
from llamaindex_lre.runs import Runs
from llamaindex_lre.settings import evictor_of, take_settings
from llamaindex_lre.steps import PartialContext, read_step
from lre_core import Evictor

__all__ = ["LREFunctionAgent", "LREReActAgent"]

CONTEXT_SHARE = 0.75
"""Of the model's context window, where no budget is given; `ChatMemoryBuffer` takes as much."""
RECALLED_SHARE, RECALLED_TOKENS = 1 / 4, 2_000
"""What one answer of the recall tool may take: a share of the budget, and not more than that many tokens."""


class _EvictingAgent(BaseWorkflowAgent):
    """An agent with a token budget for each of its prompts."""

    max_tokens: int | None = None
    recall: bool = False
    _evictor: Evictor = PrivateAttr()
    _runs: Runs = PrivateAttr(default_factory=Runs)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        settings = take_settings(kwargs)
        super().__init__(*args, **kwargs)
        if self.max_tokens is None:
            self.max_tokens = int(self.llm.metadata.context_window * CONTEXT_SHARE)
        pin = settings.get("pin")
        if callable(pin):
            settings["pin"] = lambda item: isinstance(item, ChatMessage) and pin(item)
        self._evictor = evictor_of(self.max_tokens, settings, read_step)
        if self.recall:
            room = min(int(RECALLED_SHARE * self.max_tokens), RECALLED_TOKENS)
            collected = [getattr(self, key) for key in ("scratchpad_key", "reasoning_key") if hasattr(self, key)]
            self.tools = [*(self.tools or []), searching(self._evictor, room, self.name, collected)]

    async def _choose(self, ctx: AgentContext, items: Sequence[Any], reserved: int) -> list[Any]:
        """What of these messages and steps the model is shown next."""
        view = await self._runs.choose(ctx, self.name, self._evictor, items, reserved)
        if self.recall:
            shown = await ctx.store.get(SHOWN_KEY, default={})
            await ctx.store.set(SHOWN_KEY, {**shown, self.name: shown_keys(view)})
        return view

    async def _init_context(self, ctx: Context, ev: AgentWorkflowStartEvent) -> None:
        """Where no memory is given, it is one that a context can write down, whatever version of pydantic there is."""
        if not ev.get("memory", default=None) and not await ctx.store.get("memory", default=None):
            await ctx.store.set("memory", LREChatMemoryBuffer.from_defaults(llm=self.llm))
        await super()._init_context(ctx, ev)


class LREFunctionAgent(_EvictingAgent, FunctionAgent):
    """A `FunctionAgent` that shows its model what it most likely still needs, verbatim, within a token budget.

    What the memory shows and what the run has collected are chosen from together: a call stays or leaves with its
    results. System prompt and tool definitions count; they, the last question and the newest step always stay. The
    memory and the context keep every message. It works alone and in an `AgentWorkflow`, streaming or not.

        agent = LREFunctionAgent(tools=tools, llm=llm, max_tokens=8_000)

    Args:
        *args: as for `FunctionAgent`.
        max_tokens: tokens a prompt may take; by default three quarters of the model's context window.
        recall: give the model a tool, `recall`, that searches what it is no longer shown of the conversation, and
            answers with it word for word, in at most a quarter of the budget. Needs the `recall` extra.
        **kwargs: as for `FunctionAgent`, and every setting of `lre_core.Evictor` (see `lre_core.Settings`): `scorer`,
            `keep_recent`, `pin` (asked of LlamaIndex's messages) and so on.

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        lre_core.MissingExtra: `recall` without bm25s.
    """

    async def take_step(
        self, ctx: AgentContext, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        """Asks the model for its next step, with what is in view."""
        scratchpad: list[ChatMessage] = await ctx.store.get(self.scratchpad_key, default=[])
        reserved = sum(self._evictor.count(_definition(tool)) for tool in tools)
        view = await self._choose(ctx, [*llm_input, *scratchpad], reserved)
        # A note of what was left out belongs to neither; it stays where it stands.
        remembered = set(map(id, llm_input))
        start = 1 + max((at for at, message in enumerate(view) if id(message) in remembered), default=-1)
        partial = PartialContext(ctx, self.scratchpad_key, scratchpad, view[start:])
        return await super().take_step(partial, view[:start], tools, memory)


class LREReActAgent(_EvictingAgent, ReActAgent):
    """A `ReActAgent` that shows its model what it most likely still needs, verbatim, within a token budget.

    An action stays or leaves with its observation. All else is as in `LREFunctionAgent`; here the tool definitions
    stand in the system prompt.

        agent = LREReActAgent(tools=tools, llm=llm, max_tokens=8_000)

    Args:
        *args: as for `ReActAgent`.
        max_tokens: tokens a prompt may take; by default three quarters of the model's context window.
        recall: give the model a tool, `recall`, that searches what it is no longer shown of the conversation, and
            answers with it word for word, in at most a quarter of the budget. Needs the `recall` extra.
        **kwargs: as for `ReActAgent`, and every setting of `lre_core.Evictor` (see `lre_core.Settings`).

    Raises:
        lre_core.InvalidSetting: a budget under 1 or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
        lre_core.MissingExtra: `recall` without bm25s.
    """

    async def take_step(
        self, ctx: AgentContext, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        """Asks the model for its next step, with what is in view."""
        reasoning: list[BaseReasoningStep] = await ctx.store.get(self.reasoning_key, default=[])
        # The base class drops a first system message: the formatter's header says the same.
        first = 1 if llm_input[0].role == "system" else 0
        header = self.formatter.format(tools, chat_history=[], current_reasoning=[])
        reserved = sum(self._evictor.message_cost(to_message(message), message) for message in header)
        view = await self._choose(ctx, [*llm_input[first:], *reasoning], reserved)
        shown = [item for item in view if isinstance(item, BaseReasoningStep)]
        chat = [item for item in view if isinstance(item, ChatMessage)]
        partial = PartialContext(ctx, self.reasoning_key, reasoning, shown)
        return await super().take_step(partial, [*llm_input[:first], *chat], tools, memory)


def _definition(tool: AsyncBaseTool) -> str:
    """What the model is told of a tool."""
    return json.dumps(tool.metadata.to_openai_tool(skip_length_check=True), ensure_ascii=False)
