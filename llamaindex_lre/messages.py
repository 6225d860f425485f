"""LlamaIndex's messages as `lre_core` reads them; the originals are never touched."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from llama_index.core.base.llms.types import (
    BaseContentBlock,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import BaseModel

from lre_core import Message, Recalled, ToolCall

__all__ = ["copies_of", "copy_of", "to_message"]

MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}

PLAIN = (str, bytes, int, float, type(None))

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

put = object.__setattr__


def to_message(message: ChatMessage) -> Message:
    """Reads a LlamaIndex message.

    Calls may stand in `ToolCallBlock`s, in `additional_kwargs["tool_calls"]` (OpenAI's, Anthropic's or Ollama's dicts,
    or objects with such attributes), or in both: a call that stands in both counts once. Images, recordings and
    documents count as media, whatever bytes they carry; thinking counts as text, cache points as nothing.
    """
    role = MessageRole(message.role).value
    extra = message.additional_kwargs
    return Message(
        "assistant" if role == "chatbot" else role,
        _content(message.blocks),
        _calls(message),
        # An agent's direct answer is an assistant message that carries its tool's call id and answers nothing.
        _text(extra.get("tool_call_id")) if role in ("tool", "function") else None,
        _text(extra.get("name")),
    )


def copy_of(value: T) -> T:
    """A copy of a message down to its last list and dict. What cannot be copied, such as an open file, is shared."""
    if isinstance(value, list):
        return cast(T, [copy_of(item) for item in value])
    if isinstance(value, dict):
        return cast(T, {key: copy_of(item) for key, item in value.items()})
    return _copy_of_model(value) if isinstance(value, BaseModel) else value


def _copy_of_model(model: M) -> M:
    """What `BaseModel.__copy__` does, for two thirds of its price: copies are most of what a turn costs."""
    copied = object.__new__(type(model))
    fields = model.__dict__.copy()
    for name, field in fields.items():
        # Most are text: a call for each would cost more than the copies do.
        if not isinstance(field, PLAIN):
            fields[name] = copy_of(field)
    put(copied, "__dict__", fields)
    put(copied, "__pydantic_extra__", model.__pydantic_extra__ and copy_of(model.__pydantic_extra__))
    put(copied, "__pydantic_fields_set__", model.__pydantic_fields_set__.copy())
    put(copied, "__pydantic_private__", model.__pydantic_private__ and model.__pydantic_private__.copy())
    return copied


def copies_of(found: list[Recalled]) -> list[Recalled]:
    """What was found, with copies of its messages."""
    return [replace(unit, messages=[copy_of(message) for message in unit.messages]) for unit in found]


def _content(blocks: list[Any]) -> str | list[dict[str, Any]] | None:
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return [part for block in blocks for part in _parts(block)] or None


def _parts(block: BaseContentBlock) -> Iterator[dict[str, Any]]:
    """A block in the core's terms; calls are read elsewhere."""
    kind = getattr(block, "block_type", None)
    if isinstance(block, TextBlock):
        yield {"type": "text", "text": block.text}
    elif isinstance(block, ThinkingBlock):
        yield {"type": "thinking", "thinking": block.content or ""}
    elif kind in MEDIA:
        yield {"type": MEDIA[kind]}
    elif isinstance(block, CitableBlock | CitationBlock):
        yield {"type": "text", "text": f"{block.title}\n{block.source}"}
        for nested in block.nested_blocks:
            yield from _parts(nested)
    elif not isinstance(block, ToolCallBlock | CachePoint):
        # A kind of block that this version does not know still costs tokens.
        yield {"type": "text", "text": repr(block)}


def _calls(message: ChatMessage) -> tuple[ToolCall, ...]:
    extra = message.additional_kwargs
    calls = [
        ToolCall(block.tool_name, _json(block.tool_kwargs), block.tool_call_id)
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    ]
    unmatched = list(calls)
    for call in _legacy_calls([*(extra.get("tool_calls") or ()), *filter(None, [extra.get("function_call")])]):
        twin = next((block for block in unmatched if _same(block, call)), None)
        if twin is None:
            calls.append(call)
        else:
            unmatched.remove(twin)
    return tuple(calls)


def _legacy_calls(calls: Iterable[object]) -> Iterator[ToolCall]:
    for call in calls:
        function = _field(call, "function") or call
        name = _text(_field(function, "name", "tool_name"))
        arguments = _field(function, "arguments", "args", "input", "parameters", "tool_kwargs")
        yield ToolCall(name or "", _json(arguments), _text(_field(call, "id", "tool_call_id", "tool_id", "toolUseId")))


def _same(block: ToolCall, call: ToolCall) -> bool:
    """Whether a block and an entry of `additional_kwargs` tell of one call: by id, or by name where one has no id."""
    if block.id is None or call.id is None:
        return block.name == call.name
    return block.id == call.id


def _field(source: object, *names: str) -> object:
    """The first of the names that a dict or an object has."""
    values = (source.get(name) if isinstance(source, Mapping) else getattr(source, name, None) for name in names)
    return next((value for value in values if value is not None), None)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _json(arguments: object) -> str:
    if isinstance(arguments, str):
        return arguments
    return json.dumps({} if arguments is None else arguments, ensure_ascii=False, default=str)
