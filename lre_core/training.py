"""Training: L2-regularised logistic regression, cross-validated by history, compared with what is simpler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lre_core.errors import MissingExtra, TrainingError
from lre_core.features import FEATURES, Features
from lre_core.intervals import Interval, Resampled
from lre_core.messages import ChatMessage, Message, as_messages
from lre_core.scorer import CLIP, Scorer
from lre_core.units import group_from

try:
    from scipy.sparse import csr_matrix, hstack, vstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
except ImportError as error:
    raise MissingExtra("Training", "train") from error

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

__all__ = ["Comparison", "Interval", "compare", "fit", "rank"]

STRENGTHS = (0.03, 0.1, 0.3, 1.0)
"""Inverse regularisation strengths tried, as scikit-learn's `C`."""
CARRIES_OVER = frozenset(
    {"human", "assistant", "step", "system", "reuse_in_calls", "reuse_any_call", "reuse_share"}
    | {
        "log_since_reuse",
        "log_since_call",
        "calls_again",
        "call_again_share",
        *(name for name in FEATURES if "identifiers" in name),
    }
)
"""Features that mean the same in every application: who speaks, and which identifiers were introduced and used. They
are regularised least; across families of agents they carry the score, where the others mislead it."""
STATISTIC_PRIOR = 0.1
"""How large the weight of any other standardised statistic is expected to be beside those."""
WORD_PRIOR = 0.4
"""The same for a hashed word."""
FOLDS = 4
ENOUGH = 20
"""Held-out histories below which no verdict is given."""


def fit(
    histories: Sequence[Sequence[ChatMessage]],
    labels: Sequence[ArrayLike],
    *,
    groups: Sequence[object] | None = None,
) -> Scorer:
    """Fits a scorer; the regularisation is the one with the best mean AUC a history on held-out groups.

    Args:
        histories: the histories, each cut at the moment its labels speak of.
        labels: for each history one 0 or 1 a unit.
        groups: for each history, what it belongs to; see `Scorer.fit`.

    Raises:
        TrainingError: no history, or labels all alike, or their number does not fit the units.
    """
    if len(histories) != len(labels):
        raise TrainingError(f"{len(histories)} histories but {len(labels)} sequences of labels")
    read = [as_messages(history) for history in histories]
    rows = [_rows(messages) for messages in read]
    targets = [np.asarray(label, np.float64).ravel() for label in labels]
    for index, ((statistics, _), target) in enumerate(zip(rows, targets, strict=True)):
        if len(statistics) != len(target):
            raise TrainingError(f"history {index} has {len(statistics)} units but {len(target)} labels")
    y = np.concatenate(targets) if targets else np.empty(0)
    if not 0 < y.sum() < len(y):
        raise TrainingError(f"nothing to tell apart: {int(y.sum())} of {len(y)} units are labelled as needed")

    statistics = np.vstack([row[0] for row in rows])
    mean, deviation = statistics.mean(axis=0), statistics.std(axis=0)
    scale = np.where(deviation > 1e-9, 1.0 / np.maximum(deviation, 1e-9), 0.0)
    prior = np.array([1.0 if name in CARRIES_OVER else STATISTIC_PRIOR for name in FEATURES])
    standardised = np.clip((statistics - mean) * scale, -CLIP, CLIP)
    design = hstack([csr_matrix(standardised * prior), WORD_PRIOR * vstack([row[1] for row in rows])]).tocsr()
    keys = list(groups) if groups is not None else consecutive_runs(read)
    strength = _best_strength(design, targets, keys)
    model = _regression(strength).fit(design, y)
    statistic_weights, word_weights = np.split(model.coef_[0], [len(FEATURES)])
    return Scorer.quantised(
        float(model.intercept_[0]), mean, scale, statistic_weights * prior, WORD_PRIOR * word_weights
    )


def consecutive_runs(histories: Sequence[Sequence[Message]]) -> list[int]:
    """Numbers histories so that neighbours with the same opening (moments of one run) share a number."""
    keys: list[int] = []
    for index, history in enumerate(histories):
        before = histories[index - 1] if index else []
        shared = min(3, len(before), len(history))
        opens = not shared or list(before[:shared]) != list(history[:shared])
        keys.append((keys[-1] if keys else -1) + opens)
    return keys


def _rows(messages: Sequence[Message]) -> tuple[NDArray[np.float64], spmatrix]:
    """A history's statistics (units, len(FEATURES)) and hashed words (units, WORD_BUCKETS)."""
    units = group_from(messages, 0)
    features = Features()
    features.extend(messages, units)
    return features.matrix(), features.words()


def _regression(strength: float) -> Any:
    return LogisticRegression(C=strength, max_iter=2000, tol=1e-4)


def _best_strength(design: spmatrix, targets: Sequence[NDArray[np.float64]], groups: Sequence[object]) -> float:
    ends = np.cumsum([0, *map(len, targets)])
    y = np.concatenate(targets)
    aucs: dict[float, list[float]] = {strength: [] for strength in STRENGTHS}
    for train, held in _folds(groups, FOLDS):
        rows = np.concatenate([np.arange(ends[index], ends[index + 1]) for index in train])
        if not 0 < y[rows].sum() < len(rows):
            continue
        for strength in STRENGTHS:
            model = _regression(strength).fit(design[rows], y[rows])
            for index in held:
                span = slice(ends[index], ends[index + 1])
                if 0 < y[span].sum() < len(y[span]):
                    aucs[strength].append(roc_auc_score(y[span], model.decision_function(design[span])))
    if not aucs[STRENGTHS[0]]:
        return STRENGTHS[1]
    return max(STRENGTHS, key=lambda strength: np.mean(aucs[strength]))


