"""A history as it was when a view was made: what the view tells only when it is asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lre_core.generations import Decision
from lre_core.reading import Reading
from lre_core.recall import Recall, Recalled
from lre_core.units import Unit

if TYPE_CHECKING:
    from lre_core.eviction import Evictor

__all__ = ["Moment"]


class Moment:
    """Remembers how long a growing history was, and answers as of then.

    Args:
        history: it may grow on.
        evictor: its settings.
        recall: searches it.
        lock: held while the history is read or grows.
        decision: what was decided, given the history as of this moment.

    Attributes:
        size: how many messages there were.
    """

    def __init__(
        self,
        history: Reading,
        evictor: Evictor,
        recall: Recall,
        lock: threading.RLock,
        decision: Callable[[Reading], Decision],
    ) -> None:
        self._history, self._evictor, self._recall, self._lock = history, evictor, recall, lock
        self._decision = decision
        self.size = len(history.messages)
        self._final = history.settled
        self._open = history.units[self._final :]

    def units(self) -> list[Unit]:
        """All units."""
        return self._history.units[: self._final] + self._open

    def scores(self) -> NDArray[np.float64]:
        """(units,) their scores; NaN for calls that still wait for a result."""
        with self._lock:
            now = self._as_it_was()
            return now.scores(self._evictor.scorer_for(now))

    def reasons(self) -> dict[int, str]:
        """For each unit considered, why it is in view or out."""
        with self._lock:
            return self._decision(self._as_it_was()).reasons

    def recall(self, units: Sequence[Unit], query: str, k: int) -> list[Recalled]:
        """The best of these units for a query."""
        with self._lock:
            return self._recall.search(units, query, k)

    def _as_it_was(self) -> Reading:
        """What is read late still knows only what was known at this moment."""
        history = self._history
        return history if len(history.messages) == self.size else history.prefix(self.size)
