"""The 0/1 knapsack: which units to keep, for the largest sum of scores that fits the token budget.

Three stages, each of them the standard one:

- the split solution and its bound: Dantzig (1957), Discrete-variable extremum problems;
- units whose exchange the bound rules out are fixed: Martello and Toth (1990), Knapsack Problems, chapter 2;
- the few that remain, the core, are searched outwards from the split: Pisinger (1997), A minimal algorithm for the
  0-1 knapsack problem.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lre_core.errors import InvalidSetting

__all__ = ["Selection", "select"]

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Indexes: TypeAlias = NDArray[np.intp]
Ints: TypeAlias = NDArray[np.int64]

TOLERANCE = 1e-12
"""Two choices count as equally good when their values differ by less than this part of the bound. Float sums of the
same numbers in another order agree far more closely, so rounding never discards a choice that is better by more."""
WORK_LIMIT = 60_000
"""Work a search may do before it stops and states a gap, in states it keeps: some 25 ms."""
STEP_WORK, UNIT_WORK = 128, 0.125
"""What a step of the search takes, and reading a unit once more for another head, in the same coin."""
LARGEST_TOTAL = 2**53
"""Costs are added as floats in the search; up to here their sums are exact."""

# Column s says which of six units the subset s holds.
SUBSETS = (np.arange(2**6) >> np.arange(6)[:, None] & 1).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A choice of units.

    Attributes:
        chosen: their indexes, ascending, shape (k,).
        value: the sum of their values, added in that order.
        cost: the sum of their costs.
        bound: no feasible choice is worth more.
    """

    chosen: Indexes
    value: float
    cost: int
    bound: float

    @property
    def gap(self) -> float:
        """What a better choice could add at most: 0.0 when this one is optimal, to within `TOLERANCE`."""
        return self.bound - self.value


