"""Eviction: which messages of a history go to the model."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from lre_core.errors import InvalidSetting
from lre_core.generations import Decision, State, decide
from lre_core.messages import ChatMessage, Message
from lre_core.reading import Reading
from lre_core.scorer import Scorer
from lre_core.tokens import MESSAGE_OVERHEAD, TokenCounter, counter, message_tokens, remembering
from lre_core.units import Unit

__all__ = ["Evictor", "Session", "Settings", "View", "evict"]

logger = logging.getLogger(__name__)

BudgetScope = Literal["view", "history"]


class Settings(TypedDict, total=False):
    """Every setting of an `Evictor` but its budget, for what hands them on: `**settings: Unpack[Settings]`."""

    scorer: Scorer | str
    keep_recent: int
    budget_scope: BudgetScope
    token_counter: TokenCounter | str
    message_counter: Callable[[Any], int] | None
    pin: Callable[[Any], bool] | None
    message_overhead: int
    whole_turn: bool
    reader: Callable[[Any], Message] | None


@dataclass(frozen=True)
class View:
    """The messages that go to the model: the caller's own objects, in their order, fewer of them.

    Attributes:
        messages: the messages in view.
        kept: their indexes in the history, ascending.
        tokens: what they cost.
        budget: what they may cost: the evictor's budget less what was reserved.
        over_budget: whether what is pinned exceeds the budget on its own.
    """

    messages: list[Any]
    kept: list[int]
    tokens: int
    budget: int
    over_budget: bool
    _decision: Decision = field(repr=False)
    _size: int = field(repr=False)
    _state: Callable[[], State] = field(repr=False)
    _units: Callable[[], list[Unit]] = field(repr=False)
    _scores: Callable[[], NDArray[np.float64]] = field(repr=False)

    @cached_property
    def evicted(self) -> list[int]:
        """Indexes of the messages left out, ascending."""
        kept = set(self.kept)
        return [index for index in range(self._size) if index not in kept]

    @cached_property
    def state(self) -> dict[str, Any]:
        """Plain JSON; give it to the next `Evictor.view` to keep the prompt's prefix stable."""
        return self._state().to_json()

    @cached_property
    def units(self) -> list[Unit]:
        """The units of the whole history."""
        return self._units()

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(units,) every unit's score at this moment; NaN for calls that still wait for a result."""
        return self._scores()

    def reason(self, unit: int) -> str:
        """Why a unit is in view or out: one of the words `explain` lists."""
        return self._decision.reasons.get(unit, "left earlier")

    def explain(self) -> list[dict[str, Any]]:
        """For every unit: `unit`, `start`, `stop`, `role`, `kept`, `reason`, `score`.

        In view: `pinned` (system message, caller's pin, current turn, waiting for a result), `recent`, `opens` (a
        human message kept because what follows it needs one), `fits` (nothing had to go), `tenured` (kept at an
        earlier eviction), `scored in`. Out: `scored out`, `too large`, `left earlier`, `invalid` (a provider would
        refuse it: a result without its call, a call without its result, or nothing human before it).
        """
        kept = set(self.kept)
        return [
            {
                "unit": index,
                "start": unit.start,
                "stop": unit.stop,
                "role": unit.role,
                "kept": unit.start in kept,
                "reason": self.reason(index),
                "score": None if np.isnan(score) else float(score),
            }
            for index, (unit, score) in enumerate(zip(self.units, self.scores.tolist(), strict=True))
        ]


