"""What a chat message is: its text, its calls, whom it answers, its identity key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lre_core.errors import InvalidMessage

__all__ = ["ChatMessage", "Kind", "Message", "ToolCall", "as_message", "as_messages"]

Kind = Literal["system", "human", "assistant", "tool"]

KINDS: dict[str, Kind] = {
    "system": "system",
    "developer": "system",
    "user": "human",
    "human": "human",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
CALL_BLOCKS = frozenset({"tool_use", "tool_call", "function_call"})
RESULT_BLOCKS = frozenset({"tool_result", "function_call_output"})
MEDIA_BLOCKS = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document"}
)
THINKING_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
# Made once: `str | list` would be made anew for every message.
LIST, TEXT_OR_LIST, NUMBER = (list, tuple), (str, list, tuple), (int, float)
TEXT_KEYS = ("text", "refusal", "thinking", "reasoning", "content", "output")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call an assistant message makes.

    Attributes:
        name: the tool's name.
        arguments: its arguments as JSON text.
        id: the provider's id of the call; some providers give none, or the same one twice.
    """

    name: str
    arguments: str = "{}"
    id: str | None = None

    @property
    def values(self) -> str:
        """The values among its arguments, without the parameters' names; arguments that are not JSON as they are."""
        try:
            return " ".join(_leaves(json.loads(self.arguments)))
        except (ValueError, RecursionError):
            return self.arguments