def select(values: ArrayLike, costs: ArrayLike, capacity: int, heads: ArrayLike | None = None) -> Selection:
    """Choose the units with the largest sum of values whose costs fit the capacity.

    The same input gives the same choice. Of two units alike in value and cost the newer (higher index) goes first; with
    `heads`, the unit that opens the choice is apart from this. A unit worth nothing is left out, and one worth
    something is never left out while it still fits (and is newer than the opening one).

    Args:
        values: what each unit is worth, shape (n,), finite, 0 or more.
        costs: what each unit costs in tokens, shape (n,), whole numbers, 0 or more.
        capacity: what the chosen units may cost together, in tokens. Below 0 it counts as 0: units that cost nothing
            are still chosen.
        heads: if given, shape (n,): units are in order of time, and the first chosen one must be a unit that is true
            here (providers want the first message to be human). It may be worth nothing.

    Returns:
        The optimal choice, or, where that would take too long, the best one found with a proven bound.

    Raises:
        InvalidSetting: shapes differ, a kind is wrong, or a number is out of its range. It is a ValueError.
        TypeError: the capacity is not a whole number.
    """
    worth, tokens = _checked_units(values, costs)
    room = max(operator.index(capacity), 0)
    # Costs that share a divisor, such as equal ones, cannot use the remainder of the capacity. Units too large for the
    # capacity may not share it: rounded up, they stay too large.
    divisor = int(np.gcd.reduce(tokens[tokens <= room])) or 1
    scaled, room = -(-tokens // divisor), room // divisor
    order = _by_density(worth, scaled, room)
    step = _common_step(worth[order])
    packing = _pack(worth, scaled, order, room, step, goal=0.0, limit=WORK_LIMIT)
    if heads is not None:
        may_open = _checked_heads(heads, worth.size)
        if packing.chosen.size and not may_open[packing.chosen.min()]:
            packing = _pack_behind_head(worth, scaled, order, room, step, may_open)
    chosen = np.sort(packing.chosen)
    value = float(worth[chosen].sum())
    return Selection(chosen, value, int(tokens[chosen].sum()), max(value, packing.unsearched))


class _Packing(NamedTuple):
    """A choice, its value, the work it took, and a bound on every choice that was not searched (-inf: none is left)."""

    chosen: Indexes
    value: float
    work: float = 0.0
    unsearched: float = -math.inf


def _checked_units(values: ArrayLike, costs: ArrayLike) -> tuple[Floats, Ints]:
    worth, tokens = np.asarray(values, dtype=np.float64), np.asarray(costs)
    if worth.ndim != 1 or worth.shape != tokens.shape:
        raise InvalidSetting(f"values have shape {worth.shape}, costs {tokens.shape}; both must be (n,)")
    if tokens.size and tokens.dtype.kind not in "iu":
        raise InvalidSetting(f"costs are {tokens.dtype}; they must be whole numbers of tokens")
    valued = (worth >= 0) & (worth < np.inf)
    if not valued.all():
        at = int(valued.argmin())
        raise InvalidSetting(f"values[{at}] is {worth[at]}; a value must be finite, 0 or more")
    if tokens.size and tokens.min() < 0:
        at = int(tokens.argmin())
        raise InvalidSetting(f"costs[{at}] is {tokens[at]}; a cost must be 0 or more")
    if (total := float(tokens.sum(dtype=np.float64))) > LARGEST_TOTAL:
        raise InvalidSetting(f"costs add up to {total:.3g}; at most 2**53 tokens can be added exactly")
    with np.errstate(over="ignore"):
        if not np.isfinite(worth.sum()):
            raise InvalidSetting(f"values up to {worth.max()} add up to more than a float can hold; scale them down")
    return worth, tokens.astype(np.int64)


def _checked_heads(heads: ArrayLike, n: int) -> Flags:
    flags = np.asarray(heads)
    if flags.shape != (n,):
        raise InvalidSetting(f"heads have shape {flags.shape}; there are {n} units")
    if n and flags.dtype.kind != "b":
        raise InvalidSetting(f"heads are {flags.dtype}; they must be true or false")
    return flags.astype(np.bool_)


def _by_density(values: Floats, costs: Ints, room: int) -> Indexes:
    """The units worth something that fit on their own: by value per token, the best first, then the newest first."""
    newest_first = np.flatnonzero((values > 0) & (costs <= room))[::-1]
    with np.errstate(divide="ignore", over="ignore"):
        density = values[newest_first] / costs[newest_first]
    return newest_first[np.argsort(-density, kind="stable")]


def _common_step(values: Floats) -> float:
    """The least difference between two different totals where it shows: equal values, small whole numbers; else 0.0.

    It closes the gap that the bound, a fraction of a unit too high, leaves on such values. It is their greatest common
    divisor, by Euclid's algorithm with remainders taken to the nearest multiple, less a margin for rounding.
    """
    if not values.size:
        return 0.0
    largest, step = float(values.max()), float(values.min())
    while step > largest / 1000:
        remainders = np.abs(values - step * np.rint(values / step))
        remainders = remainders[remainders > TOLERANCE * largest]
        if not remainders.size:
            return 0.999 * step
        step = float(remainders.min())
    return 0.0


def _pack(values: Floats, costs: Ints, order: Indexes, room: int, step: float, goal: float, limit: float) -> _Packing:
    """The best choice among the units in `order`, which is by density; only one worth more than `goal` matters."""
    v, c = values[order], costs[order]
    filled = np.cumsum(c)
    split = int(filled.searchsorted(room, side="right"))
    base = float(v[:split].sum())
    if split == order.size:
        return _Packing(order, base)
    left = room - (int(filled[split - 1]) if split else 0)
    upper = base + left * float(v[split] / c[split])
    margin = max(step, TOLERANCE * upper)
    if upper <= goal + margin:
        return _Packing(order[:0], 0.0)

    taken = _greedy(v, c, split, left)
    value = float(v[taken].sum())
    best = max(value, goal)
    core = np.flatnonzero((_loss(v, c, split) < upper - best - margin) & (c > 0))
    if not core.size:
        return _Packing(order[taken], value)
    inner = int(core.searchsorted(split))
    exchanged, work, unsearched = _search(v[core], c[core], inner, left, best - base, margin, limit)
    if exchanged.size:
        taken = np.arange(order.size) < split
        taken[core[exchanged]] ^= True
        _prefer_newer(taken, v, c, core)
        _fill(taken, c, room - int(c[taken].sum()))
        value = float(v[taken].sum())
    return _Packing(order[taken], value, work, base + unsearched + TOLERANCE * upper)


def _loss(v: Floats, c: Ints, split: int) -> Floats:
    """What Dantzig's bound falls by when a unit before the split is taken out, or one behind it is put in.

    Dembo and Hammer (1980), A reduction algorithm for knapsack problems.
    """
    loss: Floats = np.abs(v - v[split] / c[split] * c)
    return loss


def _greedy(v: Floats, c: Ints, split: int, left: int) -> Flags:
    """The better of two: fill up behind the split; or put the split unit in, take out one that makes room, fill up."""
    filled = np.arange(v.size) < split
    swapped = filled.copy()
    _fill(filled, c, left)
    leavers = np.flatnonzero(c[:split] >= c[split] - left)[::-1]
    if leavers.size:
        out = leavers[v[leavers].argmin()]
        swapped[out], swapped[split] = False, True
        _fill(swapped, c, left + int(c[out] - c[split]))
        # By more than rounding: a unit must not give way to an older one that is alike.
        if v[swapped].sum() > v[filled].sum() * (1 + TOLERANCE):
            return swapped
    return filled


def _fill(taken: Flags, c: Ints, left: int) -> None:
    """Take in turn each unit that still fits, in place."""
    rest = np.flatnonzero(~taken & (c <= left))
    while rest.size:
        filled = np.cumsum(c[rest])
        run = int(filled.searchsorted(left, side="right"))
        taken[rest[:run]] = True
        left -= int(filled[run - 1])
        rest = rest[run:]
        rest = rest[c[rest] <= left]


def _prefer_newer(taken: Flags, v: Floats, c: Ints, core: Indexes) -> None:
    """Among units of the core alike in value and cost, move the choice to the newest, which stand first; in place."""
    alike = core[np.lexsort((c[core], v[core]))]
    taken_first = core[np.lexsort((~taken[core], c[core], v[core]))]
    taken[alike] = taken[taken_first]


class _Step(NamedTuple):
    """Units that a step of the search let in or out, the states before it, and where each state it kept came from."""

    units: Indexes
    before: int
    origin: Indexes


def _search(
    v: Floats, c: Ints, split: int, left: int, best: float, margin: float, limit: float
) -> tuple[Indexes, float, float]:
    """Look for exchanges across the split that gain more than `best`, by dynamic programming over lists of states.

    A state is a set of exchanges: its cost beyond the capacity, and its gain in value. Each step lets a few units in or
    out, those nearest the split first, and drops the states that another one beats in both, and those whose bound
    (what is left filled, or the excess taken out, at the next unit's density) does not beat the best one.

    Returns:
        The units to exchange, none if nothing better was found; the work; a bound on the gain of what was not searched.
    """
    density = v / c
    loss, slack = _loss(v, c, split), left * float(density[split]) - margin
    moves = np.array((c, v))
    moves[:, :split] *= -1
    entering, leaving = np.arange(split, v.size), np.arange(split)[::-1]
    states = np.array([[-float(left)], [0.0]])
    trail: list[_Step] = []
    found, found_at = 0, -1
    work = 0.0
    while entering.size or leaving.size:
        before = states.shape[1]
        # Few states: several units at once, since a numpy call costs the same for one state as for hundreds.
        pairs = 3 if before <= 8 else 2 if before <= 64 else 1
        units = np.concatenate((entering[:pairs], leaving[:pairs]))
        entering, leaving = entering[pairs:], leaving[pairs:]
        subsets = moves[:, units] @ SUBSETS[: units.size, : 2**units.size]
        states = (subsets[:, :, None] + states[:, None, :]).reshape(2, -1)
        origin = states[0].argsort(kind="stable")
        excess, gain = states = states[:, origin]

        peak = np.maximum.accumulate(gain)
        fits = int(excess.searchsorted(0.0, side="right"))
        if fits and peak[fits - 1] > best:
            best = float(peak[fits - 1])
            found, found_at = int(origin[gain[:fits].argmax()]), len(trail)
            entering = entering[loss[entering] < slack - best]
            leaving = leaving[loss[leaving] < slack - best]
        bound = gain.copy()
        bound[:fits] -= excess[:fits] * (density[entering[0]] if entering.size else 0.0)
        bound[fits:] -= excess[fits:] * (density[leaving[0]] if leaving.size else np.inf)
        keep = bound > best + margin
        keep[1:] &= gain[1:] > peak[:-1]
        keep[:-1] &= (excess[:-1] < excess[1:]) | ~keep[1:]
        trail.append(_Step(units, before, origin[keep]))
        states = states[:, keep]
        work += STEP_WORK + states.shape[1]
        if not states.size:
            break
        if work > limit:
            return _retrace(trail[: found_at + 1], found), work, float(bound[keep].max())
    return _retrace(trail[: found_at + 1], found), work, -math.inf


def _retrace(trail: list[_Step], state: int) -> Indexes:
    """The exchanges that led to a state, which is numbered as it was made in the last step of the trail."""
    exchanged = [np.zeros(0, dtype=np.intp)]
    for step in reversed(trail):
        if step is not trail[-1]:
            state = int(step.origin[state])
        subset, state = divmod(state, step.before)
        exchanged.append(step.units[SUBSETS[: step.units.size, subset] > 0])
    return np.concatenate(exchanged)


def _pack_behind_head(values: Floats, costs: Ints, order: Indexes, room: int, step: float, heads: Flags) -> _Packing:
    """The best choice whose oldest unit is a head: that head is in it, everything older is out.

    Heads are tried in the order of their bound, of equals the newest first, until none can beat the best choice. The
    bound is by weak duality, with a token priced at the split's density: the capacity at that price, and what each
    unit allowed is worth beyond its own.
    """
    split = int(np.cumsum(costs[order]).searchsorted(room, side="right"))
    price = float(values[order[split]] / costs[order[split]]) if split < order.size else 0.0
    gains = np.zeros((2, values.size))
    gains[0, order] = values[order]
    gains[1, order] = np.maximum(values[order] - price * costs[order], 0.0)
    total, surplus = gains[:, ::-1].cumsum(axis=1)[:, ::-1] - gains
    openers = np.flatnonzero(heads & (costs <= room))[::-1]
    bounds = (values + np.minimum(total, price * (room - costs) + surplus))[openers]
    ranked = np.argsort(-bounds, kind="stable")

    chosen, value, work, unsearched = order[:0], 0.0, 0.0, -math.inf
    for head, bound in zip(openers[ranked].tolist(), bounds[ranked].tolist(), strict=True):
        if bound <= value + max(step, TOLERANCE * bound):
            break
        if work > WORK_LIMIT:
            unsearched = max(unsearched, bound * (1 + TOLERANCE))
            break
        worth, behind = float(values[head]), room - int(costs[head])
        allowed = order[(order > head) & (costs[order] <= behind)]
        rest = _pack(values, costs, allowed, behind, step, value - worth, WORK_LIMIT - work)
        work += rest.work + UNIT_WORK * order.size
        unsearched = max(unsearched, worth + rest.unsearched)
        if worth + rest.value > value:
            chosen, value = np.append(rest.chosen, head), worth + rest.value
    return _Packing(chosen, value, work, unsearched)
