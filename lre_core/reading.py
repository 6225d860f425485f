"""A history as read so far: its units, what each costs, their features; a new message costs its own length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lre_core.features import Features
from lre_core.messages import Message, as_message
from lre_core.scorer import Scorer
from lre_core.settings import asks_to_keep
from lre_core.state import State, digest
from lre_core.units import Unit, group_from, open_units, waiting_units

if TYPE_CHECKING:
    from lre_core.eviction import Evictor

__all__ = ["Entry", "Reading"]


class Entry(NamedTuple):
    """A message as read: the caller's own object, what it says, what it costs, whether it is always kept."""

    given: Any
    message: Message
    cost: int
    pinned: bool


class Reading:
    """Reads messages once, as they come.

    Args:
        evictor: says how a caller's message is read, what it costs and whether it is pinned, each asked once a message.

    Attributes:
        messages: the caller's own objects.
        units: their units. The last few may still change while they wait for results.
        costs: tokens of each unit.
        pinned: for each unit whether it is a system message, one the caller pinned, or a step of a tool to keep.
        excluded: for each unit whether it is a step of nothing but tools to exclude, and not pinned.
        last_human: the last human unit.
        has_calls: whether there is a step.
    """

    def __init__(self, evictor: Evictor) -> None:
        self._evictor = evictor
        self._read: list[Message] = []
        self._message_costs: list[int] = []
        self._message_pins: list[bool] = []
        self._features: tuple[Scorer, Features] | None = None
        self.messages: list[Any] = []
        self.units: list[Unit] = []
        self.costs: list[int] = []
        self.pinned: list[bool] = []
        self.excluded: list[bool] = []
        self.last_human: int | None = None
        self.has_calls = False

    @property
    def settled(self) -> int:
        """How many units are final: all but those at the end that a later result may change."""
        return len(self.units) - open_units(self.units)

    @property
    def waiting(self) -> int:
        """The first of the units at the end that wait for a result."""
        return len(self.units) - waiting_units(self.units)

    @property
    def hidden(self) -> int:
        """Steps of excluded tools before this unit are out of view.

        The model must see a result once: the last step stays, and with `whole_turn` the whole current turn.
        """
        last = len(self.units) - 1
        turn = self.last_human if self._evictor.whole_turn and self.last_human is not None else last
        return min(turn, last, self.settled)

    def read(self, messages: Sequence[Any]) -> list[Entry]:
        """Reads messages that come next; nothing is added yet.

        Raises:
            InvalidMessage: a message that cannot be read.
        """
        evictor = self._evictor
        given = messages if evictor.reader is None else map(evictor.reader, messages)
        read = [as_message(message, index) for index, message in enumerate(given, len(self.messages))]
        costs = list(map(evictor.message_cost, read, messages))
        pins = [message.kind == "system" for message in read]
        if evictor.pin is not None:
            for index, message in enumerate(messages):
                pins[index] = pins[index] or asks_to_keep(evictor.pin, message, read[index])
        return list(map(Entry, messages, read, costs, pins))

    def extend(self, entries: Sequence[Entry]) -> int:
        """Adds what `read` gave; the index of the first unit that is new or has changed."""
        first = self.settled
        start = self.units[first].start if first < len(self.units) else len(self._read)
        for entry in entries:
            self.messages.append(entry.given)
            self._read.append(entry.message)
            self._message_costs.append(entry.cost)
            self._message_pins.append(entry.pinned)
        new = group_from(self._read, start)
        self.units[first:] = new
        self.costs[first:] = [sum(self._message_costs[unit.start : unit.stop]) for unit in new]
        self.pinned[first:] = [any(self._message_pins[unit.start : unit.stop]) for unit in new]
        self.excluded[first:] = [False] * len(new)
        if self._evictor.keep_tools or self._evictor.exclude_tools:
            self._flag_tools(first)
        humans = [index for index, unit in enumerate(new, first) if unit.role == "human"]
        self.last_human = humans[-1] if humans else self.last_human
        self.has_calls = self.has_calls or any(unit.kind == "step" for unit in new)
        return first

    def _flag_tools(self, first: int) -> None:
        """Which steps from unit `first` on call a tool to keep, and which call nothing but tools to exclude."""
        keep, exclude = frozenset(self._evictor.keep_tools), frozenset(self._evictor.exclude_tools)
        for index in range(first, len(self.units)):
            unit = self.units[index]
            called = {call.name for message in self._read[unit.start : unit.stop] for call in message.calls}
            self.pinned[index] = self.pinned[index] or not called.isdisjoint(keep)
            self.excluded[index] = bool(called) and called <= exclude and not self.pinned[index]

    def sendable(self, units: Sequence[int]) -> list[int]:
        """Those of the units that may be sent at all.

        Not: results without their call, calls without a result unless they wait for it at the end, excluded steps.
        """
        waiting, hidden = self.waiting, self.hidden
        return [
            unit
            for unit in units
            if (self.units[unit].complete or unit >= waiting) and not (self.excluded[unit] and unit < hidden)
        ]

    def prefix(self, size: int) -> Reading:
        """The first `size` messages, read afresh."""
        reading = Reading(self._evictor)
        reading.extend(reading.read(self.messages[:size]))
        return reading

    def scores(self, scorer: Scorer, units: Sequence[int] | None = None) -> NDArray[np.float64]:
        """(units,) the scores as of now of these units, by default of all; a unit that is not final has NaN."""
        if self._features is None or self._features[0] is not scorer:
            self._features = (scorer, scorer.features())
        features = self._features[1]
        settled = self.settled
        features.extend(self._read, self.units[features.size : settled])
        wanted = np.arange(len(self.units)) if units is None else np.asarray(units, np.intp)
        scores = np.full(len(wanted), np.nan)
        final = wanted < settled
        scores[final] = scorer.probabilities(features, wanted[final])
        return scores

    def is_system(self, message: int) -> bool:
        """Whether a message is the system's."""
        return self._read[message].kind == "system"

    def thinks(self, unit: int) -> bool:
        """Whether a unit begins with a message that holds thinking blocks."""
        return self._read[self.units[unit].start].thinks

    def texts(self, unit: Unit) -> list[str]:
        """What a unit says: its messages' texts, the names of the tools it calls, and what it calls them with."""
        read = self._read[unit.start : unit.stop]
        calls = [call for message in read for call in message.calls]
        return [message.text for message in read] + [text for call in calls for text in (call.name, call.arguments)]

    def is_of(self, state: State) -> bool:
        """Whether it begins with the messages that a state was made from."""
        return state.made_from(self._read)

    def digest(self, stop: int, start: int = 0, before: str = "") -> str:
        """Chained digest of messages up to `stop`, from that of the messages up to `start`."""
        return digest(self._read[start:stop], before)
