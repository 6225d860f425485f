"""Training: L2-regularised logistic regression, cross-validated by history, compared with what is simpler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lre_core.comparison import BASELINES, Comparison, Ranking, case_aucs, roc_auc, summarised
from lre_core.errors import MissingExtra, TrainingError
from lre_core.features import FEATURES, Features
from lre_core.grams import Said, WordMatrix, scripts_of
from lre_core.messages import ChatMessage, Message, as_messages
from lre_core.scorer import CLIP, Scorer
from lre_core.scripts import learned_scripts
from lre_core.units import group_from

try:
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression
except ImportError as error:
    raise MissingExtra("Training or comparing", "train") from error

if TYPE_CHECKING:
    from scipy.sparse import spmatrix

T = TypeVar("T")

__all__ = ["compare", "fit"]

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
"""Inverse regularisation strengths tried, as scikit-learn's `C`."""
SALTS = range(8)
"""Salts tried, see `lre_core.grams`: on LoCoMo their AUCs lie up to 0.006 apart, and alike for held-out histories."""
SAMPLE = 1_000_000
"""Words of units, each once a unit, that strength and salt are chosen on; the choice is most of the time."""
USUAL = 0.1
"""The strength where nothing can be held out to choose one by."""
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
STATISTIC_PRIOR = 0.2
"""How large the weight of any other standardised statistic is expected to be beside those."""
WORD_PRIOR = 20.0
"""The same for a bucket of words, whose values are small: means over a unit."""
RECENT = 5
"""Units at the end by which no strength is judged: the recent window stays in view whatever its scores, and what makes
the last results needed does not carry over to old ones."""
FOLDS = 4


def fit(
    histories: Sequence[Sequence[ChatMessage]],
    labels: Sequence[ArrayLike],
    *,
    groups: Sequence[object] | None = None,
) -> Scorer:
    """Fits a scorer, with the regularisation and salt of the best mean AUC, of old units, over held-out groups.

    Args:
        histories: the histories, each cut at the moment its labels speak of.
        labels: for each history one 0 or 1 a unit.
        groups: for each history, what it belongs to; see `Scorer.fit`.

    Raises:
        TrainingError: no history, or labels all alike, or other than 0 and 1, or not one a unit, or groups not one a
            history.
    """
    read = [as_messages(history) for history in histories]
    return _fitted(_cases(read, labels), _keys(groups, read))


class Case(NamedTuple):
    """A history as training sees it.

    Attributes:
        statistics: (units, len(FEATURES)) as of its last unit.
        said: the words of its units.
        needed: (units,) its labels, 0 or 1.
    """

    statistics: NDArray[np.float64]
    said: Said
    needed: NDArray[np.float64]


def _cases(histories: Sequence[Sequence[Message]], labels: Sequence[ArrayLike]) -> list[Case]:
    if len(histories) != len(labels):
        raise TrainingError(f"{len(histories)} histories but {len(labels)} sequences of labels")
    cases = []
    for number, (messages, label) in enumerate(zip(histories, labels, strict=True)):
        features = Features()
        features.extend(messages, group_from(messages, 0))
        cases.append(Case(features.matrix(), features.said, _target(label, features.size, number)))
    return cases


def _fitted(cases: Sequence[Case], groups: Sequence[object]) -> Scorer:
    y = np.concatenate([np.empty(0), *(case.needed for case in cases)])
    if not 0 < y.sum() < len(y):
        raise TrainingError(f"nothing to tell apart: {int(y.sum())} of {len(y)} units are labelled as needed")

    statistics = np.vstack([case.statistics for case in cases])
    mean, deviation = statistics.mean(axis=0), statistics.std(axis=0)
    scale = np.where(deviation > 1e-9, 1.0 / np.maximum(deviation, 1e-9), 0.0)
    prior = np.array([1.0 if name in CARRIES_OVER else STATISTIC_PRIOR for name in FEATURES])
    standardised = csr_matrix(np.clip((statistics - mean) * scale, -CLIP, CLIP) * prior)

    scripts = learned_scripts(scripts_of([case.said for case in cases]))
    ends = np.cumsum([0, *(len(case.needed) for case in cases)])

    def design(chosen: Sequence[int]) -> Callable[[int], spmatrix]:
        every_row = np.concatenate([np.arange(ends[index], ends[index + 1]) for index in chosen])
        words = WordMatrix([cases[index].said for index in chosen], scripts)
        return lambda salt: hstack([standardised[every_row], WORD_PRIOR * words.hashed(salt)], "csr")

    sample = _up_to(SAMPLE, groups, [len(case.said.word) for case in cases])
    held_out = HeldOut([cases[index].needed for index in sample], [groups[index] for index in sample])
    sampled = design(sample)
    first = sampled(SALTS[0])
    strength = held_out.best(STRENGTHS, lambda strength: (first, strength), usual=USUAL)
    salt = held_out.best(SALTS, lambda salt: (sampled(salt), strength), usual=SALTS[0])
    model = _regression(strength).fit(design(range(len(cases)))(salt), y)
    statistic_weights, word_weights = np.split(model.coef_[0], [len(FEATURES)])
    return Scorer.quantised(
        float(model.intercept_[0]), mean, scale, statistic_weights * prior, WORD_PRIOR * word_weights, salt, scripts
    )


