"""A process that dies in the middle of a run: the next one shows the model what the first would have shown it.

The stores are real: SQLite files, and PostgreSQL and Redis servers that the tests start.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from agents import Answer, Scripted, look, react_agent, rounds, stored, texts
from langchain.agents import create_agent
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage, HumanMessage, messages_from_dict, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langchain_lre import LREMiddleware, lre_pre_model_hook

BUDGET = 1_500
STEPS = 9
TURNS = 4
THREAD: Any = {"configurable": {"thread_id": "1"}}
DIES_AT = (3, 14, 15, 28)
"""The calls of the model at which the process dies; four of forty."""

Prompts = list[list[tuple[str, str]]]
Agent = Callable[[Scripted, Any], Any]


class Died(Exception):
    """What ends a process in these tests."""


def die(_: Sequence[BaseMessage]) -> Any:
    raise Died


def script() -> Iterator[Answer]:
    """The answers, and the deaths among them."""
    for n, answer in enumerate(rounds(steps=STEPS)):
        yield from [die] * (n in DIES_AT)
        yield answer


def by_middleware(model: Scripted, checkpointer: Any) -> Any:
    return create_agent(model, [look], middleware=[LREMiddleware(BUDGET)], checkpointer=checkpointer)


def by_hook(model: Scripted, checkpointer: Any) -> Any:
    return react_agent(model, [look], lre_pre_model_hook(BUDGET), checkpointer)


@pytest.fixture(scope="module", params=[by_middleware, by_hook])
def agent(request: pytest.FixtureRequest) -> Agent:
    """Makes anew all that a process has in memory."""
    made: Agent = request.param
    return made


def question(n: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"Question {n}: what is on the shelves?")]}


@pytest.fixture(scope="module")
def undisturbed(agent: Agent) -> Prompts:
    """The prompts of one process that lives to the end."""
    model = Scripted(script=rounds(steps=STEPS))
    graph = agent(model, InMemorySaver())
    for n in range(TURNS):
        graph.invoke(question(n), THREAD)
    prompts = [texts(prompt) for prompt in model.prompts]
    changed = sum(later[: len(before)] != before for before, later in itertools.pairwise(prompts))
    assert changed > 3, "too few evictions to tell"
    return prompts


def once_each(prompts: list[list[BaseMessage]]) -> Prompts:
    """The prompts without those at which the process died, each of which the next process must send again."""
    shown = [texts(prompt) for prompt in prompts]
    again = [n + lost for lost, n in enumerate(DIES_AT)]
    assert all(shown[n] == shown[n + 1] for n in again)
    return [prompt for n, prompt in enumerate(shown) if n not in again]


@contextmanager
def postgres(url: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        yield saver


@asynccontextmanager
async def postgres_async(url: str) -> AsyncIterator[AsyncPostgresSaver]:
    async with AsyncPostgresSaver.from_conn_string(url) as saver:
        await saver.setup()
        yield saver


def check(open_store: Callable[[], AbstractContextManager[Any]], agent: Agent, undisturbed: Prompts) -> None:
    answers, prompts = script(), []
    for n in range(TURNS):
        asked: Any = question(n)
        while True:
            model = Scripted(script=answers)
            with open_store() as saver:
                try:
                    result = agent(model, saver).invoke(asked, THREAD)
                except Died:
                    asked = None  # go on from the last checkpoint
                    continue
                finally:
                    prompts += model.prompts
            break
    assert once_each(prompts) == undisturbed
    assert len(stored(result)) == TURNS * (2 * STEPS + 2)


async def check_async(
    open_store: Callable[[], AbstractAsyncContextManager[Any]], agent: Agent, undisturbed: Prompts
) -> None:
    answers, prompts = script(), []
    for n in range(TURNS):
        asked: Any = question(n)
        while True:
            model = Scripted(script=answers)
            async with open_store() as saver:
                try:
                    result = await agent(model, saver).ainvoke(asked, THREAD)
                except Died:
                    asked = None
                    continue
                finally:
                    prompts += model.prompts
            break
    assert once_each(prompts) == undisturbed
    assert len(stored(result)) == TURNS * (2 * STEPS + 2)


def test_over_sqlite(tmp_path: Path, agent: Agent, undisturbed: Prompts) -> None:
    check(lambda: SqliteSaver.from_conn_string(str(tmp_path / "threads.db")), agent, undisturbed)


def test_over_sqlite_asynchronously(tmp_path: Path, agent: Agent, undisturbed: Prompts) -> None:
    file = str(tmp_path / "threads.db")
    asyncio.run(check_async(lambda: AsyncSqliteSaver.from_conn_string(file), agent, undisturbed))


def test_over_postgresql(postgresql_url: str, agent: Agent, undisturbed: Prompts) -> None:
    check(lambda: postgres(postgresql_url), agent, undisturbed)


def test_over_postgresql_asynchronously(postgresql_url: str, agent: Agent, undisturbed: Prompts) -> None:
    asyncio.run(check_async(lambda: postgres_async(postgresql_url), agent, undisturbed))


class RedisHistory(BaseChatMessageHistory):
    """A history in a Redis list, as the public packages for it keep one."""

    def __init__(self, url: str, session_id: str) -> None:
        self._url, self._key = url, f"chat:{session_id}"

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        with redis.Redis.from_url(self._url, decode_responses=True) as client:
            return messages_from_dict(list(map(json.loads, client.lrange(self._key, 0, -1))))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        with redis.Redis.from_url(self._url) as client:
            client.rpush(self._key, *map(json.dumps, messages_to_dict(messages)))

    def clear(self) -> None:
        with redis.Redis.from_url(self._url) as client:
            client.delete(self._key)


@pytest.mark.parametrize("restarts", [False, True])
def test_an_agent_whose_history_is_in_redis(redis_url: str, agent: Agent, undisturbed: Prompts, restarts: bool) -> None:
    answers, prompts = rounds(steps=STEPS), []
    graph: Any = None
    for n in range(TURNS):
        model = Scripted(script=answers)
        if restarts or graph is None:
            graph, kept_model = agent(model, None), model
        history = RedisHistory(redis_url, "1")
        before = history.messages
        result = graph.invoke({"messages": [*before, *question(n)["messages"]]})
        history.add_messages(stored(result)[len(before) :])
        prompts += kept_model.prompts
        kept_model.prompts.clear()
    assert [texts(prompt) for prompt in prompts] == undisturbed
    assert len(RedisHistory(redis_url, "1").messages) == TURNS * (2 * STEPS + 2)
