"""A history as read so far: its units, what each costs, their features; a new message costs its own length."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lre_core.features import Features
from lre_core.messages import Message, as_message
from lre_core.scorer import Scorer
from lre_core.units import Unit, group_from, open_units, waiting_units

__all__ = ["Reading"]


class Reading:
    """Reads messages once, as they come.

    Args:
        read: turns a caller's message into a `Message`; None where they are chat dicts or `Message` already.
        cost: tokens of a message, from the message as read and the caller's own object.
        pin: whether the caller wants a message kept always; asked once a message, with the caller's own object.

    Attributes:
        messages: the caller's own objects.
        units: their units. The last few may still change while they wait for results.
        costs: tokens of each unit.
        pinned: for each unit whether it is a system message or the caller pinned it.
        settled: how many units are final.
    """

    def __init__(
        self,
        read: Callable[[Any], Message] | None,
        cost: Callable[[Message, Any], int],
        pin: Callable[[Any], bool] | None,
    ) -> None:
        self._reader, self._cost, self._pin = read, cost, pin
        self._read: list[Message] = []
        self._message_costs: list[int] = []
        self._message_pins: list[bool] = []
        self._features: tuple[Scorer, Features] | None = None
        self.messages: list[Any] = []
        self.units: list[Unit] = []
        self.costs: list[int] = []
        self.pinned: list[bool] = []
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

    def extend(self, messages: Sequence[Any]) -> int:
        """Adds messages; the index of the first unit that is new or has changed.

        Raises:
            InvalidMessage: a message that cannot be read. Then none of them is added.
        """
        given = messages if self._reader is None else map(self._reader, messages)
        read = [as_message(message, index) for index, message in enumerate(given, len(self.messages))]
        costs = list(map(self._cost, read, messages))
        self.messages += messages
        self._read += read
        self._message_costs += costs
        self._message_pins += (message.kind == "system" for message in read)
        if self._pin is not None:
            added = len(self.messages) - len(messages)
            for index, message in enumerate(messages, added):
                self._message_pins[index] = self._message_pins[index] or bool(self._pin(message))
        first = self.settled
        start = self.units[first].start if first < len(self.units) else len(self._read) - len(read)
        new = group_from(self._read, start)
        self.units[first:] = new
        self.costs[first:] = [sum(self._message_costs[unit.start : unit.stop]) for unit in new]
        self.pinned[first:] = [any(self._message_pins[unit.start : unit.stop]) for unit in new]
        humans = [index for index, unit in enumerate(new, first) if unit.role == "human"]
        self.last_human = humans[-1] if humans else self.last_human
        self.has_calls = self.has_calls or any(unit.kind == "step" for unit in new)
        return first

    def prefix(self, size: int) -> Reading:
        """The first `size` messages, read afresh."""
        reading = Reading(self._reader, self._cost, self._pin)
        reading.extend(self.messages[:size])
        return reading

    def scores(self, scorer: Scorer, start: int = 0) -> NDArray[np.float64]:
        """(units - start,) the scores as of now; a unit that is not final has NaN."""
        if self._features is None or self._features[0] is not scorer:
            self._features = (scorer, scorer.features())
        features = self._features[1]
        settled = self.settled
        features.extend(self._read, self.units[features.size : settled])
        scores = np.full(len(self.units) - start, np.nan)
        if start < settled:
            scores[: settled - start] = scorer.probabilities(features, start)
        return scores

    def digest(self, stop: int, start: int = 0, before: str = "") -> str:
        """Chained digest of messages up to `stop`, from that of the messages up to `start`."""
        keys = (message.key for message in self._read[start:stop])
        *_, last = accumulate(keys, _link, initial=before)
        return last


def _link(before: str, key: str) -> str:
    return hashlib.blake2b(f"{before}{key}".encode(), digest_size=8).hexdigest()
