"""`LREFunctionAgent` and `LREReActAgent`: eviction inside a run; alone, in a workflow, streaming or not; case 20."""

import asyncio
import copy
import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from histories import problems, words
from llama_index.core.agent.workflow import (
    AgentInput,
    AgentWorkflow,
    BaseWorkflowAgent,
    FunctionAgent,
    ReActAgent,
)
from llama_index.core.agent.workflow.agent_context import SimpleAgentContext
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context
from llamaindex_histories import (
    DEPRECATED,
    ERRANDS,
    TURNS,
    Model,
    ReasoningModel,
    look_up,
    said,
    texts,
    tokens,
    wire,
    work,
)

import lre_core
from llamaindex_lre import LREChatMemoryBuffer, LREFunctionAgent, LREReActAgent
from llamaindex_lre.runs import Runs
from llamaindex_lre.steps import read_step

ROOMY = 100_000


def count(text: str) -> int:
    return len(text.split())


def report_of(size: int) -> FunctionTool:
    """A tool that finds so many words."""

    def find(n: int) -> str:
        return words(n, size)

    return FunctionTool.from_defaults(find, name="look_up", description="Finds words.")


def made(kind: type[BaseWorkflowAgent], model: Model, **settings: Any) -> Any:
    if issubclass(kind, LREFunctionAgent | LREReActAgent):
        settings = {"max_tokens": ROOMY, "token_counter": count, **settings}
    return kind(**{"tools": [look_up], "llm": model.llm, "system_prompt": "Be brief.", **settings})


def forgetful() -> ChatMemoryBuffer:
    """The memory an agent has when it is given none, large enough for all."""
    return ChatMemoryBuffer.from_defaults(token_limit=ROOMY)


def refused(prompt: list[ChatMessage]) -> list[str]:
    """What a provider refuses, and ReAct steps that have lost their half."""
    found = problems(list(map(wire, prompt)))
    for before, after in zip([None, *prompt], [*prompt, None], strict=True):
        acts = before is not None and before.role == "assistant" and ACTION.search(str(before.content)) is not None
        observed = after is not None and str(after.content).startswith("Observation:")
        if acts != observed:
            found.append(f"{before} is followed by {after}")
    return found


# The last words of an action that waits; a finished run lies in memory as one message.
ACTION = re.compile(r"Action Input: [^\n]*\Z")
KINDS = [(FunctionAgent, LREFunctionAgent, Model), (ReActAgent, LREReActAgent, ReasoningModel)]

