"""How rankings of units compare on histories held out: a scorer's, and simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lre_core.errors import MissingExtra
from lre_core.intervals import Interval, Resampled
from lre_core.messages import ChatMessage, Message, as_messages
from lre_core.units import group_from

try:
    from scipy.stats import rankdata
    from sklearn.feature_extraction.text import TfidfVectorizer
except ImportError as error:
    raise MissingExtra("Training or comparing", "train") from error

__all__ = ["BASELINES", "Comparison", "Ranking", "case_aucs", "rank", "roc_auc", "summarised"]

Ranking = Callable[[Sequence[ChatMessage]], NDArray[np.float64]]
"""From a history to one score a unit."""

BASELINES = ("recency", "random", "length", "salience")
ENOUGH = 20
"""Held-out histories below which no verdict is given."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How well each way of ranking finds the needed units of held-out histories.

    Attributes:
        auc: macro-AUC of `lre` and of each baseline; 0.5 is chance, and hindsight is 1.
        lead: how much `lre` is ahead of each baseline, paired by history.
        histories: how many held-out groups there were with both needed and unneeded units.
    """

    auc: dict[str, Interval]
    lead: dict[str, Interval]
    histories: int

    @property
    def best_baseline(self) -> str:
        """The baseline with the highest AUC."""
        return max(self.lead, key=lambda name: self.auc[name].mean)

    def verdict(self, titles: Mapping[str, str] | None = None) -> str:
        """One plain sentence: better than the best baseline, or not, or too early to say.

        Args:
            titles: what to call a baseline, where that is not its name.
        """
        if self.histories < ENOUGH:
            return f"too few histories to tell: have {self.histories}, want about {ENOUGH}"
        lead = self.lead[self.best_baseline]
        name = (titles or {}).get(self.best_baseline, self.best_baseline)
        if lead.low > 0:
            spread = max(lead.high - lead.mean, lead.mean - lead.low)
            return f"better than {name} by {lead.mean:.2f} ± {spread:.2f} AUC on {self.histories} held-out histories"
        return f"not better than {name} ({lead} AUC on {self.histories} held-out histories): keep {name}"


def rank(
    scorer: Ranking,
    histories: Sequence[Sequence[ChatMessage]],
    labels: Sequence[ArrayLike],
    *,
    groups: Sequence[object],
    keep_recent: int = 0,
) -> Comparison:
    """How well a scorer as it is finds the needed units, beside the same baselines as in `compare`.

    Nothing is trained, so the histories should be ones the scorer has not been trained on.

    Args:
        scorer: from a history to one score a unit.
        histories: the histories, each cut at the moment its labels speak of.
        labels: for each history one 0 or 1 a unit.
        groups: for each history, what it belongs to; intervals are over groups.
        keep_recent: the last units, which never compete and so are not ranked.
    """
    return summarised(
        (group, case_aucs({"lre": scorer}, history, label, keep_recent))
        for history, label, group in zip(histories, labels, groups, strict=True)
    )


def case_aucs(
    scorers: Mapping[str, Ranking],
    history: Sequence[ChatMessage],
    labels: ArrayLike,
    keep_recent: int,
) -> dict[str, float] | None:
    """AUC of each scorer and of each baseline on one history; None where the old units are all alike."""
    y = np.asarray(labels)
    old = max(len(y) - keep_recent, 0)
    if not 0 < y[:old].sum() < old:
        return None
    rankings = {name: score(history) for name, score in scorers.items()} | _baselines(as_messages(history))
    return {name: roc_auc(y[:old], ranking[:old]) for name, ranking in rankings.items()}


def _baselines(messages: Sequence[Message]) -> dict[str, NDArray[np.float64]]:
    units = group_from(messages, 0)
    texts = [" ".join(message.text for message in messages[unit.start : unit.stop]) for unit in units]
    try:
        tfidf = TfidfVectorizer(stop_words="english").fit_transform(texts)
        salience = np.asarray(tfidf @ np.asarray(tfidf.mean(axis=0)).T).ravel()
    except ValueError:  # not one word in the whole history
        salience = np.zeros(len(units))
    # Seeded by what is said: one order for all histories would be a ranking of its own.
    seed = crc32("".join(texts).encode("utf-8", "surrogatepass"))
    rankings = (
        np.arange(len(units), dtype=np.float64),
        np.random.default_rng(seed).random(len(units)),
        np.array([len(text) for text in texts], np.float64),
        salience,
    )
    return dict(zip(BASELINES, rankings, strict=True))


def summarised(cases: Iterable[tuple[object, dict[str, float] | None]]) -> Comparison:
    """Means over all cases, with intervals from resampling the groups they belong to.

    Args:
        cases: of each its group, and its AUCs or None, as `case_aucs` gives them.
    """
    found: dict[object, list[dict[str, float]]] = {}
    for key, case in cases:
        if case is not None:
            found.setdefault(key, []).append(case)
    groups = list(found.values())
    if not groups:
        return Comparison({}, {}, 0)
    names = list(groups[0][0])
    resampled = Resampled([[[case[name] for name in names] for case in group] for group in groups])
    auc = {name: resampled.interval(k) for k, name in enumerate(names)}
    lead = {name: resampled.interval(0, less=k) for k, name in enumerate(names) if k}
    return Comparison(auc, lead, len(groups))


def roc_auc(y: NDArray[Any], scores: NDArray[Any]) -> float:
    """Area under the ROC curve, as the rank sum of the needed units (Mann and Whitney 1947)."""
    needed = y > 0
    count = needed.sum()
    above = rankdata(scores)[needed].sum() - count * (count + 1) / 2
    return float(above / (count * (len(y) - count)))
