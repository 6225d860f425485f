"""What a session shows: the messages in view, why they are, and what has left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lre_core.moment import Moment
from lre_core.recall import Recalled
from lre_core.state import State
from lre_core.units import Unit

__all__ = ["Eviction", "View"]


@dataclass(frozen=True)
class View:
    """The messages that go to the model: the caller's own objects, in their order, fewer of them.

    Attributes:
        messages: the messages in view, and the note among them if there is one.
        kept: indexes in the history of those that are the caller's, ascending.
        tokens: what the messages cost.
        budget: what they may cost: the evictor's budget less what was reserved.
        over_budget: whether what is pinned exceeds the budget on its own.
        note: the message that says how much was left out; None unless the evictor's `note` asks for it.
    """

    messages: list[Any]
    kept: list[int]
    tokens: int
    budget: int
    over_budget: bool
    note: Any
    _state: Callable[[], State] = field(repr=False)
    _moment: Moment = field(repr=False)

    @cached_property
    def evicted(self) -> list[int]:
        """Indexes of the messages left out, ascending."""
        kept = set(self.kept)
        return [index for index in range(self._moment.size) if index not in kept]

    @cached_property
    def state(self) -> dict[str, Any]:
        """Plain JSON; give it to the next `Evictor.view` to keep the prompt's prefix stable."""
        return self._state().to_json()

    @cached_property
    def units(self) -> list[Unit]:
        """The units of the whole history."""
        return self._moment.units()

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(units,) every unit's score at this moment; NaN for calls that still wait for a result."""
        return self._moment.scores()

    @cached_property
    def _reasons(self) -> dict[int, str]:
        return self._moment.reasons()

    def reason(self, unit: int) -> str:
        """Why a unit is in view or out: one of the words `explain` lists."""
        return self._reasons.get(unit, "left earlier")

    def explain(self) -> list[dict[str, Any]]:
        """For every unit: `unit`, `start`, `stop`, `role`, `kept`, `reason`, `score`.

        In view: `pinned` (system message, caller's pin, a tool to keep, current turn, waiting for a result), `recent`,
        `opens` (a human message kept because what follows it needs one), `fits` (nothing had to go), `tenured` (kept
        at an earlier eviction), `scored in`. Out: `scored out`, `too large`, `left earlier`, `excluded` (a tool to
        leave out), `invalid` (a provider would refuse it: a result without its call, a call without its result, or
        nothing human before it).
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

    def with_note(self, messages: Sequence[Any]) -> list[Any]:
        """These messages, which stand for those kept, one each, with the note, if any, where it stands in view."""
        shown = list(messages)
        if self.note is not None:
            shown.insert(next(at for at, message in enumerate(self.messages) if message is self.note), self.note)
        return shown

    def recall(self, query: str, k: int = 5) -> list[Recalled]:
        """Finds again what is out of view; needs the `recall` extra.

        Unlike all that decides what is in view, this reads a query. It changes nothing: what it finds stays out.

        Args:
            query: words of what is looked for, in any script.
            k: how many units at most.

        Returns:
            The units that share words with the query, best first by BM25; of equals the newer first.

        Raises:
            MissingExtra: bm25s is not installed.
            InvalidSetting: the query is not text, or k is not a whole number of 1 or more.
        """
        kept = set(self.kept)
        return self._moment.recall([unit for unit in self.units if unit.start not in kept], query, k)


@dataclass(frozen=True, slots=True)
class Eviction:
    """What left the view at one eviction, for `Evictor.on_evict` and the log.

    Attributes:
        units: the units that left.
        messages: their messages, the caller's own objects.
        reasons: for each unit why: `scored out` or `too large`.
        tokens_before: what the view would have cost with them.
        tokens_after: what it costs without them.
        budget: what it may cost.
        cause: who had to compete for the budget: `young`, the units since the last eviction, or the `whole` view.
    """

    units: list[Unit]
    messages: list[Any]
    reasons: list[str]
    tokens_before: int
    tokens_after: int
    budget: int
    cause: str