pytestmark = [
    DEPRECATED,
    # LlamaIndex's own ReActAgent asks it.
    pytest.mark.filterwarnings("ignore:is_running called from within a step:DeprecationWarning"),
]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_an_agent_answers_as_the_original_while_all_fits(
    original: type[BaseWorkflowAgent], ours: type[BaseWorkflowAgent], model: type[Model], streaming: bool
) -> None:
    errands = ERRANDS[: TURNS // 5 if streaming else TURNS]
    answers = [
        asyncio.run(work(made(kind, model(steps=2), streaming=streaming), forgetful(), errands))
        for kind in (original, ours)
    ]
    assert answers[0] == answers[1]
    assert len(set(answers[0])) == len(errands)


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_an_agents_prompts_are_valid_and_within_budget_when_not_all_fits(
    original: type[BaseWorkflowAgent], ours: type[BaseWorkflowAgent], model: type[Model], streaming: bool
) -> None:
    limits, kept = {}, {}
    errands = ERRANDS[: TURNS // 2 if streaming else TURNS]
    for kind in (original, ours):
        asked, memory = model(steps=2), forgetful()
        settings = {"max_tokens": 700} if kind is ours else {}
        asyncio.run(work(made(kind, asked, streaming=streaming, **settings), memory, errands))
        assert [found for prompt in asked.sent if (found := refused(prompt))] == []
        limits[kind] = max(map(tokens, asked.sent))
        kept[kind] = [message.role for message in memory.get_all()]
    assert limits[ours] <= 700 < limits[original]
    assert kept[ours] == kept[original]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_case_20_six_results_of_500_words_in_one_run_at_600_tokens(
    original: type[BaseWorkflowAgent], ours: type[BaseWorkflowAgent], model: type[Model], streaming: bool
) -> None:
    def run(kind: type[BaseWorkflowAgent], **settings: Any) -> tuple[Model, ChatMemoryBuffer]:
        asked, memory = model(steps=6), forgetful()
        tools = [report_of(500)]
        asyncio.run(work(made(kind, asked, tools=tools, streaming=streaming, **settings), memory, ["look up all"]))
        return asked, memory

    (free, theirs), (asked, memory) = run(original), run(ours, max_tokens=600)
    assert len(asked.sent) == len(free.sent) == 7
    question = next(at for at, message in enumerate(asked.sent[0]) if message.content == "look up all")
    for n, (prompt, whole) in enumerate(zip(asked.sent, free.sent, strict=True)):
        assert refused(prompt) == []
        assert tokens(whole) > 500 * n
        # System prompt, question and the newest step, word for word.
        assert prompt[: question + 1] == whole[: question + 1]
        assert len(prompt) == question + 1 + (2 if n else 0)
        if n:
            found = str(prompt[-1].content)
            assert len(found.split()) >= 500
            assert found.removeprefix("Observation: ") in str(memory.get_all())
    assert tokens(memory.get_all()) >= 6 * 500
    assert [message.role for message in memory.get_all()] == [message.role for message in theirs.get_all()]


def test_the_budget_covers_system_prompt_and_tool_definitions() -> None:
    def shown(**settings: Any) -> int:
        asked = Model(steps=12)
        asyncio.run(work(made(LREFunctionAgent, asked, max_tokens=700, **settings), forgetful(), ["look up all"]))
        return max(map(tokens, asked.sent))

    described = FunctionTool.from_defaults(look_up, description="Looks up a number. " * 60)
    assert shown() > 300
    assert shown(tools=[described]) <= 700 - 240
    assert shown(system_prompt="Be brief. " * 120) <= 700


def test_within_a_run_what_has_left_stays_out_and_the_prefix_seldom_changes() -> None:
    asked = Model(steps=18)
    asyncio.run(work(made(LREFunctionAgent, asked, max_tokens=400), forgetful(), ["look up all"]))
    prompts = [[str(message) for message in prompt] for prompt in asked.prompts]
    gone: set[str] = set()
    changes = 0
    for before, after in pairwise(prompts):
        gone |= set(before) - set(after)
        assert not gone & set(after)
        changes += after[: len(before)] != before
    assert gone
    assert 0 < changes < len(prompts) / 2


def test_across_runs_in_one_context_it_goes_on_from_what_was_decided(caplog: pytest.LogCaptureFixture) -> None:
    async def run(written: bool) -> list[list[ChatMessage]]:
        asked = Model(steps=2)
        agent = made(LREFunctionAgent, asked, max_tokens=500)
        ctx = Context(agent)
        for errand in ERRANDS[:14]:
            await agent.run(user_msg=errand, ctx=ctx)
            if written:
                ctx = Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict())))
        return asked.sent

    running, reloaded = asyncio.run(run(False)), asyncio.run(run(True))
    assert running == reloaded
    assert max(map(tokens, running)) <= 500
    assert caplog.records == []


def test_a_step_reads_its_new_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[ChatMessage] = []

    def reading(item: ChatMessage) -> lre_core.Message:
        read.append(item)
        return read_step(item)

    monkeypatch.setattr("llamaindex_lre.agent.read_step", reading)

    async def run() -> list[ChatMessage]:
        asked = Model(steps=5)
        agent = made(LREFunctionAgent, asked, max_tokens=300)
        ctx = Context(agent)
        for n in range(4):
            await agent.run(user_msg=f"look up {n}", ctx=ctx)
        assert len(asked.sent[-1]) < len(read)
        kept: BaseMemory = await ctx.store.get("memory")
        return await kept.aget_all()

    *sent, _ = asyncio.run(run())
    assert texts(read) == ["Be brief.", *texts(sent)]


async def rewritten(memory: LREChatMemoryBuffer) -> None:
    await memory.aset((await memory.aget_all())[3:])


async def written_into(memory: LREChatMemoryBuffer) -> None:
    for message in memory.chat_store.get_messages(memory.chat_store_key)[:9]:
        message.blocks.append(TextBlock(text="Indeed."))


async def left_alone(memory: LREChatMemoryBuffer) -> None:
    await memory.aget_all()


