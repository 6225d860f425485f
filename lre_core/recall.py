"""Finding again what has left the view, by BM25. The one place where a query is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lre_core.errors import InvalidSetting, MissingExtra
from lre_core.messages import Message
from lre_core.reading import Reading
from lre_core.settings import whole_number
from lre_core.text import scan
from lre_core.units import Unit

__all__ = ["Recall", "Recalled", "quoted"]


@dataclass(frozen=True, slots=True)
class Recalled:
    """A unit found again.

    Attributes:
        messages: its messages, the caller's own objects.
        start: index of its first message.
        stop: index after its last message.
        score: its BM25 score, above 0; comparable within one answer only.
    """

    messages: list[Any]
    start: int
    stop: int
    score: float


def quoted(
    found: Iterable[Recalled], read: Callable[[Any], Message], count: Callable[[str], int], max_tokens: int
) -> Iterator[str]:
    """Texts of what was found, as many as fit; the last one is cut and says so."""
    for unit in found:
        text = _told(unit, read)
        tokens = count(text)
        if tokens > max_tokens:
            shown = len(text) * max_tokens // tokens
            if shown:
                yield f"{text[:shown]}\n[cut here: {len(text) - shown:,} more characters]"
            return
        yield text
        max_tokens -= tokens


def _told(unit: Recalled, read: Callable[[Any], Message]) -> str:
    """A unit as text: where it stands, who said it, and the calls it made."""
    lines = [
        f"[message {unit.start + 1}]" if unit.stop == unit.start + 1 else f"[messages {unit.start + 1}-{unit.stop}]"
    ]
    for message in map(read, unit.messages):
        calls = [f"{call.name}({call.arguments})" for call in message.calls]
        lines.append("\n".join(filter(None, [f"{message.role}: {message.text}", *calls])))
    return "\n".join(lines)


class Recall:
    """Searches the units that have left. It costs nothing before the first search.

    That indexes all that has left, in about a second for a million tokens. The index stays until more has left, and
    searching it takes a millisecond or two.

    Words are cut as for the scorer's features, so scripts written without spaces are searched by pairs of characters.
    """

    def __init__(self, history: Reading) -> None:
        self._history = history
        self._units: list[Unit] = []
        self._index: _Index | None = None

    def search(self, units: Sequence[Unit], query: str, k: int) -> list[Recalled]:
        """The units that share words with the query, best first; of equals the newer first.

        Raises:
            MissingExtra: bm25s is not installed.
            InvalidSetting: the query is not text, or k is not a whole number of 1 or more.
        """
        if not isinstance(query, str):
            raise InvalidSetting(f"query is {type(query).__name__}; expected text")
        k = whole_number("k", k, 1, "units")
        if self._index is None or self._units != units:
            self._units = list(units)
            self._index = _Index([self._history.texts(unit) for unit in self._units])
        scores = self._index.scores(query)
        newest_first = np.flatnonzero(scores > 0)[::-1]
        best = newest_first[np.argsort(-scores[newest_first], kind="stable")][:k]
        return [
            Recalled(self._history.messages[unit.start : unit.stop], unit.start, unit.stop, float(scores[at]))
            for at, unit in ((at, self._units[at]) for at in best.tolist())
        ]


class _Index:
    """BM25 (Lucene's, k1 = 1.5, b = 0.75) over units, each a list of texts."""

    def __init__(self, units: Sequence[Sequence[str]]) -> None:
        try:
            with warnings.catch_warnings():
                # In a notebook without ipywidgets its progress bar, which is never shown here, warns on import.
                warnings.simplefilter("ignore")
                import bm25s
        except ImportError:
            raise MissingExtra("recall", "recall") from None
        words = scan([text for texts in units for text in texts]).words
        owner = np.repeat(np.arange(len(units)), [len(texts) for texts in units])[words.text]
        self._vocabulary, ids = np.unique(words.hashes, return_inverse=True)
        self._size = len(units)
        self._bm25 = bm25s.BM25()
        if len(ids):
            documents = np.split(ids, np.searchsorted(owner, np.arange(1, len(units))))
            # `index` would do the same and log at debug level, which bm25s turns on when it is imported.
            self._bm25.scores = self._bm25.build_index_from_ids(
                range(len(self._vocabulary)), [document.tolist() for document in documents], show_progress=False
            )

    def scores(self, query: str) -> NDArray[np.float32]:
        """(units,) BM25 scores."""
        known = np.flatnonzero(np.isin(self._vocabulary, scan([query]).words.hashes))
        if not len(known):
            return np.zeros(self._size, np.float32)
        scores: NDArray[np.float32] = self._bm25.get_scores_from_ids(known)
        return scores
