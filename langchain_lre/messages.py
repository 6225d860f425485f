"""LangChain's messages as `lre_core` reads them; the originals are never touched."""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage

from lre_core import Message, ToolCall

__all__ = ["to_message"]

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "human", "ai"})


def to_message(message: BaseMessage) -> Message:
    """Reads a LangChain message, chunks included. A `ChatMessage` of a role of one's own counts as human."""
    role = ROLES.get(message.type.removesuffix("MessageChunk").lower(), "user")
    if isinstance(message, ChatMessage) and message.role in CHAT_ROLES:
        role = message.role
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None
    if isinstance(message, AIMessage):
        calls = tuple(
            ToolCall(call["name"], json.dumps(call["args"], ensure_ascii=False, default=str), call.get("id"))
            for call in message.tool_calls
        )
        # A call whose arguments did not parse still goes over the wire, and its error result answers it.
        calls += tuple(
            ToolCall(call.get("name") or "", call.get("args") or "", call.get("id"))
            for call in message.invalid_tool_calls
        )
    elif isinstance(message, ToolMessage):
        answers = message.tool_call_id
    return Message(role, message.content, calls, answers, message.name)