@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
@pytest.mark.parametrize("meddle", [left_alone, rewritten, written_into])
def test_a_session_of_a_context_serves_no_other_history(
    original: type[BaseWorkflowAgent],
    ours: type[BaseWorkflowAgent],
    model: type[Model],
    meddle: Callable[[LREChatMemoryBuffer], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def sent() -> list[list[ChatMessage]]:
        asked = model(steps=2)
        agent = made(ours, asked, max_tokens=500, initial_state={"customer": "Mara"})
        # Two conversations by turns, then copies of the one in place of the other, then its memory in a new context.
        one, other = Context(agent), Context(agent)
        for n, errand in enumerate(ERRANDS[:12]):
            await agent.run(user_msg=errand, ctx=one)
            await agent.run(user_msg=errand[::-1], ctx=other)
            if n % 3 == 2:
                await meddle(await one.store.get("memory"))
            if n == 6:
                other = Context.from_dict(agent, one.to_dict())
            if n > 9:
                await agent.run(user_msg=errand, memory=copy.deepcopy(await one.store.get("memory")))
        return asked.sent

    kept = asyncio.run(sent())
    monkeypatch.setattr(Runs, "_take", lambda runs, items, state: None)
    assert kept == asyncio.run(sent())
    assert any(len(prompt) < len(before) for before, prompt in pairwise(kept))


def test_a_message_that_was_written_into_since_the_last_step_is_read_again() -> None:
    async def run() -> None:
        asked, ctx, given = Model(), SimpleAgentContext(), said(8)[:-1]
        agent = made(LREFunctionAgent, asked, max_tokens=300)
        for addition in ("", "indeed " * 200):
            given[4].blocks.append(TextBlock(text=addition))
            await agent.take_step(ctx, given, [], forgetful())
            await ctx.store.set("scratchpad", [])
        assert tokens(asked.sent[0]) == tokens(said(8)[:-1])
        assert tokens(asked.sent[1]) <= 300 < tokens(given)

    asyncio.run(run())


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copy_of_an_agent_goes_on_by_itself(way: Callable[[Any], Any]) -> None:
    async def run() -> None:
        asked = Model(steps=3)
        agent = made(LREFunctionAgent, asked, max_tokens=300)
        ctx = Context(agent)
        for n in range(3):
            await agent.run(user_msg=f"look up {n}", ctx=ctx)
        copied, again = way(agent), Context.from_dict(agent, ctx.to_dict())
        copied.llm = (asked_next := Model(steps=3)).llm
        await copied.run(user_msg="look up 9", ctx=again)
        await agent.run(user_msg="look up 9", ctx=ctx)
        assert asked_next.sent == asked.sent[-4:]

    asyncio.run(run())


@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_a_memory_that_evicts_and_an_agent_that_does_get_on(
    original: type[BaseWorkflowAgent],
    ours: type[BaseWorkflowAgent],
    model: type[Model],
    caplog: pytest.LogCaptureFixture,
) -> None:
    asked = model(steps=4)
    memory = LREChatMemoryBuffer.from_defaults(token_limit=400, tokenizer_fn=str.split)
    agent = made(ours, asked, max_tokens=800)

    async def converse() -> None:
        ctx = Context(agent)
        for errand in ERRANDS:
            await agent.run(user_msg=errand, ctx=ctx, memory=memory)
            assert len(json.dumps(await ctx.store.get("lre_eviction"))) < 1000

    asyncio.run(converse())
    assert [found for prompt in asked.sent if (found := refused(prompt))] == []
    assert max(map(tokens, asked.sent)) <= 800
    assert caplog.records == []


@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_agents_of_a_workflow_hand_over_and_stay_within_budget(
    original: type[BaseWorkflowAgent], ours: type[BaseWorkflowAgent], model: type[Model]
) -> None:
    asked = model(steps=5)
    clerk = made(ours, asked, name="clerk", description="finds numbers", max_tokens=700)
    porter = made(ours, Handing(clerk.name, asked), name="porter", description="knows whom to ask", max_tokens=700)
    workflow = AgentWorkflow(agents=[porter, clerk], root_agent="porter", initial_state={"customer": "Mara"})
    memory = LREChatMemoryBuffer.from_defaults(token_limit=ROOMY)
    answers = asyncio.run(work(workflow, memory, ERRANDS[:15]))
    assert [found for prompt in asked.sent if (found := refused(prompt))] == []
    assert max(map(tokens, asked.sent)) <= 700
    assert len(set(answers)) == 15
    assert [message.content for message in memory.get_all() if message.role == "user"] == ERRANDS[:15]


@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_a_workflow_answers_as_with_the_original_while_all_fits(
    original: type[BaseWorkflowAgent], ours: type[BaseWorkflowAgent], model: type[Model]
) -> None:
    def answers(kind: type[BaseWorkflowAgent]) -> list[str]:
        return asyncio.run(work(AgentWorkflow(agents=[made(kind, model(steps=2))]), forgetful()))

    assert answers(ours) == answers(original)


def test_messages_that_failed_steps_left_behind_are_not_lost() -> None:
    class Failing(Model):
        def _answer(self, messages: Any, **kwargs: Any) -> ChatMessage:
            if len(self.sent) == 4:
                self.sent.append([])
                raise ConnectionError("the provider is away")
            return super()._answer(messages, **kwargs)

    async def run() -> None:
        asked = Failing(steps=6)
        agent = made(LREFunctionAgent, asked, max_tokens=90)
        ctx = Context(agent)
        with pytest.raises(ConnectionError):
            await agent.run(user_msg="look up all", ctx=ctx)
        scratchpad = await ctx.store.get("scratchpad")
        assert [message.role.value for message in scratchpad] == ["assistant", "tool"] * 4
        assert len(asked.sent[3]) < 2 + 6

    asyncio.run(run())


def test_without_a_budget_it_is_three_quarters_of_the_models_window() -> None:
    model = Model()
    agent = LREFunctionAgent(tools=[look_up], llm=model.llm)
    assert agent.max_tokens == int(model.llm.metadata.context_window * 0.75)


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"max_tokens": 0}, lre_core.InvalidSetting, "budget is 0"),
        ({"keep_recent": -1}, lre_core.InvalidSetting, "keep_recent is -1"),
        ({"scorer": "agnet"}, lre_core.UnknownScorer, "'agnet'"),
    ],
)
@pytest.mark.parametrize("kind", [LREFunctionAgent, LREReActAgent])
def test_wrong_settings_are_refused_at_once(
    kind: type[BaseWorkflowAgent], wrong: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        made(kind, Model(), **wrong)


def test_what_the_caller_pins_stays() -> None:
    def first_result_is_there(**settings: Any) -> bool:
        asked = Model(steps=16)
        agent = made(LREFunctionAgent, asked, max_tokens=160, **settings)
        asyncio.run(work(agent, forgetful(), ["look up all"]))
        return asked.sent[1][-1] in asked.sent[-1]

    results: list[ChatMessage] = []

    def first_result(message: ChatMessage) -> bool:
        if message.role == "tool" and not results:
            results.append(message)
        return message in results

    assert first_result_is_there(pin=first_result)
    assert not first_result_is_there()


@pytest.mark.parametrize(("original", "ours", "model"), KINDS)
def test_a_note_says_that_steps_were_left_out_and_is_never_stored(
    original: type[BaseWorkflowAgent], ours: type[BaseWorkflowAgent], model: type[Model]
) -> None:
    asked, memory = model(steps=12), forgetful()
    asyncio.run(work(made(ours, asked, max_tokens=700, note=True, tools=[report_of(60)]), memory, ["look up all"]))
    notes = [[message for message in prompt if "were left out here" in str(message.content)] for prompt in asked.sent]
    assert notes[0] == []
    assert len(notes[-1]) == 1
    assert [found for prompt in asked.sent if (found := refused(prompt))] == []
    assert max(map(tokens, asked.sent)) <= 700
    assert "left out" not in str(memory.get_all())


def test_a_pin_is_asked_of_messages_only_a_react_agents_steps_are_none() -> None:
    asked = ReasoningModel(steps=8)
    agent = made(LREReActAgent, asked, max_tokens=600, pin=lambda message: "remember" in str(message.content))
    asyncio.run(work(agent, forgetful(), ["remember my name, Mara", "look up all"]))
    assert all(prompt[1].content == "remember my name, Mara" for prompt in asked.sent)


def test_the_input_event_tells_what_the_model_sees() -> None:
    async def run() -> Iterator[tuple[list[Any], list[Any]]]:
        asked = Model(steps=10)
        handler = made(LREFunctionAgent, asked, max_tokens=250).run(user_msg="look up all", memory=forgetful())
        told = [event.input async for event in handler.stream_events() if isinstance(event, AgentInput)]
        await handler
        return zip(map(list, told), asked.sent, strict=False)

    pairs = list(asyncio.run(run()))
    assert len(pairs) == 11
    assert all(told == sent for told, sent in pairs)


class Handing(Model):
    """Hands every errand over to another agent, whose prompts count as its own."""

    def __init__(self, to: str, other: Model) -> None:
        super().__init__()
        self.to, self.reasons = to, isinstance(other, ReasoningModel)
        self.sent = other.sent

    def _answer(self, messages: Any, **kwargs: Any) -> ChatMessage:
        super()._answer(messages, **kwargs)
        arguments = {"to_agent": self.to, "reason": "it knows numbers"}
        if self.reasons:
            text = f"Thought: The clerk knows.\nAction: handoff\nAction Input: {json.dumps(arguments)}"
            return ChatMessage(role="assistant", content=text)
        call: Any = ToolCallBlock(tool_call_id=f"to_{len(self.sent)}", tool_name="handoff", tool_kwargs=arguments)
        return ChatMessage(role="assistant", blocks=[call])
