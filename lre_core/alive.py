"""The units that have not left, and the view of them all, kept up as messages come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from lre_core.reading import Reading

__all__ = ["Alive", "Gathered"]


class Gathered(NamedTuple):
    """Messages to show: the caller's objects, their indexes in the history, what they cost."""

    messages: list[Any]
    kept: list[int]
    tokens: int


class Alive:
    """The units of a history that have not left.

    While they fit the budget, a view costs the new messages only: those of the final units are gathered once, and what
    is gathered never changes. Only the few units behind them are looked at again.

    Attributes:
        units: ascending.
    """

    def __init__(self, history: Reading, units: Iterable[int] = ()) -> None:
        self._history = history
        self.units = list(units)
        self._gathered = 0
        self._opened = False
        self._messages: list[Any] = []
        self._kept: list[int] = []
        self._tokens = 0

    def extend(self, first: int) -> None:
        """Adds the units of the history from `first` on, of which some may have been there and have changed."""
        while self.units and self.units[-1] >= first:
            self.units.pop()
        self.units += range(first, len(self._history.units))

    def everything(self, budget: int) -> Gathered | None:
        """The view of all that is alive; None where it exceeds the budget, or no human message opens it."""
        self._gather()
        if not self._opened or self._tokens > budget:
            return None
        tail = self._history.sendable(self.units[self._gathered :])
        tokens = self._tokens + sum(self._history.costs[unit] for unit in tail)
        if tokens > budget:
            return None
        messages, kept = list(self._messages), list(self._kept)
        for unit in tail:
            self._append(unit, messages, kept)
        return Gathered(messages, kept, tokens)

    def _gather(self) -> None:
        """Takes in the units whose fate no later message changes."""
        history, units = self._history, self.units
        opening = self._gathered
        if not self._opened:
            # What is said before the first human message, by anyone but the system, may not open a view.
            opening = next((at for at, unit in enumerate(units) if history.units[unit].role == "human"), len(units))
            if opening == len(units):
                return
            self._opened = True
        settled, hidden = history.settled, history.hidden
        while self._gathered < len(units):
            unit = units[self._gathered]
            if unit >= settled or (history.excluded[unit] and unit >= hidden):
                break
            greeting = self._gathered < opening and history.units[unit].role != "system"
            if history.units[unit].complete and not history.excluded[unit] and not greeting:
                self._append(unit, self._messages, self._kept)
                self._tokens += history.costs[unit]
            self._gathered += 1

    def _append(self, unit: int, messages: list[Any], kept: list[int]) -> None:
        span = range(self._history.units[unit].start, self._history.units[unit].stop)
        messages += self._history.messages[span.start : span.stop]
        kept += span
