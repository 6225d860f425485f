"""`LREConversationMemory` in the place of the classic memories: what they take, it takes; what they give, it gives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.memory import ConversationBufferMemory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_histories import Recorder, SQLChatMessageHistory, Store, say
from pydantic import ValidationError

from langchain_lre import LREConversationMemory
from lre_core import InvalidSetting, UnknownScorer


def classic(**fields: Any) -> ConversationBufferMemory:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return ConversationBufferMemory(**fields)


class Counting(Recorder):
    """A model that counts a token a word."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
        return sum(len(str(message.content).split()) for message in messages)


FIELDS: list[dict[str, Any]] = [
    {},
    {"return_messages": True},
    {"memory_key": "chat_history", "human_prefix": "Guest", "ai_prefix": "Clerk"},
    {"input_key": "question", "output_key": "answer"},
]


@pytest.mark.parametrize("fields", FIELDS, ids=lambda fields: "+".join(fields) or "bare")
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_below_the_limit_it_gives_what_conversation_buffer_memory_gives(
    fields: dict[str, Any], asynchronous: bool
) -> None:
    ours, theirs = LREConversationMemory(max_token_limit=2_000, **fields), classic(**fields)
    for memory in (ours, theirs):
        inputs: dict[str, Any] = {"input": "hi"}
        outputs = {"response": "hello"}
        if "input_key" in fields:
            inputs, outputs = {"question": "hi", "style": "brief"}, {"answer": "hello", "source": "none"}
        if asynchronous:
            asyncio.run(memory.asave_context(inputs, outputs))
        else:
            memory.save_context(inputs, outputs)
    assert ours.memory_variables == theirs.memory_variables
    assert ours.load_memory_variables({}) == theirs.load_memory_variables({})
    assert asyncio.run(ours.aload_memory_variables({})) == theirs.load_memory_variables({})
    assert ours.buffer == theirs.buffer
    assert ours.buffer_as_str == theirs.buffer_as_str
    assert ours.buffer_as_messages == theirs.buffer_as_messages
    (asyncio.run(ours.aclear()) if asynchronous else ours.clear())
    assert ours.load_memory_variables({}) == classic(**fields).load_memory_variables({})


def test_above_the_limit_the_view_shrinks_and_the_store_keeps_all() -> None:
    memory = LREConversationMemory(max_token_limit=300)
    for n in range(1, 41):
        memory.save_context({"input": say(n)}, {"output": f"Stop {n} is pretty. " * 4})
        assert memory.view.tokens <= 300
        assert f"AI: Stop {n} is pretty." in memory.buffer
    assert len(memory.chat_memory.messages) == 80
    shown = memory.buffer_as_messages
    assert 4 < len(shown) < 40
    assert all(any(message is stored for stored in memory.chat_memory.messages) for message in shown)


def test_messages_put_into_the_store_directly_are_seen() -> None:
    memory = LREConversationMemory(max_token_limit=2_000, return_messages=True)
    memory.chat_memory.add_user_message("hi")
    assert memory.buffer == [HumanMessage("hi")]
    memory.chat_memory.add_ai_message("hello")
    assert memory.load_memory_variables({}) == {"history": [HumanMessage("hi"), AIMessage("hello")]}


def test_a_model_counts_the_tokens_as_for_conversation_token_buffer_memory() -> None:
    model: BaseChatModel = Counting()
    memory = LREConversationMemory(llm=model, max_token_limit=60, return_messages=True)
    for n in range(30):
        memory.save_context({"input": f"what about stop {n}"}, {"output": "it is pretty there"})
        shown = memory.load_memory_variables({})["history"]
        assert model.get_num_tokens_from_messages(shown) <= 60
        assert memory.view.tokens == model.get_num_tokens_from_messages(shown)
    assert 4 < len(shown) < 60


def test_settings_are_taken_by_name_and_wrong_ones_are_refused() -> None:
    memory = LREConversationMemory(
        max_token_limit=100, keep_recent=2, token_counter=len, pin=lambda message: message.content == "My name is Ana."
    )
    memory.chat_memory.add_messages([HumanMessage("My name is Ana."), *[AIMessage(str(n)) for n in range(200)]])
    assert len(memory.view.messages) <= 100
    assert memory.view.messages[0].content == "My name is Ana."
    with pytest.raises(InvalidSetting, match="budget is 0"):
        LREConversationMemory(max_token_limit=0)
    with pytest.raises(UnknownScorer, match="'agnet'"):
        LREConversationMemory(scorer="agnet")
    with pytest.raises(ValidationError, match="max_tokens"):
        LREConversationMemory(max_tokens=100)


def test_it_stands_over_any_store(tmp_path: Path) -> None:
    for store in (Store(), SQLChatMessageHistory("1", connection=f"sqlite:///{tmp_path}/chats.db")):
        memory = LREConversationMemory(max_token_limit=300, chat_memory=store)
        assert memory.chat_memory is store
        memory.save_context({"input": "hi"}, {"output": "hello"})
        assert memory.buffer == "Human: hi\nAI: hello"
        assert len(store.messages) == 2


def test_without_langchain_classic_only_the_memory_is_missing() -> None:
    script = """
import sys
for name in ("langchain_classic", "langchain", "langgraph"):
    sys.modules[name] = None
import lre_core, langchain_lre
from langchain_lre import LREChatMessageHistory, Settings, lre_trim_messages, to_message
agents = ("LREMiddleware", "LREEdit", "lre_pre_model_hook")
for name, extra in (("LREConversationMemory", "langchain-classic"), *((name, "langchain") for name in agents)):
    try:
        getattr(langchain_lre, name)
    except lre_core.MissingExtra as error:
        assert f"pip install 'lre-memory[{extra}]'" in str(error), error
    else:
        raise AssertionError(name)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_nothing_of_ours_warns() -> None:
    script = """
from langchain_lre import LREChatMessageHistory, LREConversationMemory, lre_trim_messages
from langchain_core.messages import HumanMessage
memory = LREConversationMemory(max_token_limit=100)
memory.save_context({"input": "hi"}, {"output": "hello"})
assert memory.load_memory_variables({}) == {"history": "Human: hi\\nAI: hello"}
history = LREChatMessageHistory(memory.chat_memory, max_tokens=100)
assert len(lre_trim_messages(history.messages, max_tokens=100)) == 2
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