def _folds(groups: Sequence[object], count: int) -> list[tuple[list[int], list[int]]]:
    """(train, held out) indexes, whole groups held out together, the same for the same groups; none for one group."""
    names = list(dict.fromkeys(groups))
    if len(names) < 2:
        return []
    order = np.random.default_rng(0).permutation(len(names))
    fold_of = {names[name]: position % min(count, len(names)) for position, name in enumerate(order)}
    return [
        (
            [i for i, name in enumerate(groups) if fold_of[name] != fold],
            [i for i, name in enumerate(groups) if fold_of[name] == fold],
        )
        for fold in range(min(count, len(names)))
    ]


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

    def verdict(self) -> str:
        """One plain sentence: better than the best baseline, or not, or too early to say."""
        if self.histories < ENOUGH:
            return f"too few histories to tell: have {self.histories}, want about {ENOUGH}"
        name = self.best_baseline
        lead = self.lead[name]
        if lead.low > 0:
            spread = max(lead.high - lead.mean, lead.mean - lead.low)
            return f"better than {name} by {lead.mean:.2f} ± {spread:.2f} AUC on {self.histories} held-out histories"
        return f"not better than {name} ({lead} AUC on {self.histories} held-out histories): keep {name}"


def compare(
    histories: Sequence[Sequence[ChatMessage]],
    labels: Sequence[ArrayLike],
    *,
    groups: Sequence[object] | None = None,
    keep_recent: int = 0,
    folds: int = 5,
) -> Comparison:
    """Cross-validates by group, and ranks the same held-out units by simpler means.

    Baselines: `recency`, `random`, `length` (longest first) and `salience` (TF-IDF similarity to the history's
    centroid, which the paper found ahead of its own scorer on LongMemEval).

    Args:
        histories: the histories, each cut at the moment its labels speak of.
        labels: for each history one 0 or 1 a unit.
        groups: for each history, what it belongs to; see `Scorer.fit`.
        keep_recent: the last units, which never compete and so are not ranked.
        folds: parts the groups are cut into; each is held out once.

    Raises:
        TrainingError: there is one group only, or what `fit` raises.
    """
    keys = list(groups) if groups is not None else consecutive_runs([as_messages(history) for history in histories])
    splits = _folds(keys, folds)
    if not splits:
        raise TrainingError("one history cannot be both trained and tested on; have 1, want at least 2")
    found: dict[object, list[dict[str, float]]] = {}
    for train, held in splits:
        scorer = fit([histories[i] for i in train], [labels[i] for i in train], groups=[keys[i] for i in train])
        for i in held:
            aucs = _aucs(scorer.score, histories[i], labels[i], keep_recent)
            if aucs is not None:
                found.setdefault(keys[i], []).append(aucs)
    return _summarise(list(found.values()))


def rank(
    scorer: Callable[[Sequence[ChatMessage]], NDArray[np.float64]],
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
    found: dict[object, list[dict[str, float]]] = {}
    for history, label, group in zip(histories, labels, groups, strict=True):
        aucs = _aucs(scorer, history, label, keep_recent)
        if aucs is not None:
            found.setdefault(group, []).append(aucs)
    return _summarise(list(found.values()))


def _aucs(
    scorer: Callable[[Sequence[ChatMessage]], NDArray[np.float64]],
    history: Sequence[ChatMessage],
    labels: ArrayLike,
    keep_recent: int,
) -> dict[str, float] | None:
    """AUC of a scorer and of each baseline on one history; None where the old units are all alike."""
    y = np.asarray(labels)
    old = max(len(y) - keep_recent, 0)
    if not 0 < y[:old].sum() < old:
        return None
    rankings = {"lre": scorer(history)} | _baselines(as_messages(history))
    return {name: float(roc_auc_score(y[:old], ranking[:old])) for name, ranking in rankings.items()}


def _baselines(messages: Sequence[Message]) -> dict[str, NDArray[np.float64]]:
    units = group_from(messages, 0)
    texts = [" ".join(message.text for message in messages[unit.start : unit.stop]) for unit in units]
    try:
        tfidf = TfidfVectorizer(stop_words="english").fit_transform(texts)
        salience = np.asarray(tfidf @ np.asarray(tfidf.mean(axis=0)).T).ravel()
    except ValueError:  # not one word in the whole history
        salience = np.zeros(len(units))
    return {
        "recency": np.arange(len(units), dtype=np.float64),
        "random": np.random.default_rng(0).random(len(units)),
        "length": np.array([len(text) for text in texts], np.float64),
        "salience": salience,
    }


def _summarise(groups: Sequence[Sequence[dict[str, float]]]) -> Comparison:
    """Means over all cases, with intervals from resampling the groups they belong to."""
    if not groups:
        return Comparison({}, {}, 0)
    names = list(groups[0][0])
    resampled = Resampled([[[case[name] for name in names] for case in group] for group in groups])
    auc = {name: resampled.interval(k) for k, name in enumerate(names)}
    lead = {name: resampled.interval(0, less=k) for k, name in enumerate(names) if k}
    return Comparison(auc, lead, len(groups))