def _up_to(most: int, groups: Sequence[object], sizes: Sequence[int]) -> list[int]:
    """Histories that are no larger than this in all, whole groups of them as they are drawn; two groups at least."""
    names = list(dict.fromkeys(groups))
    size_of = dict.fromkeys(names, 0)
    for name, size in zip(groups, sizes, strict=True):
        size_of[name] += size
    order = np.random.default_rng(0).permutation(len(names))
    fitting = np.searchsorted(np.cumsum([size_of[names[k]] for k in order]), most, side="right")
    taken = {names[k] for k in order[: max(2, int(fitting))]}
    return [index for index, name in enumerate(groups) if name in taken]


def _target(label: ArrayLike, units: int, number: int) -> NDArray[np.float64]:
    target = np.asarray(label, np.float64).ravel()
    if units != len(target):
        raise TrainingError(f"history {number} has {units} units but {len(target)} labels")
    if not np.isin(target, (0, 1)).all():
        wrong = target[~np.isin(target, (0, 1))][0]
        raise TrainingError(f"history {number} has a label {wrong:g}; expected 0 or 1 a unit")
    return target


def _keys(groups: Sequence[object] | None, histories: Sequence[Sequence[Message]]) -> list[object]:
    """What each history belongs to."""
    if groups is None:
        return list(consecutive_runs(histories))
    if len(groups) != len(histories):
        raise TrainingError(f"{len(histories)} histories but {len(groups)} groups")
    return list(groups)


def consecutive_runs(histories: Sequence[Sequence[Message]]) -> list[int]:
    """Numbers histories so that neighbours with the same opening (moments of one run) share a number."""
    keys: list[int] = []
    for index, history in enumerate(histories):
        before = histories[index - 1] if index else []
        shared = min(3, len(before), len(history))
        opens = not shared or list(before[:shared]) != list(history[:shared])
        keys.append((keys[-1] if keys else -1) + opens)
    return keys


def _regression(strength: float) -> Any:
    return LogisticRegression(C=strength, max_iter=2000, tol=1e-4)


class HeldOut:
    """Judges settings by the mean AUC over held-out histories, of their old units.

    Args:
        targets: the labels of each history.
        groups: what each belongs to; held out together.
    """

    def __init__(self, targets: Sequence[NDArray[np.float64]], groups: Sequence[object]) -> None:
        self._ends = np.cumsum([0, *map(len, targets)])
        self._y = np.concatenate(targets)
        self._old = _judged(targets)
        self._folds = [
            (rows, tests)
            for train, held in _folds(groups, FOLDS)
            if 0 < self._y[rows := np.concatenate([self._rows(index) for index in train])].sum() < len(rows)
            and (tests := [index for index in held if index in self._old])
        ]

    def best(self, candidates: Iterable[T], model: Callable[[T], tuple[spmatrix, float]], usual: T) -> T:
        """The candidate with the best mean AUC; of equals the first.

        Args:
            candidates: settings to try.
            model: from one of them to the design matrix and the strength it stands for.
            usual: what to take where nothing can be held out.
        """
        if not self._folds:
            return usual
        return max(candidates, key=lambda candidate: self._mean_auc(*model(candidate)))

    def _mean_auc(self, design: spmatrix, strength: float) -> float:
        found: list[float] = []
        for rows, tests in self._folds:
            model = _regression(strength).fit(design[rows], self._y[rows])
            old = [self._rows(index)[: self._old[index]] for index in tests]
            scores = model.decision_function(design[np.concatenate(old)])
            parts = np.split(scores, np.cumsum([len(part) for part in old])[:-1])
            found += [roc_auc(self._y[part], ranking) for part, ranking in zip(old, parts, strict=True)]
        return float(np.mean(found))

    def _rows(self, index: int) -> NDArray[np.intp]:
        return np.arange(self._ends[index], self._ends[index + 1])


def _judged(targets: Sequence[NDArray[np.float64]]) -> dict[int, int]:
    """Histories whose old units are not all alike, and how many they are; with none, those whose units are not."""
    for recent in (RECENT, 0):
        old = {index: max(0, len(target) - recent) for index, target in enumerate(targets)}
        judged = {index: count for index, count in old.items() if 0 < targets[index][:count].sum() < count}
        if judged:
            return judged
    return {}


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


def compare(
    histories: Sequence[Sequence[ChatMessage]],
    labels: Sequence[ArrayLike],
    *,
    groups: Sequence[object] | None = None,
    keep_recent: int = 0,
    folds: int = 5,
    rivals: Mapping[str, Ranking] | None = None,
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
        rivals: other scorers, from a history to one score a unit, to stand among the baselines. They should not have
            been trained on these histories.

    Raises:
        TrainingError: there is one group only, a rival has the name of a baseline, or what `fit` raises.
    """
    if taken := set(rivals or ()) & {"lre", *BASELINES}:
        raise TrainingError(f"a rival is named {min(taken)!r}, as what it is compared with; give it another name")
    read = [as_messages(history) for history in histories]
    keys = _keys(groups, read)
    splits = _folds(keys, folds)
    if not splits:
        raise TrainingError("one history cannot be both trained and tested on; have 1, want at least 2")
    cases = _cases(read, labels)
    found: list[tuple[object, dict[str, float] | None]] = []
    for train, held in splits:
        scorer = _fitted([cases[i] for i in train], [keys[i] for i in train])
        scorers = {"lre": scorer.score, **(rivals or {})}
        found += [(keys[i], case_aucs(scorers, histories[i], labels[i], keep_recent)) for i in held]
    return summarised(found)
