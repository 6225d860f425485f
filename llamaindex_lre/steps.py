"""What an agent collects during a run, shown to it in part: the store of its context keeps the whole."""

from __future__ import annotations

import json
from typing import Any

from llama_index.core.agent.react.types import ActionReasoningStep, BaseReasoningStep, ObservationReasoningStep
from llama_index.core.agent.workflow.agent_context import AgentContext
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_lre.messages import to_message
from lre_core import Message, ToolCall

__all__ = ["PartialContext", "read_step"]


def read_step(item: ChatMessage | BaseReasoningStep) -> Message:
    """Reads a message, or a ReAct step as the call or the result it stands for: they stay or leave together."""
    if isinstance(item, ActionReasoningStep):
        call = ToolCall(item.action, json.dumps(item.action_input, ensure_ascii=False, default=str))
        return Message("assistant", f"Thought: {item.thought}\nAction:\nAction Input:", (call,))
    if isinstance(item, ObservationReasoningStep):
        return Message("tool", item.get_content())
    if isinstance(item, BaseReasoningStep):
        return Message("assistant", item.get_content())
    return to_message(item)


class PartialContext:
    """An agent's context in which one list of the store shows only what is in view.

    Whatever is appended to that list is appended to the whole of it, which the store keeps at every moment.

    Args:
        ctx: the context of the run.
        key: of the list in its store.
        whole: the list.
        shown: what of it is in view.
    """

    def __init__(self, ctx: AgentContext, key: str, whole: list[Any], shown: list[Any]) -> None:
        self._ctx, self._key, self._whole, self._shown = ctx, key, whole, shown

    @property
    def store(self) -> Any:
        """The store: this object, which hands on all but that one list."""
        return self

    @property
    def is_running(self) -> bool:
        """Whether events can be written."""
        return self._ctx.is_running

    def write_event_to_stream(self, event: Any) -> None:
        """Writes an event to the output stream."""
        self._ctx.write_event_to_stream(event)

    async def get(self, path: str, default: Any = ...) -> Any:
        """A value of the store."""
        return list(self._shown) if path == self._key else await self._ctx.store.get(path, default)

    async def set(self, path: str, value: Any) -> None:
        """Sets a value of the store."""
        await self._ctx.store.set(path, [*self._whole, *value[len(self._shown) :]] if path == self._key else value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx.store, name)
