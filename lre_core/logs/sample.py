"""An even sample of a log of any size, in bounded memory."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from lre_core.logs.reader import History
from lre_core.messages import as_message

__all__ = ["Sample"]

MOST_CHARACTERS = 100_000_000


@dataclass(slots=True)
class Sample:
    """Keeps so many histories of all it has seen, each as likely as any other; the same log gives the same sample.

    Every history draws a number, and those with the smallest numbers stay (bottom-k sampling).

    Args:
        most: how many histories to keep.
        most_characters: how much text they may hold together; fewer stay where histories are long.

    Attributes:
        seen: histories seen.
    """

    most: int
    most_characters: int = MOST_CHARACTERS
    seen: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(0))
    _heap: list[tuple[float, int, int, History]] = field(default_factory=list)
    _characters: int = 0
    _limit: float = 1.0

    def add_all(self, histories: Iterable[History]) -> None:
        """Sees histories."""
        for history in histories:
            drawn = self._chance.random()
            self.seen += 1
            if drawn < self._limit:
                size = sum(map(_characters, history.messages))
                heapq.heappush(self._heap, (-drawn, self.seen, size, history))
                self._characters += size
                while len(self._heap) > max(self.most, 1) or (
                    self._characters > self.most_characters and len(self._heap) > 1
                ):
                    largest, _, dropped, _ = heapq.heappop(self._heap)
                    self._characters -= dropped
                    self._limit = -largest

    def histories(self) -> list[History]:
        """Those kept, in the order they were seen."""
        return [history for _, _, _, history in sorted(self._heap, key=lambda kept: kept[1])]


def _characters(message: dict[str, object]) -> int:
    read = as_message(message)
    return len(read.text) + sum(len(call.arguments) for call in read.calls)
