"""The scorer: a logistic regression of a few kilobytes over a unit's features."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lre_core.errors import InvalidScorer, UnknownScorer
from lre_core.features import FEATURE_SET, FEATURES, Features
from lre_core.grams import WORD_BUCKETS
from lre_core.messages import ChatMessage, as_messages
from lre_core.scripts import SCRIPTS
from lre_core.units import group_from

__all__ = ["Scorer", "bundled_scorers"]

FORMAT = 2
CLIP = 3.0
"""Standard deviations from the training mean beyond which a feature counts no more."""
STATISTICS = ("mean", "scale", "weights")
DIGITS = 4
"""Significant digits kept of a weight: what a saved scorer holds is what a fitted one scores with."""
DECIMALS = 4
"""Decimals kept of what stands in lists, so that no file exceeds four kilobytes."""
STEPS = 31
"""The largest weight of a word bucket is this many steps, so that one character of base64 holds any of them."""
ALPHABET = np.frombuffer((string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode(), np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """p(unit is load-bearing) = sigmoid(bias + weights . z + word_weights . hashed words).

    z are the features as standard deviations from the training mean, clipped to `CLIP`: however far a history lies
    from what the scorer was trained on, no single feature decides.

    Attributes:
        bias: log-odds of an average unit.
        mean: (len(FEATURES),) of the features in training.
        scale: (len(FEATURES),) one over their standard deviations; 0 for a feature that never varied.
        weights: (len(FEATURES),) log-odds per standard deviation.
        word_scale: log-odds that one step of a word weight stands for.
        words: (WORD_BUCKETS,) int8, weights of the word buckets in steps, -STEPS to STEPS. No word is kept.
        salt: decides which words share a bucket.
        scripts: that words were learned from; those of others count for nothing.

    Source: "Learned Relevance Eviction", arXiv 2606.20954, section 3.
    """

    bias: float
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    weights: NDArray[np.float64]
    word_scale: float
    words: NDArray[np.int8]
    salt: int = 0
    scripts: tuple[str, ...] = SCRIPTS

    @classmethod
    def from_pretrained(cls, name: str) -> Scorer:
        """A scorer that comes with the package; `bundled_scorers` lists them.

        Args:
            name: `agent`, for histories with tool calls, or `assistant`, for a person talking with an assistant.

        Raises:
            UnknownScorer: there is none of that name.
        """
        return _bundled(name)

    @classmethod
    def named(cls, name: str) -> Scorer:
        """The bundled scorer of that name, else the one saved in the file of that path.

        Raises:
            UnknownScorer: there is neither.
            InvalidScorer: the file is not a scorer.
        """
        if name in bundled_scorers() or not Path(name).is_file():
            return _bundled(name)
        return cls.load(name)

    @classmethod
    def fit(
        cls,
        histories: Sequence[Sequence[ChatMessage]],
        labels: Sequence[ArrayLike],
        *,
        groups: Sequence[object] | None = None,
    ) -> Scorer:
        """Learns from labelled histories. Needs the `train` extra; see `lre_core.training.fit`.

        Args:
            histories: the histories, each cut at the moment its labels speak of.
            labels: for each history one 0 or 1 a unit: is it needed by what comes after the last message given?
            groups: for each history, what it belongs to (several moments of one run share a group), so that
                cross-validation never tests on a run it has trained on. By default consecutive histories of which
                one begins with the same messages as the next are a group.

        Raises:
            TrainingError: no history, or labels all alike, or other than 0 and 1, or not one a unit.
            MissingExtra: scikit-learn is not installed.
        """
        from lre_core.training import fit

        return fit(histories, labels, groups=groups)

    def score(self, messages: Sequence[ChatMessage]) -> NDArray[np.float64]:
        """Probability, for every unit of a history, that what comes next needs it.

        Args:
            messages: the history so far, oldest first.

        Returns:
            (units,) probabilities, in the order of `lre_core.group(messages)`.
        """
        return self.probabilities(self._read(messages))

    def explain(self, messages: Sequence[ChatMessage]) -> list[dict[str, float]]:
        """What each feature added to a unit's log-odds, compared with an average unit in training.

        Args:
            messages: the history so far, oldest first.

        Returns:
            One mapping a unit from the feature's name (`words` for all hashed words together) to log-odds, largest
            effect first; zero effects are left out.
        """
        features = self._read(messages)
        added = np.column_stack([self._standardised(features.matrix()) * self.weights, features.word_scores])
        names = (*FEATURES, "words")
        return [{names[k]: float(row[k]) for k in np.argsort(-np.abs(row), kind="stable") if row[k]} for row in added]

    def features(self) -> Features:
        """An empty set of features to extend as messages arrive, for `probabilities`."""
        return Features(self.words.astype(np.float64) * self.word_scale, self.salt, self.scripts)

    def probabilities(self, features: Features, units: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        """Scores of these units, by default of all, given features made by `features()`."""
        rows = np.arange(features.size) if units is None else units
        statistics = self._standardised(features.matrix(rows))
        log_odds = self.bias + statistics @ self.weights + features.word_scores[rows]
        result: NDArray[np.float64] = 0.5 * (1.0 + np.tanh(0.5 * log_odds))
        return result

    def save(self, path: str | Path) -> None:
        """Writes the scorer as one JSON object of under four kilobytes; the same scorer gives the same bytes."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    def to_json(self) -> str:
        """The text `save` writes."""
        parts = {
            "format": FORMAT,
            "features": FEATURE_SET,
            "bias": self.bias,
            **{name: [_plain(value) for value in getattr(self, name)] for name in STATISTICS},
            "scripts": self.scripts,
            "salt": self.salt,
            "word_scale": self.word_scale,
            "words": ALPHABET[self.words + (STEPS + 1)].tobytes().decode("ascii"),
        }
        return json.dumps(parts, separators=(",", ":")) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Scorer:
        """Reads a saved scorer.

        Raises:
            InvalidScorer: the file is not a scorer, is damaged, or of another version; the text says which.
            OSError: it cannot be read at all.
        """
        return cls.from_json(Path(path).read_bytes(), name=str(path))

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "scorer") -> Scorer:
        """Reads what `to_json` gives; `name` stands in the error's text."""
        try:
            parts = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidScorer(f"{name}: not JSON, or cut short ({error})") from None
        if not isinstance(parts, dict):
            raise InvalidScorer(f"{name}: not a scorer: expected an object, found {type(parts).__name__}")
        lacking = {"format", "features", "bias", *STATISTICS, "scripts", "salt", "word_scale", "words"} - set(parts)
        if lacking:
            raise InvalidScorer(f"{name}: not a scorer: it lacks {', '.join(sorted(lacking))}")
        for key, known in (("format", FORMAT), ("features", FEATURE_SET)):
            if parts[key] != known:
                raise InvalidScorer(f"{name}: {key} version {parts[key]!r}; this package reads version {known}")
        try:
            mean, scale, weights = (np.array(parts[key], np.float64) for key in STATISTICS)
            words = _steps(parts["words"])
            bias, word_scale, salt = float(parts["bias"]), float(parts["word_scale"]), index(parts["salt"])
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise InvalidScorer(f"{name}: weights that are not numbers ({error})") from None
        scripts = parts["scripts"]
        if not isinstance(scripts, list) or not all(script in SCRIPTS for script in scripts):
            raise InvalidScorer(f"{name}: scripts are {scripts!r:.80}; expected some of {', '.join(SCRIPTS)}")
        size = (len(FEATURES),)
        for what, found, expected in (
            ("mean", mean.shape, size),
            ("scale", scale.shape, size),
            ("weights", weights.shape, size),
            ("words", words.shape, (WORD_BUCKETS,)),
        ):
            if found != expected:
                raise InvalidScorer(f"{name}: {what} has shape {found}, expected {expected}")
        if not np.isfinite([bias, word_scale, *mean, *scale, *weights]).all():
            raise InvalidScorer(f"{name}: a weight is not a finite number")
        return cls(bias, mean, scale, weights, word_scale, words, salt, tuple(scripts))

    @classmethod
    def quantised(
        cls,
        bias: float,
        mean: ArrayLike,
        scale: ArrayLike,
        weights: ArrayLike,
        words: ArrayLike,
        salt: int = 0,
        scripts: tuple[str, ...] = SCRIPTS,
    ) -> Scorer:
        """A scorer of these weights, rounded to what a saved one holds."""
        mean, scale, weights = (
            np.array([round(_round(x), DECIMALS) for x in np.asarray(a, np.float64)]) for a in (mean, scale, weights)
        )
        words = np.asarray(words, np.float64)
        step = _round(float(np.abs(words).max(initial=0.0)) / STEPS) or 1.0
        steps = np.clip(np.rint(words / step), -STEPS, STEPS).astype(np.int8)
        return cls(_round(bias), mean, scale, weights, step, steps, salt, scripts)

    def _standardised(self, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standard deviations from the mean, clipped, in place."""
        statistics -= self.mean
        statistics *= self.scale
        return np.clip(statistics, -CLIP, CLIP, out=statistics)

    def _read(self, messages: Sequence[ChatMessage]) -> Features:
        read, features = as_messages(messages), self.features()
        features.extend(read, group_from(read, 0))
        return features


def bundled_scorers() -> list[str]:
    """Names of the scorers that come with the package."""
    files = resources.files("lre_core.scorers").iterdir()
    return sorted(file.name.removesuffix(".json") for file in files if file.name.endswith(".json"))


@cache
def _bundled(name: str) -> Scorer:
    names = bundled_scorers()
    if name not in names:
        raise UnknownScorer(f"no bundled scorer and no file {name!r}; bundled are {', '.join(map(repr, names))}")
    text = (resources.files("lre_core.scorers") / f"{name}.json").read_bytes()
    return Scorer.from_json(text, name)


def _steps(text: str) -> NDArray[np.int8]:
    """Weights in steps, from one character of base64 each."""
    steps = np.full(256, -128, np.int16)
    steps[ALPHABET] = np.arange(len(ALPHABET)) - (STEPS + 1)
    found = steps[np.frombuffer(text.encode("ascii"), np.uint8)]
    if (found < -STEPS).any():
        raise ValueError("word weights that are no base64")
    return found.astype(np.int8)


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _plain(value: Any) -> float | int:
    """0 rather than 0.0, so that an unused feature costs a byte or two."""
    return int(value) if value == int(value) else float(value)
