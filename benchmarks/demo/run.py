"""One policy's run of a task, played in a real LangChain agent."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.demo.model import PromptOnlyModel
from benchmarks.demo.policies import middleware
from benchmarks.demo.recording import ModelCall, OutOfSteps, Recorder
from benchmarks.demo.services import tools
from benchmarks.demo.task import make_task
from benchmarks.demo.tokens import PromptCounter
from benchmarks.demo.world import World

STEP_LIMIT = 150
"""Model calls after which a run counts as not finished; with everything in view it takes a little over fifty."""

SIGN_IN = "sign_in"

INSTRUCTIONS = """\
You are a personal assistant. You do errands for one person with the tools you are given, one tool call at a time.
Every service except the catalogue asks for a token. sign_in returns it; it is valid for sixty minutes, and every call
takes one minute. When a call is refused because of its token, sign in again.
Do the errands in the order given. When you do not see whether an errand is done, look before you act.
Never invent an identifier or a code. What you do not see any more, look up again."""


@dataclass(frozen=True)
class Progress:
    """How far a run is: model calls so far, tokens in view at the last one, errands the world shows done."""

    steps: int
    tokens: int
    errands_done: int


@dataclass(frozen=True)
class Run:
    """One policy's run of a task.

    Attributes:
        policy: Its name.
        finished: The agent came to its end in time, and the world shows every errand done.
        errands_done: How many errands the world shows done.
        errands: How many there are.
        history: All messages, oldest first.
        tokens: Tokens of each message of the history.
        calls: One record a model call.
    """

    policy: str
    finished: bool
    errands_done: int
    errands: int
    history: tuple[BaseMessage, ...]
    tokens: tuple[int, ...]
    calls: tuple[ModelCall, ...]

    @property
    def steps(self) -> int:
        """How often the model was called."""
        return len(self.calls)

    @property
    def peak_tokens(self) -> int:
        """Tokens of the longest prompt."""
        return max(call.tokens for call in self.calls)

    @property
    def prompt_cost(self) -> int:
        """Tokens of all prompts, those of an unchanged prefix at a tenth."""
        return round(sum(call.cost for call in self.calls))

    @cached_property
    def sign_ins(self) -> tuple[int, ...]:
        """Indexes of the messages that sign in."""
        return tuple(
            at
            for at, message in enumerate(self.history)
            if isinstance(message, AIMessage) and any(call["name"] == SIGN_IN for call in message.tool_calls)
        )

    @cached_property
    def repeats(self) -> tuple[int, ...]:
        """Indexes of the messages that make a call which had been answered before, by whatever token."""
        made: dict[str | None, str] = {}
        answered: set[str] = set()
        repeated = []
        for at, message in enumerate(self.history):
            if isinstance(message, AIMessage):
                calls = {call["id"]: _without_token(call) for call in message.tool_calls if call["name"] != SIGN_IN}
                made |= calls
                if answered & set(calls.values()):
                    repeated.append(at)
            elif isinstance(message, ToolMessage) and message.status == "success" and message.tool_call_id in made:
                answered.add(made[message.tool_call_id])
        return tuple(repeated)


def _without_token(call: ToolCall) -> str:
    arguments = {name: value for name, value in call["args"].items() if name != "token"}
    return json.dumps([call["name"], arguments], sort_keys=True)


def play(
    policy: str,
    budget: int,
    seed: int,
    model: BaseChatModel | None = None,
    report: Callable[[Progress], None] = lambda _: None,
) -> Run:
    """Let an agent do the task of a seed under a policy.

    Args:
        policy: One of `policies.POLICIES`.
        budget: Tokens a prompt may take, tool definitions and system message included.
        seed: Decides the world and the errands.
        model: A chat model; the deterministic `PromptOnlyModel` when left out.
        report: Called before every model call.
    """
    count = PromptCounter()
    with World(seed) as world:
        task = make_task(world, seed)

        def done() -> int:
            return sum(errand.done(world) for errand in task.errands)

        def tell(recorder: Recorder) -> None:
            report(Progress(len(recorder.calls), recorder.calls[-1].tokens, done()))

        recorder = Recorder(count, STEP_LIMIT, tell)
        agent = create_agent(
            model or PromptOnlyModel(),
            tools(world),
            system_prompt=INSTRUCTIONS,
            middleware=[*middleware(policy, budget, count), recorder],
            checkpointer=InMemorySaver(),
        )
        config: RunnableConfig = {"configurable": {"thread_id": policy}, "recursion_limit": 10 * STEP_LIMIT}
        in_time = True
        try:
            for text in task.messages:
                agent.invoke({"messages": [HumanMessage(text)]}, config)
        except OutOfSteps:
            in_time = False
        return Run(
            policy=policy,
            finished=in_time and done() == len(task.errands),
            errands_done=done(),
            errands=len(task.errands),
            history=tuple(recorder.history),
            tokens=tuple(map(count.message, recorder.history)),
            calls=tuple(recorder.calls),
        )
