"""LangChain's messages as `lre_core` reads them; the originals are never touched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, RemoveMessage, ToolMessage

from lre_core import InvalidMessage, Message, ToolCall

__all__ = ["to_message"]

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function"}
CHAT_ROLES = frozenset({"system", "developer", "user", "human", "assistant", "ai", "model", "tool", "function"})
ASSISTANT_ROLES = frozenset({"assistant", "ai", "model"})

CALLS = frozenset({"tool_use", "tool_call", "invalid_tool_call", "function_call"})
MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "computer_screenshot": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "video_url": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "media": "file",
    "container_upload": "file",
}
"""Content blocks of OpenAI, Anthropic, Google, Bedrock and LangChain itself, and what they are to `lre_core`."""
RESULTS = {"tool_result": "content", "function_call_output": "output"}
NOTHING = frozenset(
    {"cache_point", "cachePoint", "tool_call_chunk", "server_tool_call_chunk", "input_json_delta"}
    | {"function_call_signature"}
)
"""Marks of the provider's, and pieces of calls that LangChain has put together already."""
ENCRYPTED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout"})
UNBILLED = frozenset({"signature", "thought_signature", "index", "id", "tool_use_id", "citations"})
BASE64 = re.compile(r"(data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{200,}=*")


def to_message(message: BaseMessage) -> Message:
    """Reads a LangChain message, chunks included.

    Calls may stand in `tool_calls`, `invalid_tool_calls` (they go over the wire too, and an error result answers them),
    the content, or `additional_kwargs`: one that stands in several of them counts once. What a provider's own tools
    did, and reasoning, count as text; images, recordings and files as media, whatever bytes they carry; citations,
    signatures and cache points as nothing. A `ChatMessage` of a role of one's own counts as human.

    Raises:
        lre_core.InvalidMessage: a `RemoveMessage`, which asks a graph's state to forget a message and is none itself.
    """
    if isinstance(message, RemoveMessage):
        raise InvalidMessage(
            f"RemoveMessage(id={message.id!r}) is an instruction to a graph's state, which no provider takes; "
            "apply it (langgraph.graph.message.add_messages) or leave it out"
        )
    role = ROLES.get(message.type.removesuffix("MessageChunk").lower(), "user")
    if isinstance(message, ChatMessage) and message.role in CHAT_ROLES:
        role = message.role
    content: str | list[Any] = message.content
    extra = message.additional_kwargs
    blocks: list[Any] = []
    if not isinstance(content, str):
        blocks, content = content, [part for block in content for part in _parts(block)]
    if extra and role in ASSISTANT_ROLES and (said := list(_said(extra))):
        content = [*([content] if isinstance(content, str) else content), *said]
    calls = tuple(_calls(message, blocks)) if role in ASSISTANT_ROLES else ()
    return Message(
        role, content, calls, message.tool_call_id if isinstance(message, ToolMessage) else None, message.name
    )


