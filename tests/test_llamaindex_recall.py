"""What a memory or an agent no longer shows is found again, word for word: by a method, and by a tool for the model."""

import asyncio
import importlib.util
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, BaseWorkflowAgent, FunctionAgent, ReActAgent
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llamaindex_histories import (
    DEPRECATED,
    ERRANDS,
    LIMIT,
    UNCLOSED,
    Model,
    ReasoningModel,
    look_up,
    said,
    texts,
    tokens,
    tool_turn,
    unclosed,
    wire,
)

import lre_core
from llamaindex_lre import LREChatMemoryBuffer, LREFunctionAgent, LREMemory, LREReActAgent, recall_tool

__all__ = ["unclosed"]

pytestmark = [
    DEPRECATED,
    pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning"),
    UNCLOSED,
]

SECRET = "The alarm of the north gate is switched off with the word bergamot."
TOLD = f"{SECRET} {'It was put there long ago, they say. ' * 8}"
"""The secret in a message that is the first to leave: it is long."""
SHELF = "The shelf holds many books. " * 8
NOTHING = "Nothing earlier that is no longer shown has any of these words."
ROOMY = 100_000

OURS = [LREChatMemoryBuffer, LREMemory]
KINDS = [(LREFunctionAgent, False), (LREReActAgent, True)]


def history() -> list[ChatMessage]:
    told = [ChatMessage(role="user", content="Which word?"), ChatMessage(role="assistant", content=TOLD)]
    return [*told, *tool_turn(7, result=SHELF, calls=2), *said(20)]


def remembering(kind: Any, messages: list[ChatMessage], **settings: Any) -> Any:
    settings = {"token_limit": LIMIT, "tokenizer_fn": str.split, "keep_recent": 1, **settings}
    return kind.from_defaults(chat_history=messages, **settings)


def quoted(found: list[lre_core.Recalled]) -> list[list[str | None]]:
    return [texts(unit.messages) for unit in found]


# The method


@pytest.mark.parametrize("kind", OURS)
def test_what_has_left_is_found_word_for_word_a_step_whole(kind: Any) -> None:
    memory = remembering(kind, history())
    shown, stored = memory.get(), memory.get_all()
    assert TOLD not in texts(shown)
    (found,) = memory.recall("bergamot", k=1)
    assert (texts(found.messages), found.start, found.stop) == ([TOLD], 1, 2)
    (step,) = memory.recall("shelf call_7_1", k=1)
    assert step.messages == tool_turn(7, result=SHELF, calls=2)[1:4]
    assert quoted(asyncio_run(memory.arecall("bergamot", k=1))) == [[TOLD]]
    assert (memory.get(), memory.get_all()) == (shown, stored)
    found.messages[0].blocks.clear()
    assert quoted(memory.recall("bergamot", k=1)) == [[TOLD]]


@pytest.mark.parametrize("kind", OURS)
def test_what_is_shown_is_not_found(kind: Any) -> None:
    memory = remembering(kind, history(), token_limit=5_000)
    assert memory.recall("bergamot") == []
    assert remembering(kind, []).recall("bergamot") == []


def test_what_a_get_with_an_initial_count_does_not_show_is_found_under_the_same_count() -> None:
    memory = remembering(LREChatMemoryBuffer, history(), token_limit=5_000)
    assert TOLD not in texts(memory.get(initial_token_count=4_900))
    assert quoted(memory.recall("bergamot", 1, 4_900)) == [[TOLD]]
    assert memory.recall("bergamot") == []


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize(("query", "k"), [(None, 1), ("gate", 0)])
def test_a_wrong_query_is_refused(kind: Any, query: Any, k: int) -> None:
    with pytest.raises(lre_core.InvalidSetting):
        remembering(kind, history()).recall(query, k)


# The tool


