"""One logged message, in any framework's words, as a chat dict."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from lre_core.logs.records import kind_of

__all__ = ["Unreadable", "chat_dict", "dialect", "is_message"]

Chat = dict[str, Any]

LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "chat": "user"}
LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat", "developer", "remove"})
RESPONSES_CALLS = frozenset({"function_call", "custom_tool_call"})
RESPONSES_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
RESPONSES_UNSEEN = frozenset({"reasoning", "item_reference", "compaction"})
"""Items that carry nothing another provider's prompt could hold: encrypted, or only a reference."""
ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
LLAMAINDEX_ROLES = {"chatbot": "assistant", "model": "assistant"}


class Unreadable(ValueError):
    """A value that is not what its place in a log asks for; the text says what was found. Becomes a `LogError`."""


def is_message(value: object) -> bool:
    """Whether a JSON value is one message, by its shape."""
    return isinstance(value, dict) and dialect(value) != ""


def dialect(value: Mapping[str, Any]) -> str:
    """In whose words a message stands: a key of `DIALECTS`, or nothing where it is no message."""
    kind = value.get("type")
    if "role" in value:
        if isinstance(value.get("blocks"), list) or isinstance(value.get("additional_kwargs"), dict):
            return "llamaindex"
        content = value.get("content")
        blocks = content if isinstance(content, list) else ()
        if any(isinstance(block, dict) and _is_one_of(block.get("type"), ANTHROPIC_BLOCKS) for block in blocks):
            return "anthropic"
        return "openai"
    if isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list):
        return "langchain"
    if _is_one_of(kind, LANGCHAIN_TYPES, chunk=True) and (isinstance(value.get("data"), dict) or "content" in value):
        return "langchain"
    if _is_one_of(kind, RESPONSES_CALLS | RESPONSES_RESULTS | RESPONSES_UNSEEN):
        return "openai-responses"
    return ""


def chat_dict(value: object) -> Chat | None:
    """The chat dict of a logged message; OpenAI's and Anthropic's come back as they are.

    Returns:
        None for what stands among messages and is none: a reasoning item, a `RemoveMessage`.

    Raises:
        Unreadable: it is not a message.
    """
    if not isinstance(value, dict):
        raise Unreadable(f"expected a message, found {kind_of(value)}")
    spoken = dialect(value)
    if not spoken:
        raise Unreadable(f"a message without 'role': found {kind_of(value)}")
    return DIALECTS[spoken](value)


def _is_one_of(kind: object, kinds: frozenset[str], *, chunk: bool = False) -> bool:
    if not isinstance(kind, str):
        return False
    return kind in kinds or (chunk and _without_chunk(kind) in kinds)


def _without_chunk(kind: str) -> str:
    """`AIMessageChunk`, as LangChain types what was streamed, is `ai`."""
    return kind.removesuffix("Chunk").removesuffix("Message").lower()


def _as_it_is(value: Chat) -> Chat:
    return value


def _from_langchain(value: Chat) -> Chat | None:
    if isinstance(value.get("kwargs"), dict):
        fields: Chat = value["kwargs"]
        kind = fields.get("type") or _last(value["id"])
    else:
        fields = value["data"] if isinstance(value.get("data"), dict) else value
        kind = value.get("type")
    if not _is_one_of(kind, LANGCHAIN_TYPES, chunk=True):
        raise Unreadable(f"expected a LangChain message, found type {kind!r:.40}")
    kind = _without_chunk(str(kind))
    if kind == "remove":
        return None
    role = fields.get("role") if kind == "chat" else None
    chat: Chat = {"role": role or LANGCHAIN_ROLES.get(kind, kind), "content": fields.get("content")}
    extra = fields.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    calls = [
        {"id": call.get("id"), "type": "function", "function": _function(call.get("name"), call.get("args"))}
        for key in ("tool_calls", "invalid_tool_calls")
        for call in _objects(fields.get(key), key)
    ]
    chat |= _present({"tool_calls": calls or extra.get("tool_calls")})
    if not calls:
        chat |= _present({"function_call": extra.get("function_call")})
    return chat | _present({"tool_call_id": fields.get("tool_call_id"), "name": fields.get("name")})


def _from_llamaindex(value: Chat) -> Chat:
    role = value["role"]
    extra = value.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    content: Any = value.get("content")
    calls: list[Any] = []
    if isinstance(value.get("blocks"), list):
        blocks = []
        for block in _objects(value["blocks"], "blocks"):
            kind = block.get("block_type")
            if kind == "tool_call":
                function = _function(block.get("tool_name"), block.get("tool_kwargs"))
                calls.append({"id": block.get("tool_call_id"), "type": "function", "function": function})
            else:
                # A block names its type `block_type`; what stands beside it is close enough to a content block.
                blocks.append({"type": kind} | {key: part for key, part in block.items() if key != "block_type"})
        texts = [block.get("text") for block in blocks if block["type"] == "text"]
        whole = len(texts) == len(blocks) and all(isinstance(text, str) for text in texts)
        content = "\n".join(map(str, texts)) if whole else blocks
    role = LLAMAINDEX_ROLES.get(role, role) if isinstance(role, str) else role
    # Older versions keep calls beside the blocks, some keep them in both places: one of the two counts.
    chat: Chat = {"role": role, "content": content} | _present({"tool_calls": calls or extra.get("tool_calls")})
    return chat | _present({key: extra.get(key) for key in ("tool_call_id", "name")})


def _from_responses(value: Chat) -> Chat | None:
    kind, identity = value["type"], value.get("call_id") or value.get("id")
    if kind in RESPONSES_UNSEEN:
        return None
    if kind in RESPONSES_RESULTS:
        return {"role": "tool", "tool_call_id": identity, "content": value.get("output")}
    function = _function(value.get("name"), value.get("arguments", value.get("input")))
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": identity, "type": "function", "function": function}],
    }


DIALECTS: dict[str, Callable[[Chat], Chat | None]] = {
    "openai": _as_it_is,
    "openai-responses": _from_responses,
    "anthropic": _as_it_is,
    "langchain": _from_langchain,
    "llamaindex": _from_llamaindex,
}


def _function(name: object, arguments: object) -> Chat:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return {"name": str(name or ""), "arguments": written}


def _objects(value: object, key: str) -> list[Chat]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Unreadable(f"{key!r} is {kind_of(value)}; expected an array of objects")
    return value


def _last(path: list[Any]) -> object:
    return path[-1] if path else None


def _present(fields: Chat) -> Chat:
    return {key: value for key, value in fields.items() if value is not None}
