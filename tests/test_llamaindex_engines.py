"""Chat engines and agents on `LREChatMemoryBuffer`: what they answered on the original, and valid prompts beyond."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from histories import Chat, problems
from llama_index.core.agent.workflow import AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer, Memory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llama_index.core.workflow import Context
from llamaindex_histories import (
    DEPRECATED,
    ERRANDS,
    QUESTIONS,
    TURNS,
    UNCLOSED,
    Model,
    ReasoningModel,
    WritingStore,
    look_up,
    unclosed,
    work,
)

from llamaindex_lre import LREChatMemoryBuffer, LREMemory

__all__ = ["unclosed"]

ROOMY, TIGHT = 100_000, 400
MEMORIES = [(LREChatMemoryBuffer, ChatMemoryBuffer), (LREMemory, Memory)]


class Shelf(BaseRetriever):
    """Finds the same page whatever is asked."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text="Books are refunded within 30 days.", id_="page"))]


def simple(model: Model, memory: BaseMemory) -> BaseChatEngine:
    return SimpleChatEngine.from_defaults(memory=memory, llm=model.llm, system_prompt="Be brief. " * 10)


def context(model: Model, memory: BaseMemory) -> BaseChatEngine:
    return ContextChatEngine.from_defaults(Shelf(), memory=memory, llm=model.llm, system_prompt="Be brief.")


def condense_plus_context(model: Model, memory: BaseMemory) -> BaseChatEngine:
    return CondensePlusContextChatEngine.from_defaults(Shelf(), memory=memory, llm=model.llm, system_prompt="Be brief.")


async def streamed(engine: BaseChatEngine, question: str) -> str:
    response = await engine.astream_chat(question)
    return "".join([delta async for delta in response.async_response_gen()])


async def awaited(engine: BaseChatEngine, question: str) -> str:
    return str(await engine.achat(question))


async def called(engine: BaseChatEngine, question: str) -> str:
    return str(engine.chat(question))


Ask = Callable[[BaseChatEngine, str], Any]


async def chat(ask: Ask, engine: BaseChatEngine) -> list[str]:
    return [await ask(engine, question) for question in QUESTIONS]


def refused(prompts: list[list[Chat]]) -> list[list[str]]:
    return [found for prompt in prompts if (found := problems(prompt))]


pytestmark = [
    DEPRECATED,
    # LlamaIndex's own ReActAgent asks it.
    pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning"),
    UNCLOSED,
]


@pytest.mark.parametrize(("ours", "original"), MEMORIES)
@pytest.mark.parametrize(
    ("engine", "ask"),
    [(simple, called), (simple, awaited), (context, called), (condense_plus_context, awaited)],
)
def test_an_engine_answers_as_with_the_original_while_all_fits(
    engine: Callable[[Model, BaseMemory], BaseChatEngine], ask: Ask, ours: Any, original: Any
) -> None:
    answers, expected = (
        asyncio.run(chat(ask, engine(Model(), kind.from_defaults(token_limit=ROOMY)))) for kind in (ours, original)
    )
    assert answers == expected
    assert len(set(answers)) == TURNS


@pytest.mark.parametrize("kind", [LREChatMemoryBuffer, LREMemory])
@pytest.mark.parametrize(
    ("engine", "ask"),
    [(simple, called), (simple, streamed), (context, awaited), (condense_plus_context, called)],
)
def test_an_engine_sends_valid_prompts_when_not_all_fits(
    engine: Callable[[Model, BaseMemory], BaseChatEngine], ask: Ask, kind: Any
) -> None:
    model, memory = Model(), kind.from_defaults(token_limit=TIGHT)
    asyncio.run(chat(ask, engine(model, memory)))
    assert refused(model.prompts) == []
    assert [message.content for message in memory.get_all()][::2] == QUESTIONS
    assert 5 < len(memory.get()) < 2 * TURNS - 20
    assert max(len(prompt) for prompt in model.prompts) < 2 * TURNS - 20


def agent(model: Model, **settings: Any) -> FunctionAgent:
    return FunctionAgent(tools=[look_up], llm=model.llm, system_prompt="Be brief.", **settings)


def reasoning(model: Model, **settings: Any) -> ReActAgent:
    return ReActAgent(tools=[look_up], llm=model.llm, system_prompt="Be brief.", **settings)


def coding(model: Model, **settings: Any) -> CodeActAgent:
    return CodeActAgent(execute, llm=model.llm, system_prompt="Be brief.", **settings)