class Forgetful(Model):
    """A model that asks the tool when it is told "recall ...", and once more when it would answer.

    Attributes:
        at_last: what it asks for instead of its next answer.
    """

    at_last: str | None = None

    def _answer(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        last = wire(messages[-1])
        if self._asked(last) and last["content"].startswith("recall "):
            self.sent.append([message.model_copy(deep=True) for message in messages])
            return self._recall(last["content"].removeprefix("recall "))
        return super()._answer(messages, **kwargs)

    def _say(self, text: str) -> ChatMessage:
        query, self.at_last = self.at_last, None
        return super()._say(text) if query is None else self._recall(query)

    def _recall(self, query: str) -> ChatMessage:
        block: Any = ToolCallBlock(tool_call_id=f"r{len(self.sent)}", tool_name="recall", tool_kwargs={"query": query})
        return ChatMessage(role="assistant", blocks=[block])


class ForgetfulReasoning(Forgetful, ReasoningModel):
    def _recall(self, query: str) -> ChatMessage:
        text = f"Thought: I forgot.\nAction: recall\nAction Input: {json.dumps({'query': query})}"
        return ChatMessage(role="assistant", content=text)


def answers(asked: Model) -> list[str]:
    """What the tool said to each call, as the model saw it next."""
    return [
        str(after[-1].content).removeprefix("Observation: ")
        for before, after in zip(asked.sent, asked.sent[1:], strict=False)
        if str(before[-1].content).startswith("recall ")
    ]


async def run(agent: BaseWorkflowAgent | AgentWorkflow, errands: Sequence[str], ctx: Context, **given: Any) -> None:
    for errand in errands:
        await agent.run(user_msg=errand, ctx=ctx, **given)


@pytest.mark.parametrize(("agent", "reasons"), [(FunctionAgent, False), (ReActAgent, True)])
@pytest.mark.parametrize("kind", OURS)
@pytest.mark.filterwarnings("ignore::workflows.context.state_store.UnserializableKeyWarning")
def test_any_agent_finds_what_its_memory_does_not_show(
    agent: type[BaseWorkflowAgent], reasons: bool, kind: Any
) -> None:
    async def converse() -> list[str]:
        asked = ForgetfulReasoning() if reasons else Forgetful()
        worker: Any = agent(tools=[look_up, recall_tool()], llm=asked.llm, system_prompt="Be brief.")
        ctx, memory = Context(worker), remembering(kind, history(), token_limit=400)
        await run(worker, ["recall bergamot alarm", *ERRANDS[:6], "recall bergamot alarm"], ctx, memory=memory)
        return answers(asked)

    first, again = asyncio_run(converse())
    for found in (first, again):
        assert found.startswith(f"[message 2]\nassistant: {TOLD}")
        # A call of the tool is not found again; a ReAct agent's run, which lies in memory as one message, comes last.
        assert found.count(SECRET) == 1 + (reasons and found is again)
        assert "recall(" not in found


@pytest.mark.parametrize(("kind", "reasons"), KINDS)
@pytest.mark.parametrize("limit", [ROOMY, 700])
@pytest.mark.parametrize("written", [False, True])
def test_an_agent_finds_what_has_left_its_view_or_its_memorys(
    kind: type[LREFunctionAgent | LREReActAgent], reasons: bool, limit: int, written: bool
) -> None:
    async def converse() -> Model:
        asked = ForgetfulReasoning(steps=2) if reasons else Forgetful(steps=2)
        agent: Any = kind(
            tools=[look_up], llm=asked.llm, max_tokens=900, recall=True, token_counter=count, keep_recent=1
        )
        memory = remembering(LREChatMemoryBuffer, history()[:2], token_limit=limit)
        ctx = Context(agent)
        for errand in [*ERRANDS[:16], "recall bergamot alarm", *ERRANDS[:3], "recall bergamot alarm"]:
            await agent.run(user_msg=errand, ctx=ctx, memory=memory)
            if written:
                ctx = Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict())))
        return asked

    asked = asyncio.run(converse())
    first, again = answers(asked)
    assert first.startswith(f"[message 2]\nassistant: {TOLD}")
    assert again.startswith(f"[message 2]\nassistant: {TOLD}")
    assert first.count(SECRET) == 1
    assert again.count(SECRET) == 1 + reasons
    before = asked.sent[[str(prompt[-1].content) for prompt in asked.sent].index("recall bergamot alarm")]
    assert SECRET not in str(before)
    assert max(map(tokens, asked.sent)) <= 900


