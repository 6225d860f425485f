"""Claude's thinking blocks in messages whose prefix has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

__all__ = ["without_stale_thinking"]

THINKING = frozenset({"thinking", "redacted_thinking", "reasoning_content"})
"""Kinds of Claude's blocks: Anthropic's own, and Bedrock's."""


def without_stale_thinking(messages: Sequence[BaseMessage], kept: Sequence[int]) -> list[BaseMessage]:
    """The kept messages, those of earlier turns without thinking blocks where a message before them has left.

    Claude signs its thinking for the prompt it was thought in. The current turn keeps its thinking: a run of tool calls
    is refused without it (langchain#34794). A message that loses its blocks is a copy made for the model; the one the
    caller owns stays as it is, and so does one that would be left empty.

    Args:
        messages: the whole history.
        kept: indexes of the messages in view, ascending.
    """
    gone = next((n for n, index in enumerate(kept) if n != index), len(kept))
    turn = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=0)
    return [
        _without_thinking(messages[index]) if n >= gone and index < turn else messages[index]
        for n, index in enumerate(kept)
    ]


def _without_thinking(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, AIMessage) or not isinstance(message.content, list):
        return message
    rest = [block for block in message.content if not _is_thinking(block)]
    if len(rest) == len(message.content) or not (rest or message.tool_calls):
        return message
    return message.model_copy(update={"content": rest})


def _is_thinking(block: Any) -> bool:
    """Whether a block is thinking that was signed; OpenAI's reasoning is not, and must stay with its calls."""
    if not isinstance(block, Mapping):
        return False
    return block.get("type") in THINKING or (
        block.get("type") == "reasoning" and "signature" in (block.get("extras") or {})
    )