async def execute(code: str) -> str:
    """Runs a line of code."""
    return f"ran {code}"


class CodingModel(Model):
    """The same for an agent that calls by writing code."""

    def _asked(self, last: Chat) -> bool:
        return bool(last["role"] == "user") and not last["content"].startswith("Result of executing")

    def _can_call(self, kwargs: Chat) -> bool:
        return True

    def _call(self, mark: int) -> ChatMessage:
        return ChatMessage(role="assistant", content=f"<execute>look_up({mark % 1000})</execute>")


Make = Callable[..., Any]
AGENTS = [(agent, Model), (reasoning, ReasoningModel), (coding, CodingModel)]


async def work_in_context(worker: FunctionAgent, memory: BaseMemory, errands: list[str], written: bool) -> list[str]:
    """The same with a context that carries it on; `written` down and read again before every turn."""
    ctx = Context(worker)
    answers = []
    for errand in errands:
        answers.append(str(await worker.run(user_msg=errand, ctx=ctx, memory=memory)))
        if written:
            ctx = Context.from_dict(worker, json.loads(json.dumps(ctx.to_dict())))
    return answers


@pytest.mark.parametrize(("ours", "original"), MEMORIES)
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(("kind", "model"), AGENTS)
def test_an_agent_answers_as_with_the_original_while_all_fits(
    kind: Make, model: type[Model], streaming: bool, ours: Any, original: Any
) -> None:
    errands = ERRANDS[: TURNS // 3 if streaming else TURNS]
    answers, expected = (
        asyncio.run(work(kind(model(), streaming=streaming), memory.from_defaults(token_limit=ROOMY), errands))
        for memory in (ours, original)
    )
    assert answers == expected
    assert len(set(answers)) == len(errands)


@pytest.mark.parametrize("ours", [LREChatMemoryBuffer, LREMemory])
@pytest.mark.parametrize(("kind", "model"), AGENTS)
def test_an_agent_sends_valid_prompts_when_not_all_fits(kind: Make, model: type[Model], ours: Any) -> None:
    asked, memory = model(), ours.from_defaults(token_limit=TIGHT)
    asyncio.run(work(kind(asked), memory))
    assert refused(asked.prompts) == []
    # What code gave is a user's message too.
    assert [message.content for message in memory.get_all() if message.content in ERRANDS] == ERRANDS
    assert 3 < len(memory.get()) < len(memory.get_all()) / 2


def test_parallel_calls_stay_together() -> None:
    model, memory = Model(calls=3), LREChatMemoryBuffer.from_defaults(token_limit=TIGHT)
    asyncio.run(work(agent(model), memory))
    assert refused(model.prompts) == []
    assert 5 < len(memory.get()) < len(memory.get_all()) / 2


def test_an_agent_in_a_workflow_sends_valid_prompts_too() -> None:
    model, memory = Model(), LREChatMemoryBuffer.from_defaults(token_limit=TIGHT)
    workflow = AgentWorkflow(agents=[agent(model, name="clerk", description="answers")], root_agent="clerk")
    asyncio.run(work(workflow, memory, ERRANDS[:15]))
    assert refused(model.prompts) == []
    assert [message.content for message in memory.get_all() if message.role == "user"] == ERRANDS[:15]


@pytest.mark.parametrize(
    ("limit", "store", "written"),
    [(TIGHT, SimpleChatStore, False), (TIGHT, WritingStore, True), (ROOMY, SimpleChatStore, True)],
)
def test_case_24_a_context_carries_the_memory_on(limit: int, store: type[BaseChatStore], written: bool) -> None:
    def memory() -> LREChatMemoryBuffer:
        return LREChatMemoryBuffer.from_defaults(token_limit=limit, chat_store=store())

    expected = asyncio.run(work(agent(Model()), memory(), ERRANDS[:12]))
    assert asyncio.run(work_in_context(agent(Model()), memory(), ERRANDS[:12], written)) == expected


def test_case_22_the_agents_state_stays_out_of_the_stored_message() -> None:
    model, memory = Model(), LREChatMemoryBuffer.from_defaults(token_limit=ROOMY)
    clerk = agent(model, initial_state={"customer": "Mara"})
    asyncio.run(work(clerk, memory, ERRANDS[:3]))
    assert "Mara" in model.prompts[0][-1]["content"]
    assert [message.content for message in memory.get_all() if message.role == "user"] == ERRANDS[:3]
