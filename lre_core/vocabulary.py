"""Where each token of a history has stood so far: what novelty and reuse are counted from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["POSITION_BITS", "Pairs", "Vocabulary"]

# The low bits of a hash make room for a token's position in its batch, so that one sort orders by both.
POSITION_BITS = np.uint64(24)
POSITION = np.uint64((1 << 24) - 1)


class Pairs(NamedTuple):
    """Distinct (token, unit) pairs of a batch, sorted by token; all arrays but `new` have one entry a pair.

    Attributes:
        token: the high bits of the token's hash.
        number: of the token, by which a vocabulary's user may keep more about it; new ones count on from the last.
        new: where in the batch each token that is new first stands, in the order of their numbers.
        unit: the unit.
        before: how many earlier units hold the token.
        first: the unit that introduced it.
        previous: the last earlier unit that holds it, -1 for none.
        called: whether a call of the unit takes it.
        calls: how many units after the one that introduced it, up to and with this one, have a call that takes it.
    """

    token: NDArray[np.uint64]
    number: NDArray[np.intp]
    new: NDArray[np.intp]
    unit: NDArray[np.intp]
    before: NDArray[np.intp]
    first: NDArray[np.int32]
    previous: NDArray[np.intp]
    called: NDArray[np.bool_]
    calls: NDArray[np.int32]


class Vocabulary:
    """Of every token so far: in how many units it stood, in which first, in which last, how many called with it.

    Attributes:
        size: how many tokens there are.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        # The first batch of tokens, while it is the only one: a history read at once looks none up again.
        self._unlisted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.size = 0
        # A column a token: how many units hold it, the first of them and the last, how many took it in a call.
        self._state = np.zeros((4, 256), np.int32)

    def observe(
        self, hashes: NDArray[np.uint64], unit: NDArray[np.intp], in_call: NDArray[np.bool_] | None = None
    ) -> Pairs:
        """Counts a batch of tokens in.

        Args:
            hashes: of the tokens, in reading order.
            unit: each token's unit; ascending, and above every unit observed before.
            in_call: whether each token stands in a call; not given where calls do not matter.
        """
        # One sort by (token, position): the position replaces the low bits of the hash.
        keys = np.sort((hashes & ~POSITION) | np.arange(len(hashes), dtype=np.uint64))
        at = (keys & POSITION).astype(np.intp)
        token = keys >> POSITION_BITS
        holder = unit[at]
        opens_token = np.ones(len(keys), np.bool_)
        opens_token[1:] = token[1:] != token[:-1]
        opens_pair = opens_token.copy()
        opens_pair[1:] |= holder[1:] != holder[:-1]
        start = np.flatnonzero(opens_pair)
        token, holder = token[start], holder[start]
        first_pair = np.flatnonzero(opens_token[start])
        stop = np.empty_like(first_pair)
        stop[:-1], stop[-1:] = first_pair[1:], len(token)
        run = stop - first_pair

        known = self.size
        number = self._number(token[first_pair])
        # The first batch is all new and numbered through.
        place = number if known else slice(len(number))
        seen, introduced, last, called_before = self._state[:, place]
        new = seen == 0
        introduced = np.where(new, holder[first_pair], introduced)
        # A token's pairs stand in a row, units ascending: the rank counts the batch's own earlier units.
        of_pair = np.repeat(np.arange(len(number)), run)
        before = (seen - first_pair)[of_pair] + np.arange(len(token))
        previous = np.empty(len(token), np.intp)
        previous[1:] = holder[:-1]
        previous[first_pair] = np.where(new, -1, last)

        called = np.zeros(0, np.bool_)
        calls = np.zeros(0, np.int32)
        if in_call is not None and len(start):
            called = np.logical_or.reduceat(in_call[at], start)
            # How many units up to and with each pair's take the token in a call, after the unit that introduced it.
            later = called & (before > 0)
            total = np.cumsum(later)
            calls = (called_before - (total - later)[first_pair])[of_pair] + total
            called_before = calls[stop - 1]
        self._state[:, place] = seen + run, introduced, holder[stop - 1], called_before
        return Pairs(
            token,
            number[of_pair] if known else of_pair,
            at[start[first_pair[number >= known]]],
            holder,
            before,
            introduced[of_pair],
            previous,
            called,
            calls,
        )

    def _number(self, distinct: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The number of each of these tokens, which differ; those unknown so far get the next ones in order."""
        if not self.size:
            number = np.arange(len(distinct))
            self._unlisted = distinct
        else:
            numbers = self._numbers
            numbers |= zip(self._unlisted.tolist(), range(len(self._unlisted)), strict=True)
            self._unlisted = self._unlisted[:0]
            number = np.array([numbers.setdefault(token, len(numbers)) for token in distinct.tolist()], np.intp)
        self.size = max(self.size, int(number.max(initial=-1)) + 1)
        self._grow(self.size)
        return number

    def _grow(self, size: int) -> None:
        room = 2 * size - self._state.shape[1]
        if room > size:
            self._state = np.concatenate([self._state, np.zeros((4, room), np.int32)], axis=1)