@dataclass(slots=True)
class Message:
    """One chat message, in the shape of the OpenAI chat dict.

    Attributes:
        role: `system`, `developer`, `user`, `assistant`, `tool` or `function` (also `human`, `ai` and `model`).
        content: text, a list of content blocks (OpenAI's or Anthropic's), or None.
        tool_calls: the calls an assistant message makes; calls among the content blocks count too, once.
        tool_call_id: the call a tool message answers.
        name: the speaker's or the tool's name.
        timestamp: seconds since the epoch.
    """

    role: str
    content: str | Sequence[Any] | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    timestamp: float | None = None

    @property
    def kind(self) -> Kind:
        """Whose message it is. A user message that carries tool results (Anthropic's form) is a tool's."""
        kind = KINDS[self.role]
        if kind == "human" and not isinstance(self.content, str):
            return "tool" if any(_kind_of(block) in RESULT_BLOCKS for block in self.blocks) else "human"
        return kind

    @property
    def blocks(self) -> Sequence[Any]:
        """The content blocks; empty where the content is plain text."""
        return () if self.content is None or isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """All text of the content, calls left out, images and audio left out."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(filter(None, map(_block_text, self.blocks)))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls it makes. One carried both as a block and in `tool_calls` counts once."""
        if self.content is None or isinstance(self.content, str):
            return self.tool_calls
        known = {call.id for call in self.tool_calls}
        blocks = (_block_call(block) for block in self.blocks if _kind_of(block) in CALL_BLOCKS)
        return self.tool_calls + tuple(call for call in blocks if not self.tool_calls or call.id not in known)

    @property
    def answers(self) -> tuple[str | None, ...]:
        """Ids of the calls a tool message answers; None stands for a result that names no call."""
        if self.tool_call_id is not None:
            return (self.tool_call_id,)
        results = (block for block in self.blocks if _kind_of(block) in RESULT_BLOCKS)
        return tuple(_text(block.get("tool_use_id") or block.get("call_id")) for block in results) or (None,)

    @property
    def media(self) -> int:
        """How many images, recordings, videos and files it carries."""
        return _count_media(self.blocks)

    @property
    def thinks(self) -> bool:
        """Whether it holds the thinking of a model, as blocks that a provider may want back."""
        return any(_kind_of(block) in THINKING_BLOCKS for block in self.blocks)

    @property
    def key(self) -> str:
        """Identity by content, 16 hexadecimal digits: equal messages have equal keys, on every machine."""
        parts = (self.kind, self.name, self.text, self.media, self.answers if self.kind == "tool" else None)
        calls = [(call.name, call.arguments, call.id) for call in self.calls]
        return hashlib.blake2b(repr((parts, calls)).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The OpenAI chat dict of this message, without the fields it does not have."""
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            wire["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        optional = {"tool_call_id": self.tool_call_id, "name": self.name, "timestamp": self.timestamp}
        return wire | {key: value for key, value in optional.items() if value is not None}


ChatMessage = Mapping[str, Any] | Message


def as_message(message: ChatMessage, index: int = 0) -> Message:
    """Reads a chat dict; a `Message` comes back as it is.

    Args:
        message: an OpenAI chat dict (Anthropic's content blocks and the older `function_call` are understood), or
            a `Message`.
        index: its place in the history, for the error's text.

    Raises:
        InvalidMessage: it is not a mapping, has no role or one nobody uses, or its content is of another type.
    """
    if type(message) is not dict:  # nearly every message is one, and this is the quickest test
        if isinstance(message, Message):
            if message.role not in KINDS:
                raise InvalidMessage(f"message {index}: role {message.role!r} is none of {', '.join(KINDS)}")
            return message
        if not isinstance(message, Mapping):
            raise InvalidMessage(f"message {index}: expected a chat dict or a Message, found {type(message).__name__}")
    get = message.get
    role, content, calls, name = get("role"), get("content"), get("tool_calls"), get("name")
    answers, timestamp = get("tool_call_id"), get("timestamp")
    if not isinstance(role, str) or role not in KINDS:
        found = f"role {role!r} is none of {', '.join(KINDS)}" if "role" in message else "it has no 'role'"
        raise InvalidMessage(f"message {index}: {found}")
    if not (
        (content is None or isinstance(content, TEXT_OR_LIST))
        and (calls is None or isinstance(calls, LIST))
        and (name is None or isinstance(name, str))
        and (answers is None or isinstance(answers, str))
        and (timestamp is None or isinstance(timestamp, NUMBER))
    ):
        raise InvalidMessage(f"message {index}: {_wrong_field(message)}")
    if get("function_call"):
        calls = [*(calls or ()), get("function_call")]
    read = tuple([_wire_call(call, index) for call in calls]) if calls else ()
    return Message(role, content, read, answers, name, timestamp)


def _wrong_field(message: Mapping[str, Any]) -> str:
    """What is the matter with a chat dict of which one field has a wrong type."""
    for field, types, expected in (
        ("content", TEXT_OR_LIST, "text, a list of blocks or null"),
        ("tool_calls", LIST, "a list of calls or null"),
        ("name", str, "text or null"),
        ("tool_call_id", str, "text or null"),
    ):
        value = message.get(field)
        if value is not None and not isinstance(value, types):
            return f"{field!r} is {type(value).__name__}; expected {expected}"
    return f"'timestamp' is {type(message['timestamp']).__name__}; expected seconds or null"


def as_messages(messages: Sequence[ChatMessage]) -> list[Message]:
    """Reads a history, oldest first; see `as_message`."""
    return [as_message(message, index) for index, message in enumerate(messages)]


def _kind_of(block: object) -> str | None:
    kind = block.get("type") if isinstance(block, Mapping) else None
    return kind if isinstance(kind, str) else None


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    kind = _kind_of(block)
    if not isinstance(block, Mapping) or kind in CALL_BLOCKS or kind in MEDIA_BLOCKS:
        return ""
    for key in TEXT_KEYS:
        value = block.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, Sequence):
            return "\n".join(filter(None, map(_block_text, value)))
    return "" if kind in RESULT_BLOCKS else json.dumps(block, default=str, ensure_ascii=False)


def _count_media(blocks: Sequence[Any]) -> int:
    """Media among the blocks, and within the results of tools among them."""
    count = 0
    for block in blocks:
        if _kind_of(block) in MEDIA_BLOCKS:
            count += 1
        elif _kind_of(block) in RESULT_BLOCKS and isinstance(block.get("content"), list | tuple):
            count += _count_media(block["content"])
    return count


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield str(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps({} if value is None else value, default=str, ensure_ascii=False)


def _block_call(block: Mapping[str, Any]) -> ToolCall:
    arguments = next((block[key] for key in ("input", "args", "arguments") if key in block), None)
    return ToolCall(str(block.get("name") or ""), _arguments(arguments), _text(block.get("call_id") or block.get("id")))


def _wire_call(call: object, index: int) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise InvalidMessage(
            f"message {index}: a tool call is {call!r:.80}; expected a mapping with 'function' and 'id'"
        )
    arguments = function.get("arguments", function.get("args"))
    return ToolCall(str(function.get("name") or ""), _arguments(arguments), _text(call.get("id")))
