"""What an agent has been shown lately, run by run: a step reads its new messages only."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from llama_index.core.agent.workflow.agent_context import AgentContext

from llamaindex_lre.messages import copy_of
from lre_core import Evictor, Session, View

__all__ = ["Runs"]

STATE_KEY = "lre_eviction"

REMEMBERED = 16
"""Conversations whose sessions are kept. One more at a time costs a step a reading of the whole, nothing else."""


class Run(NamedTuple):
    """A session and the items it has read, as they were then: an agent may go on writing into its own."""

    session: Session
    read: list[Any]

    def serves(self, items: Sequence[Any], state: Mapping[str, Any]) -> bool:
        """Whether the items begin with those read so far, and the state is what was decided on them."""
        return state == self.session.state and list(items[: len(self.read)]) == self.read


class Runs:
    """The sessions of one agent's conversations. Safe to use from several threads.

    What was decided lies in the context's store, as plain JSON, one entry an agent. A session only saves reading again
    what it has read: it serves a history that begins with that and a state equal to its own; else one is made anew. So
    a context that was copied, written down, or given another memory goes on from its messages and its state alone.

    A copy starts with no sessions.
    """

    def __init__(self) -> None:
        self._runs: deque[Run] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[], Runs], tuple[()]]:
        return Runs, ()

    async def choose(
        self, ctx: AgentContext, agent: str, evictor: Evictor, items: Sequence[Any], reserved: int
    ) -> list[Any]:
        """The items in view: the same objects, in their order. What has left stays out while the context lives.

        Args:
            ctx: the context of the run.
            agent: the agent's name.
            evictor: reads the items; always the same one.
            items: what the memory shows, then what the run has collected.
            reserved: tokens of the budget that the prompt spends elsewhere.
        """
        decided = await ctx.store.get(STATE_KEY, default={})
        state = decided.get(agent) or evictor.session().state
        view = self._view(evictor, items, state, reserved)
        await ctx.store.set(STATE_KEY, {**decided, agent: view.state})
        return view.with_note([items[index] for index in view.kept])

    def _view(self, evictor: Evictor, items: Sequence[Any], state: Mapping[str, Any], reserved: int) -> View:
        run = self._take(items, state)
        if run is None:
            # A memory may itself have evicted since the last run, and a ReAct agent's steps become one message at its
            # end: then what was decided is no state of these items.
            run = Run(evictor.session(state if evictor.resumes(items, state) else None), [])
        new = items[len(run.read) :]
        run.session.append(new)
        run.read.extend(map(copy_of, new))
        view = run.session.view(reserved)
        with self._lock:
            self._runs.append(run)
        return view

    def _take(self, items: Sequence[Any], state: Mapping[str, Any]) -> Run | None:
        """The session that has read most of these items; taken out while in use, for it is one conversation's."""
        with self._lock:
            serving = [run for run in self._runs if run.serves(items, state)]
            if not serving:
                return None
            run = max(serving, key=lambda run: len(run.read))
            self._runs = deque((other for other in self._runs if other is not run), REMEMBERED)
        return run
