"""LlamaIndex for the tests: chat dicts as its messages and back, stores that write down, a model that reads all."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from histories import CALL_BLOCKS, RESULT_BLOCKS, Chat, blocks_of, problems, words
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import BaseMemory
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


def through_every_way(memory: BaseMemory, messages: Sequence[ChatMessage]) -> list[list[str | None]]:
    """Three messages set, put and put as a list: the texts shown and those stored, and what is shown after a reset."""
    first, second, third = messages
    memory.set([first])
    memory.put(second)
    memory.put_messages([third])
    shown, stored = memory.get(), memory.get_all()
    memory.reset()
    return list(map(texts, (shown, stored, memory.get())))


async def through_every_awaited_way(memory: BaseMemory, messages: Sequence[ChatMessage]) -> list[list[str | None]]:
    first, second, third = messages
    await memory.aset([first])
    await memory.aput(second)
    await memory.aput_messages([third])
    shown, stored = await memory.aget(), await memory.aget_all()
    await memory.areset()
    return list(map(texts, (shown, stored, await memory.aget())))


def put_by_speakers(buffer: Any, speakers: str, count: int, together: str) -> dict[str, list[str]]:
    """Puts `count` messages of every speaker, all speaking at once, in threads or as tasks; what each said."""
    spoken = {speaker: [f"{speaker} says {n}" for n in range(count)] for speaker in speakers}

    def speak(speaker: str) -> None:
        for text in spoken[speaker]:
            buffer.put(ChatMessage(role="user", content=text))
            buffer.get()

    async def aspeak(speaker: str) -> None:
        for text in spoken[speaker]:
            await buffer.aput(ChatMessage(role="user", content=text))
            await buffer.aget()

    async def all_speak() -> None:
        await asyncio.gather(*map(aspeak, spoken))

    if together == "aput":
        asyncio_run(all_speak())
    else:
        with ThreadPoolExecutor(len(spoken)) as threads:
            list(threads.map(speak, spoken))
    return spoken


DEPRECATED = pytest.mark.filterwarnings(
    "ignore::pydantic.PydanticDeprecatedSince20", "ignore::pydantic.PydanticDeprecatedSince211"
)
"""A workflow looks at every attribute of its agents, at those that pydantic deprecates too."""
UNCLOSED = pytest.mark.filterwarnings("ignore:Exception ignored in", "ignore::ResourceWarning")
"""LlamaIndex's stores have no way to close their connections."""


@pytest.fixture(autouse=True)
def unclosed() -> Iterator[None]:
    """Drops a test's connections while the warnings about them are ignored, in the modules that import it."""
    yield
    gc.collect()


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


TURNS = 30
QUESTIONS = [f"{n} {words(n, 12)}" for n in range(TURNS)]
ERRANDS = [f"look up {n} {words(n, 5)}" if n % 3 else question for n, question in enumerate(QUESTIONS)]


def look_up(n: int) -> str:
    """Looks up a number."""
    return f"number {n}: {words(n, 15)}"


class Model:
    """A model whose answer depends on every word of its prompt: equal answers mean equal prompts.

    Asked to "look up", it first calls the tool, as often as it was told.

    Args:
        calls: made at once.
        steps: one after another, each when it has the results of the one before.

    Attributes:
        llm: the model, as LlamaIndex takes it.
        sent: all that it was given.
    """

    def __init__(self, calls: int = 1, steps: int = 1) -> None:
        self.calls, self.steps, self.left = calls, steps, 0
        self.sent: list[list[ChatMessage]] = []
        self.llm = MockFunctionCallingLLM(response_generator=self._answer, is_chat_model=True)

    @property
    def prompts(self) -> list[list[Chat]]:
        """All that it was given, as chat dicts."""
        return [list(map(wire, prompt)) for prompt in self.sent]

    def _answer(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        # An agent goes on writing into the messages it has sent.
        self.sent.append([message.model_copy(deep=True) for message in messages])
        prompt = list(map(wire, messages))
        mark = zlib.crc32(json.dumps(prompt).encode())
        if self._asked(prompt[-1]):
            self.left = self.steps if "look up" in prompt[-1]["content"] else 0
        if self.left and self._can_call(kwargs):
            self.left -= 1
            return self._call(mark)
        return self._say(f"answer {mark} of {len(prompt)} messages")

    def _asked(self, last: Chat) -> bool:
        return bool(last["role"] == "user")

    def _can_call(self, kwargs: Chat) -> bool:
        return bool(kwargs.get("tools"))

    def _call(self, mark: int) -> ChatMessage:
        calls: list[Any] = [
            ToolCallBlock(tool_call_id=f"{mark}_{n}", tool_name="look_up", tool_kwargs={"n": n + mark % 1000})
            for n in range(self.calls)
        ]
        return ChatMessage(role="assistant", blocks=calls)

    def _say(self, text: str) -> ChatMessage:
        return ChatMessage(role="assistant", content=text)


class ReasoningModel(Model):
    """The same for a ReAct agent: it calls and answers in words."""

    def _asked(self, last: Chat) -> bool:
        return last["role"] == "user" and not last["content"].startswith("Observation:")

    def _can_call(self, kwargs: Chat) -> bool:
        return True

    def _call(self, mark: int) -> ChatMessage:
        return ChatMessage(
            role="assistant", content=f'Thought: I look it up.\nAction: look_up\nAction Input: {{"n": {mark % 1000}}}'
        )

    def _say(self, text: str) -> ChatMessage:
        return ChatMessage(role="assistant", content=f"Thought: I know it.\nAnswer: {text}")


async def work(
    worker: BaseWorkflowAgent | AgentWorkflow, memory: BaseMemory, errands: Sequence[str] = ERRANDS, **run: Any
) -> list[str]:
    """The answers of one conversation that the memory alone carries on."""
    return [str(await worker.run(user_msg=errand, memory=memory, **run)) for errand in errands]