def count(text: str) -> int:
    return len(text.split())


def page(n: int) -> str:
    """Opens a page."""
    return f"page {n} {'leaf ' * 150}"


@pytest.mark.parametrize(("kind", "reasons"), KINDS)
def test_within_a_run_a_result_that_has_left_is_found_and_cut_at_a_quarter_of_the_budget(
    kind: type[LREFunctionAgent | LREReActAgent], reasons: bool
) -> None:
    asked: Forgetful = (ForgetfulReasoning if reasons else Forgetful)(steps=6)
    asked.at_last = "leaf"
    tools = [FunctionTool.from_defaults(page, name="look_up")]
    settings: dict[str, Any] = {"max_tokens": 600, "token_counter": count, "keep_recent": 1, "recall": True}
    agent: Any = kind(tools=tools, llm=asked.llm, **settings)
    asyncio.run(run(agent, ["look up all"], Context(agent)))
    before, after = asked.sent[-2:]
    found = str(after[-1].content)
    (number,) = re.findall(r"page (\d+) leaf", found)
    assert f"page {number} leaf" not in str(before)
    assert found.endswith("more characters]")
    assert 100 < count(found) <= 600 / 4 + 10
    assert tokens(after) <= 600


def test_the_agents_of_a_workflow_each_find_what_they_are_not_shown() -> None:
    class Porter(Forgetful):
        """Hands every errand over."""

        def _answer(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
            arguments = {"to_agent": "clerk", "reason": "it knows"}
            call: Any = ToolCallBlock(tool_call_id="h", tool_name="handoff", tool_kwargs=arguments)
            return ChatMessage(role="assistant", blocks=[call])

    asked = Forgetful(steps=2)
    settings: dict[str, Any] = {"max_tokens": 700, "token_counter": count, "keep_recent": 1, "recall": True}
    clerk = LREFunctionAgent(name="clerk", description="finds", tools=[look_up], llm=asked.llm, **settings)
    porter = LREFunctionAgent(name="porter", description="asks", tools=[], llm=Porter().llm, **settings)
    workflow = AgentWorkflow(agents=[porter, clerk], root_agent="porter", initial_state={"customer": "Mara"})
    memory = remembering(LREChatMemoryBuffer, history()[:2], token_limit=ROOMY)

    async def converse() -> None:
        for errand in ERRANDS[:12]:
            await workflow.run(user_msg=errand, memory=memory)
        asked.at_last = "bergamot alarm"
        await workflow.run(user_msg="What was the word?", memory=memory)

    asyncio.run(converse())
    before, after = asked.sent[-2:]
    assert SECRET not in str(before)
    assert str(after[-1].content).startswith(f"[message 2]\nassistant: {TOLD}")


@pytest.mark.parametrize("kind", [LREFunctionAgent, LREReActAgent])
def test_the_tool_is_offered_only_when_asked_for(kind: Any) -> None:
    for settings in ({"recall": True}, {}):
        agent = kind(tools=[look_up], llm=Model().llm, max_tokens=500, **settings)
        assert [tool.metadata.name for tool in agent.tools] == ["look_up", "recall"][: 1 + len(settings)]
        assert [tool.metadata.name for tool in kind(llm=Model().llm, **settings).tools or []] == ["recall"] * len(
            settings
        )


def test_the_model_is_asked_for_a_query_and_nothing_else() -> None:
    told = recall_tool().metadata.to_openai_tool()["function"]
    assert list(told["parameters"]["properties"]) == ["query"]
    assert told["description"].startswith("Find earlier messages of this conversation, word for word")


def test_without_bm25s_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for make in (recall_tool, lambda: LREFunctionAgent(llm=Model().llm, recall=True)):
        with pytest.raises(lre_core.MissingExtra, match=r"lre-memory\[recall\]"):
            make()
