"""What an agent collects during a run, shown to it in part: the store of its context keeps the whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.react.types import ActionReasoningStep, BaseReasoningStep, ObservationReasoningStep
from llama_index.core.agent.workflow.agent_context import AgentContext
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_lre.messages import to_message
from lre_core import Evictor, Message, ToolCall

__all__ = ["PartialContext", "choose", "read_step"]

STATE_KEY = "lre_eviction"


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


async def choose(ctx: AgentContext, agent: str, evictor: Evictor, items: Sequence[Any], reserved: int) -> list[Any]:
    """The items in view: the same objects, in their order. What has left stays out for as long as the context lives.

    Args:
        ctx: the context of the run. What was decided lies in its store, as plain JSON, one entry an agent.
        agent: its name.
        evictor: reads the items.
        items: what the memory shows, then what the run has collected.
        reserved: tokens of the budget that the prompt spends elsewhere.
    """
    decided = await ctx.store.get(STATE_KEY, default={})
    saved = decided.get(agent)
    # A memory may itself have evicted since the last run, and a ReAct agent's steps become one message at its end.
    state = saved["state"] if saved and saved["history"] == _digest(items, saved["state"]) else {}
    view = evictor.view(items, state, reserved=reserved)
    decided = {**decided, agent: {"state": view.state, "history": _digest(items, view.state)}}
    await ctx.store.set(STATE_KEY, decided)
    return view.messages


def _digest(items: Sequence[Any], state: dict[str, Any]) -> str:
    """Of the items that a state decides on."""
    keys = "".join(read_step(item).key for item in items[: state["messages"]])
    return hashlib.blake2b(keys.encode(), digest_size=8).hexdigest()


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
