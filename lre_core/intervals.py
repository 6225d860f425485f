"""Means of held-out cases with bootstrap intervals over what the cases belong to (Efron 1979)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Interval", "Resampled"]

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % bootstrap interval over groups."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Resampled:
    """Cases of several measures, resampled by the groups they belong to: always the same draws.

    Args:
        groups: for each group its cases, (cases, measures).
    """

    def __init__(self, groups: Sequence[ArrayLike]) -> None:
        arrays = [np.asarray(group, np.float64) for group in groups]
        sums = np.array([group.sum(axis=0) for group in arrays])
        sizes = np.array([len(group) for group in arrays])
        draws = np.random.default_rng(0).integers(len(groups), size=(RESAMPLES, len(groups)))
        self._mean: NDArray[np.float64] = sums.sum(axis=0) / sizes.sum()
        self._drawn: NDArray[np.float64] = sums[draws].sum(axis=1) / sizes[draws].sum(axis=1)[:, None]

    def interval(self, measure: int, less: int | None = None) -> Interval:
        """The mean of a measure, or of how much it is ahead of another, paired by case."""
        mean, drawn = self._mean[measure], self._drawn[:, measure]
        if less is not None:
            mean, drawn = mean - self._mean[less], drawn - self._drawn[:, less]
        low, high = np.quantile(drawn, (0.025, 0.975))
        return Interval(float(mean), float(low), float(high))