@dataclass(frozen=True)
class Evictor:
    """Keeps the messages most likely to be needed, verbatim, within a token budget.

    1. Verbatim: a view holds the caller's own objects, unchanged.
    2. Within budget: `view.tokens <= budget`, unless what is pinned exceeds it alone; then `over_budget` is true.
    3. Valid for providers: a step is whole or absent, the first message after the system's is human, the view is
       never empty, the current turn is untouched; on every input, however broken.
    4. Query-blind and causal: nothing after the last message is known.
    5. Prefix-stable: a session, or a view given the state of the one before, evicts rarely and mostly at the back.
    6. Cheap: a new message costs its own length.

    An evictor is immutable and may be shared between threads.

    Args:
        budget: tokens the view may take.
        scorer: a `Scorer`, the name of a bundled one, a path to a saved one, or `auto`: `agent` where the history
            holds tool calls, else `assistant`.
        keep_recent: the last units kept without asking the scorer, newest first while they fit.
        budget_scope: `view`, or `history`, the paper's reading: the budget covers only what is older than the recent
            window, system messages left out.
        token_counter: the name of a tiktoken encoding, or a callable from text to tokens.
        message_counter: tokens of a message, as the caller gave it, in place of what `token_counter` makes of its
            text and of the overhead; asked once a message.
        pin: says of a message, as the caller gave it, whether it is always kept.
        message_overhead: tokens a message costs beside its text.
        whole_turn: keep the current turn (from the last human message on) whole even over the budget. False suits an
            agent whose run is one long turn: then finished steps older than the recent window compete like others.
        reader: turns a message of another framework into a `Message`, so that its objects can be given as they are.

    Raises:
        InvalidSetting: a budget or window that is negative, an unknown scope or encoding.
        UnknownScorer: no bundled scorer of that name, and no file.
        InvalidScorer: the file is not a scorer.
    """

    budget: int
    scorer: Scorer | str = "auto"
    keep_recent: int = 5
    budget_scope: BudgetScope = "view"
    token_counter: TokenCounter | str = "o200k_base"
    message_counter: Callable[[Any], int] | None = None
    pin: Callable[[Any], bool] | None = None
    message_overhead: int = MESSAGE_OVERHEAD
    whole_turn: bool = True
    reader: Callable[[Any], Message] | None = None
    _count: TokenCounter = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.budget < 1:
            raise InvalidSetting(f"budget is {self.budget}; it must be at least 1 token")
        if self.keep_recent < 0:
            raise InvalidSetting(f"keep_recent is {self.keep_recent}; it must be 0 or more units")
        if self.budget_scope not in ("view", "history"):
            raise InvalidSetting(f"budget_scope is {self.budget_scope!r}; it must be 'view' or 'history'")
        if isinstance(self.scorer, str) and self.scorer != "auto":
            object.__setattr__(self, "scorer", Scorer.named(self.scorer))
        object.__setattr__(self, "_count", remembering(counter(self.token_counter)))

    def view(self, messages: Sequence[Any], state: Mapping[str, Any] | None = None, *, reserved: int = 0) -> View:
        """The messages to send now. Pure: the same messages and state give the same view, and nothing is changed.

        Args:
            messages: the whole history, oldest first, what left earlier views included.
            state: `View.state` of the view before, or `Session.state`, to keep the prompt's prefix stable. Without
                it, the view is the best set for this moment alone. `{}` starts a new one.
            reserved: tokens of the budget that the prompt spends elsewhere, on tool definitions for instance.

        Raises:
            InvalidMessage: a message that cannot be read.
        """
        session = Session(self, state)
        session.append(messages)
        return session.view(reserved) if state is not None else session._best(reserved)

    def session(self, state: Mapping[str, Any] | None = None) -> Session:
        """A history that grows: each new message costs its own length, and the prompt's prefix stays stable.

        Args:
            state: of a session that is to go on; give it the same messages again.
        """
        return Session(self, state)

    def count(self, text: str) -> int:
        """Tokens of a text under this evictor's counter; a text lately seen is not counted again."""
        return self._count(text)

    def message_cost(self, message: Message, given: Any = None) -> int:
        """Tokens a message costs under this evictor's counter.

        Args:
            message: the message as read.
            given: the caller's own object it was read from, which a `message_counter` counts.
        """
        if self.message_counter is not None:
            return self.message_counter(message if given is None else given)
        return message_tokens(message, self.count, self.message_overhead)

    def scorer_for(self, history: Reading) -> Scorer:
        """The scorer that suits a history."""
        if isinstance(self.scorer, Scorer):
            return self.scorer
        return Scorer.from_pretrained("agent" if history.has_calls else "assistant")


