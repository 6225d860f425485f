"""Real chains over real stores: every message is stored once, the prompt stays short, the booking code stays in it."""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.chains import ConversationChain
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_histories import BOOKING, Recorder, SQLChatMessageHistory, Store, problems, say
from sqlalchemy import create_engine

from langchain_lre import LREChatMessageHistory, LREConversationMemory
from lre_core.tokens import counter

BUDGET = 2_048
SESSION: Any = {"configurable": {"session_id": "1"}}
PROMPT = ChatPromptTemplate([("system", "You plan trips."), MessagesPlaceholder("history"), ("human", "{input}")])


def with_history(chain: Any, histories: Callable[[str], BaseChatMessageHistory], **keys: Any) -> Runnable[Any, Any]:
    """LangChain's own wrapper, which says that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return RunnableWithMessageHistory(chain, histories, **keys)


def tokens(messages: list[BaseMessage]) -> int:
    count = counter()
    return sum(count(str(message.content)) + 3 for message in messages)


def check(model: Recorder, stored: list[BaseMessage], turns: int, budget: int = BUDGET) -> None:
    """What was said is stored once and in order; every prompt was valid and within budget."""
    questions = [message.content for message in stored if isinstance(message, HumanMessage)]
    answers = [str(message.content) for message in stored if isinstance(message, AIMessage)]
    assert questions == [say(n) for n in range(1, turns + 1)]
    assert [answer.split(":")[0] for answer in answers] == [f"Answer {n}" for n in range(1, turns + 1)]
    assert len(stored) == 2 * turns
    for n, prompt in enumerate(model.prompts, 1):
        assert problems(prompt) == []
        assert prompt[-1].content == say(n)
        assert tokens(prompt[:-1]) <= budget + 20  # the system prompt of these chains
    assert tokens(stored) > 4 * budget


def knows_the_booking(prompt: list[BaseMessage]) -> bool:
    return any(BOOKING in str(message.content) for message in prompt)


def test_an_lcel_chain_over_sqlite_for_200_turns(tmp_path: Path) -> None:
    model = Recorder()
    engine = create_engine(f"sqlite:///{tmp_path}/chats.db")

    def history(session_id: str) -> BaseChatMessageHistory:
        return LREChatMessageHistory(SQLChatMessageHistory(session_id, connection=engine), max_tokens=BUDGET)

    chain = with_history(PROMPT | model, history, input_messages_key="input", history_messages_key="history")
    for n in range(1, 201):
        chain.invoke({"input": say(n)}, SESSION)
    check(model, SQLChatMessageHistory("1", connection=engine).messages, 200)
    assert SQLChatMessageHistory("2", connection=engine).messages == []
    assert knows_the_booking(model.prompts[-1])


def test_the_same_asynchronously() -> None:
    model, store = Recorder(), Store()
    history = LREChatMessageHistory(store, max_tokens=500)
    chain = with_history(
        PROMPT | model, lambda session_id: history, input_messages_key="input", history_messages_key="history"
    )

    async def talk() -> None:
        for n in range(1, 81):
            await chain.ainvoke({"input": say(n)}, SESSION)

    asyncio.run(talk())
    check(model, store.stored, 80, 500)


@pytest.mark.parametrize("fresh", [False, True], ids=["one object", "an object a request"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_case_13_without_a_history_key_no_message_is_stored_twice(fresh: bool, asynchronous: bool) -> None:
    model, store = Recorder(), Store()
    kept = LREChatMessageHistory(store, max_tokens=600)

    def history(session_id: str) -> BaseChatMessageHistory:
        return LREChatMessageHistory(store, max_tokens=600) if fresh else kept

    chain = with_history(model, history)

    async def talk() -> None:
        for n in range(1, 81):
            await chain.ainvoke([HumanMessage(say(n))], SESSION)

    if asynchronous:
        asyncio.run(talk())
    else:
        for n in range(1, 81):
            chain.invoke([HumanMessage(say(n))], SESSION)
    check(model, store.stored, 80, 600)
    # The view did shrink between turns, and so the length by which LangChain tells old from new.
    assert any(len(after) < len(before) for before, after in itertools.pairwise(model.prompts))


def conversation(model: Recorder, memory: LREConversationMemory) -> Any:
    """LangChain's own chain, which says that it is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return ConversationChain(llm=model, memory=memory)


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync, over SQLite", "async, in memory"])
def test_a_conversation_chain_for_200_turns(asynchronous: bool, tmp_path: Path) -> None:
    model, engine = Recorder(), create_engine(f"sqlite:///{tmp_path}/chats.db")
    store = {} if asynchronous else {"chat_memory": SQLChatMessageHistory("1", connection=engine)}
    memory = LREConversationMemory(max_token_limit=BUDGET, **store)
    chain = conversation(model, memory)

    async def talk() -> None:
        for n in range(1, 201):
            await chain.ainvoke({"input": say(n)})

    if asynchronous:
        asyncio.run(talk())
    else:
        for n in range(1, 201):
            chain.invoke({"input": say(n)})
    stored = memory.chat_memory.messages if asynchronous else SQLChatMessageHistory("1", connection=engine).messages
    assert [message.content for message in stored[::2]] == [say(n) for n in range(1, 201)]
    assert len(stored) == 400
    prompts = [str(prompt[0].content) for prompt in model.prompts]
    assert max(counter()(prompt) for prompt in prompts) <= BUDGET + 120  # the chain's own words and the question
    assert tokens(stored) > 4 * BUDGET
    assert f"Human: {say(3)}" in prompts[-1]
    assert f"AI: {stored[-3].content}" in prompts[-1]


def test_langchain_10078_a_conversation_chain_over_sqlite_goes_on_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/chats.db"
    shown: list[dict[str, Any]] = []
    for restart in range(3):
        model = Recorder()
        store = SQLChatMessageHistory("1", connection=url)
        memory = LREConversationMemory(max_token_limit=500, chat_memory=store)
        if shown:
            assert memory.load_memory_variables({}) == shown[-1]
        chain = conversation(model, memory)
        for n in range(25 * restart + 1, 25 * restart + 26):
            chain.invoke({"input": say(n)})
        shown.append(memory.load_memory_variables({}))
    stored = SQLChatMessageHistory("1", connection=url).messages
    assert [message.content for message in stored[::2]] == [say(n) for n in range(1, 76)]
    assert counter()(shown[-1]["history"]) <= 500
    assert tokens(stored) > 4 * 500