def _said(extra: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What OpenAI's chat completions say beside the content: a refusal, a spoken answer."""
    if refusal := extra.get("refusal"):
        yield {"type": "refusal", "refusal": str(refusal)}
    if isinstance(audio := extra.get("audio"), Mapping):
        yield {"type": "audio"}
        yield {"type": "text", "text": str(audio.get("transcript") or "")}


def _calls(message: BaseMessage, blocks: Iterable[Any]) -> list[ToolCall]:
    """Every call once, wherever it stands."""
    calls: list[ToolCall] = []
    if isinstance(message, AIMessage):
        calls += (ToolCall(call["name"], _json(call["args"]), call.get("id")) for call in message.tool_calls)
        calls += (
            ToolCall(call.get("name") or "", call.get("args") or "", call.get("id"))
            for call in message.invalid_tool_calls
        )
    extra = message.additional_kwargs
    repeated = [_call(call, call.get("function", call)) for call in extra.get("tool_calls") or ()] if extra else []
    repeated += (_call(block, block) for block in blocks if _is_call(block))
    unmatched = list(calls)
    for call in repeated:
        twin = next((known for known in unmatched if _same(known, call)), None)
        if twin is not None:
            unmatched.remove(twin)
        elif not any(call.id is not None and call.id == known.id for known in calls):
            calls.append(call)
    # Google repeats its first call under the name of OpenAI's older, single call.
    if not calls and extra and isinstance(single := extra.get("function_call"), Mapping):
        calls.append(_call(single, single))
    return calls


def _call(outer: Mapping[str, Any], function: Mapping[str, Any]) -> ToolCall:
    arguments = next((function[key] for key in ("arguments", "args", "input", "action") if key in function), None)
    id = outer.get("call_id") or outer.get("id")
    name = function.get("name") or function.get("type") or ""
    return ToolCall(str(name), _json(arguments), None if id is None else str(id))


def _same(known: ToolCall, call: ToolCall) -> bool:
    """Whether two entries tell of one call: by id, or by name where one of them has no id."""
    if known.id is None or call.id is None:
        return known.name == call.name
    return known.id == call.id


def _is_call(block: object) -> bool:
    """Whether the caller has to answer a block; OpenAI gives a `call_id` to such calls of its own tools only."""
    if not isinstance(block, Mapping):
        return False
    kind = str(block.get("type"))
    return kind in CALLS or (kind.endswith("_call") and "call_id" in block)


def _parts(block: Any) -> Iterator[Any]:
    """A content block in the core's terms; calls are read elsewhere."""
    if not isinstance(block, Mapping):
        yield str(block)
        return
    kind = block.get("type")
    if kind is None and len(block) == 1:  # Bedrock's blocks have a key in place of a type
        kind = next(iter(block))
    if kind in NOTHING or _is_call(block):
        return
    text = block.get("text")
    if isinstance(text, str):
        yield {"type": "text", "text": "\n".join(filter(None, (block.get("title"), block.get("context"), text)))}
    elif kind in ("thinking", "redacted_thinking", "reasoning", "reasoning_content"):
        yield from _reasoning(block)
    elif kind == "refusal":
        yield {"type": "refusal", "refusal": str(block.get("refusal") or "")}
    elif kind == "non_standard":
        yield from _parts(block.get("value"))
    elif kind in RESULTS:
        yield dict(block) | {RESULTS[kind]: _nested(block.get(RESULTS[kind]))}
    elif kind in MEDIA:
        yield from _media(block, MEDIA[kind])
    else:
        yield from _other(block)


def _nested(content: object) -> str | list[Any] | None:
    if content is None or isinstance(content, str):
        return content
    return [part for block in content for part in _parts(block)] if isinstance(content, list) else str(content)


def _reasoning(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Thinking, in the words of Anthropic, OpenAI, Bedrock and LangChain; what is encrypted too, see `_encrypted`."""
    said = next((block[key] for key in ("thinking", "reasoning", "reasoning_content", "summary") if block.get(key)), "")
    if isinstance(said, Mapping):
        said = said.get("text") or ""
    if isinstance(said, list):
        said = "\n".join(str(part.get("text") or "") for part in said if isinstance(part, Mapping))
    hidden = _encrypted(block.get("encrypted_content") or block.get("data"))
    yield {"type": "thinking", "thinking": f"{said}{hidden}"}


def _media(block: Mapping[str, Any], kind: str) -> Iterator[Any]:
    """An image, recording or file; a document that is plain text costs its text."""
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") in ("text", "content"):
        yield {"type": "text", "text": "\n".join(filter(None, (block.get("title"), block.get("context"))))}
        content = source.get("data") if source["type"] == "text" else source.get("content")
        yield from [content] if isinstance(content, str) else _nested(content) or ()
    else:
        yield {"type": kind}


def _other(block: Mapping[str, Any]) -> Iterator[Any]:
    """A block of a provider's own tool, or of a kind unknown here: its text, and media for the bytes it carries."""
    media: list[dict[str, Any]] = []

    def plain(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: plain(item, name) for name, item in value.items() if name not in UNBILLED}
        if isinstance(value, list | tuple):
            return [plain(item, key) for item in value]
        if isinstance(value, bytes) or (isinstance(value, str) and BASE64.fullmatch(value)):
            if key in ENCRYPTED:
                return _encrypted(value)
            media.append({"type": "image"})
            return ""
        return value

    yield {"type": "text", "text": _json(plain(block))}
    yield from media


def _encrypted(value: object) -> str:
    """A quarter of an encrypted text stands for it.

    Providers bill what is inside: base64 makes four characters of three, and as text costs some three times the tokens
    that those three would.
    """
    return value[: len(value) // 4] if isinstance(value, str) else ""


def _json(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False, default=str)