class Session:
    """A growing history and what of it is in view. Safe to use from several threads."""

    def __init__(self, evictor: Evictor, state: Mapping[str, Any] | None = None) -> None:
        self._evictor = evictor
        self._state = State.from_json(state)
        self._history = Reading(evictor.reader, evictor.message_cost, evictor.pin)
        self._alive: list[int] = []
        self._resumed = self._state.messages == 0
        self._view: View | None = None
        self._lock = threading.RLock()

    @property
    def state(self) -> dict[str, Any]:
        """What has been decided, as plain JSON. With the same messages it resumes the session."""
        with self._lock:
            return self._state.to_json()

    def append(self, messages: Iterable[Any]) -> None:
        """Adds messages at the end.

        Raises:
            InvalidMessage: a message that cannot be read. Then none of them is added.
        """
        with self._lock:
            first = self._history.extend(list(messages))
            while self._alive and self._alive[-1] >= first:
                self._alive.pop()
            self._alive += range(first, len(self._history.units))
            self._view = None

    def view(self, reserved: int = 0) -> View:
        """The messages to send now. Until the next `append` it is the same view.

        Args:
            reserved: tokens of the budget that the prompt spends elsewhere, on tool definitions for instance.
        """
        with self._lock:
            budget = self._evictor.budget - reserved
            if self._view is None or self._view.budget != budget:
                self._resume()
                decision = decide(self._history, self._alive, self._evictor, budget, self._state.units)
                if decision.evicted:
                    self._settle(decision)
                state = self._state
                self._view = self._show(decision, budget, lambda: state)
            return self._view

    def _best(self, reserved: int) -> View:
        """The best set for this moment alone."""
        budget = self._evictor.budget - reserved
        decision = decide(self._history, self._alive, self._evictor, budget, None)
        # Digesting the whole history is left to whoever asks for the state.
        return self._show(decision, budget, lambda: self._settled(decision, self._staying(decision)))

    def _resume(self) -> None:
        """On the first view of a restored session: what had left stays out, if the messages are the same."""
        if self._resumed:
            return
        self._resumed = True
        state, history = self._state, self._history
        if state.messages > len(history.messages) or history.digest(state.messages) != state.digest:
            logger.warning("The history is not the one its state was made from; what is in view is chosen afresh.")
            self._state = State()
            return
        first = next((i for i, unit in enumerate(history.units) if unit.start >= state.messages), len(history.units))
        self._state = state.with_units(first)
        self._alive = [i for i in range(first) if state.keeps(history.units[i].start)]
        self._alive += range(first, len(history.units))

    def _settle(self, decision: Decision) -> None:
        """Remembers an eviction: what it left out stays out."""
        staying = self._staying(decision)
        self._state = self._settled(decision, staying)
        self._alive = staying

    def _staying(self, decision: Decision) -> list[int]:
        """The units still alive after an eviction."""
        kept = set(decision.kept)
        return [unit for unit in self._alive if unit in kept or unit >= decision.settled]

    def _settled(self, decision: Decision, staying: Sequence[int]) -> State:
        """The state after an eviction."""
        history, state = self._history, self._state
        stop = history.units[decision.settled - 1].stop if decision.settled else 0
        start, chained = (state.messages, state.digest) if state.messages <= stop else (0, "")
        spans = [history.units[unit] for unit in staying if unit < decision.settled]
        return State.of(spans, stop, history.digest(stop, start, chained), decision.settled)

    def _show(self, decision: Decision, budget: int, state: Callable[[], State]) -> View:
        history, evictor = self._history, self._evictor
        if decision.evicted:
            logger.debug(
                "%d units left the view, %d stay (%s): %d tokens before, %d after, budget %d",
                len(decision.evicted),
                len(decision.kept),
                decision.cause,
                decision.tokens + sum(history.costs[unit] for unit in decision.evicted),
                decision.tokens,
                evictor.budget,
            )
        kept = [index for unit in decision.kept for index in range(history.units[unit].start, history.units[unit].stop)]
        size, settled = len(history.messages), history.settled
        tail = history.units[settled:]

        def units() -> list[Unit]:
            return history.units[:settled] + tail

        def scores() -> NDArray[np.float64]:
            with self._lock:
                # A view read late still knows only what was known when it was made.
                now = history if len(history.messages) == size else history.prefix(size)
                return now.scores(evictor.scorer_for(now))

        return View(
            [history.messages[index] for index in kept],
            kept,
            decision.tokens,
            budget,
            decision.over_budget,
            decision,
            size,
            state,
            units,
            scores,
        )


def evict(messages: Sequence[ChatMessage], budget: int, **settings: Unpack[Settings]) -> View:
    """The messages worth sending under a token budget; see `Evictor` for the settings and the errors."""
    return Evictor(budget, **settings).view(messages)
