"""LlamaIndex for the tests: chat dicts as its messages and back, stores that write down, a model that reads all."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Sequence
from typing import Any

from histories import CALL_BLOCKS, RESULT_BLOCKS, Chat, blocks_of, problems, words
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.storage.chat_store import BaseChatStore

from llamaindex_lre import LREChatMemoryBuffer, to_message
from lre_core.tokens import message_tokens

LIMIT = 200
"""Tokens that `memory` may show, where a test does not say otherwise; a token is a word."""
CARRIED = ("tool_calls", "tool_call_id", "function_call", "name")


def chat_message(chat: Chat) -> ChatMessage:
    """A chat dict as LlamaIndex would hold it. It has no block for results: they are messages of their own."""
    extra = {key: chat[key] for key in CARRIED if key in chat}
    results = [block for block in blocks_of(chat) if block["type"] in RESULT_BLOCKS]
    if results:
        (result,) = results
        text = "\n".join(block["text"] for block in result["content"])
        return ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": result["tool_use_id"]})
    if isinstance(chat["content"], list):
        return ChatMessage(role=chat["role"], blocks=list(map(_block, chat["content"])), additional_kwargs=extra)
    return ChatMessage(role=chat["role"], content=chat["content"], additional_kwargs=extra)


def _block(block: Chat) -> Any:
    if block["type"] == "text":
        return TextBlock(text=block["text"])
    if block["type"] == "thinking":
        return ThinkingBlock(content=block["thinking"], additional_information={"signature": block["signature"]})
    if block["type"] in CALL_BLOCKS:
        return ToolCallBlock(tool_call_id=block["id"], tool_name=block["name"], tool_kwargs=block["input"])
    return ImageBlock(url=block["image_url"]["url"])


def wire(message: ChatMessage) -> Chat:
    """What a message says and how it pairs, as a chat dict; for `problems`."""
    chat: Chat = {"role": message.role.value, "content": message.content}
    chat |= {key: message.additional_kwargs[key] for key in CARRIED if key in message.additional_kwargs}
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    if blocks:
        chat["tool_calls"] = [{"id": block.tool_call_id, "name": block.tool_name} for block in blocks]
    return chat


def said(turns: int, size: int = 8) -> list[ChatMessage]:
    """A chat of so many turns, no two messages alike."""
    return [
        ChatMessage(role="assistant" if n % 2 else "user", content=f"{n} {words(n, size)}") for n in range(2 * turns)
    ]


def memory(messages: list[ChatMessage] | None = None, **settings: Any) -> LREChatMemoryBuffer:
    return LREChatMemoryBuffer.from_defaults(
        **{"chat_history": messages, "token_limit": LIMIT, "tokenizer_fn": str.split, **settings}
    )


def texts(messages: list[ChatMessage]) -> list[str | None]:
    return [message.content for message in messages]


def tokens(messages: list[ChatMessage]) -> int:
    return sum(message_tokens(to_message(message), lambda text: len(text.split())) for message in messages)


def refused(messages: list[ChatMessage]) -> list[str]:
    chats = list(map(wire, messages))
    return problems(chats, human_first=any(chat["role"] == "user" for chat in chats))


def tool_turn(n: int, result: str = "found", calls: int = 1) -> list[ChatMessage]:
    ids = [f"call_{n}_{k}" for k in range(calls)]
    made = [ToolCallBlock(tool_call_id=id, tool_name="look_up", tool_kwargs={"n": n}) for id in ids]
    return [
        ChatMessage(role="user", content=f"look up number {n}"),
        ChatMessage(role="assistant", blocks=made),
        *(ChatMessage(role="tool", content=f"{result} {id}", additional_kwargs={"tool_call_id": id}) for id in ids),
        ChatMessage(role="assistant", content=f"number {n} is here"),
    ]


class WritingStore(BaseChatStore):
    """Keeps messages as text, as a database does: every read makes new objects, every write is a read and a write."""

    written: dict[str, str] = Field(default_factory=dict)
    loses: list[str] = Field(default_factory=list)
    pause: float = 0

    @classmethod
    def class_name(cls) -> str:
        return "WritingStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        dumped = [message.model_dump(mode="json") for message in messages]
        for lost in self.loses:
            for message in dumped:
                message["additional_kwargs"].pop(lost, None)
        self.written[key] = json.dumps(dumped)

    def get_messages(self, key: str) -> list[ChatMessage]:
        return [ChatMessage.model_validate(dumped) for dumped in json.loads(self.written.get(key, "[]"))]

    def add_message(self, key: str, message: ChatMessage) -> None:
        messages = self.get_messages(key)
        time.sleep(self.pause)
        self.set_messages(key, [*messages, message])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        messages = self.get_messages(key)
        self.written.pop(key, None)
        return messages

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        messages = self.get_messages(key)
        deleted = messages.pop(idx)
        self.set_messages(key, messages)
        return deleted

    def delete_last_message(self, key: str) -> ChatMessage | None:
        return self.delete_message(key, -1)

    def get_keys(self) -> list[str]:
        return list(self.written)


class Model:
    """A model whose answer depends on every word of its prompt: equal answers mean equal prompts.

    Asked to "look up", it first calls the tool, as often as it was told.

    Attributes:
        llm: the model, as LlamaIndex takes it.
        prompts: all that it was given.
    """

    def __init__(self, calls: int = 1) -> None:
        self.calls = calls
        self.prompts: list[list[Chat]] = []
        self.llm = MockFunctionCallingLLM(response_generator=self._answer, is_chat_model=True)

    def _answer(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        prompt = list(map(wire, messages))
        self.prompts.append(prompt)
        mark = zlib.crc32(json.dumps(prompt).encode())
        if kwargs.get("tools") and prompt[-1]["role"] == "user" and "look up" in prompt[-1]["content"]:
            calls: list[Any] = [
                ToolCallBlock(tool_call_id=f"{mark}_{n}", tool_name="look_up", tool_kwargs={"n": n + mark % 1000})
                for n in range(self.calls)
            ]
            return ChatMessage(role="assistant", blocks=calls)
        return ChatMessage(role="assistant", content=f"answer {mark} of {len(prompt)} messages")
