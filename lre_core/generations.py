"""Who stays: what is fixed, and how the rest shares the budget, in generations.

Providers bill the unchanged prefix of a prompt at about a tenth, so a session evicts rarely and mostly at the back, as
generational garbage collectors do (Ungar 1984). When the budget is hit only the young compete, the units since the
last eviction; those chosen join the tenured, which stay as they are. Only when the tenured outgrow their share is the
whole view chosen from again. What has left stays out.

What leaves to make room for a passing moment does not come back when it has passed. So a recent window of long units
pushes tenured ones out only until it takes its share, the newest unit always; of the rest as much stays as fits.

The shares are of the room that the pinned leave. `python -m benchmarks.generations` measures what they trade.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lre_core.reading import Reading
from lre_core.selection import select

if TYPE_CHECKING:
    from lre_core.eviction import Evictor

__all__ = ["Decision", "decide"]

TENURED_SHARE = 0.8
"""The most the tenured may hold before the whole view is chosen from again: more evidence, and more evictions."""
FRESH_SHARE = 0.7
"""The most the whole view is then chosen down to: more evidence, but the next time comes sooner."""
FRESH_DENSITY = 0.4
"""What a unit must then be worth a token, beside the mean of all that compete: below it, free room is worth more."""
YOUNG_SHARE = 0.05
"""The most the young may take at an eviction, one of them at least: more, and the tenured share wears out sooner."""
WINDOW_SHARE = 0.65
"""How much the recent window may take before it gives way to the tenured: more, and a long result costs what is old."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is in view.

    Attributes:
        kept: units in view, ascending.
        evicted: units that leave the view now.
        reasons: for each unit considered, why it is in or out.
        tokens: what the kept units cost.
        spent: what of that counts against the budget: all of it, but for the scope `history`.
        settled: units before this one are decided; what of them is out stays out.
        cause: what made units leave: `young`, `whole`, or nothing.
    """

    kept: list[int]
    evicted: list[int]
    reasons: dict[int, str]
    tokens: int
    spent: int
    settled: int
    cause: str = ""


def decide(history: Reading, alive: Sequence[int], evictor: Evictor, budget: int, tenured: int | None) -> Decision:
    """Chooses the view from the units still alive.

    Args:
        history: the history so far.
        alive: units that have not left, ascending.
        evictor: its settings.
        budget: tokens the view may take.
        tenured: units before this one are tenured; None chooses the best set for this moment, all room used.
    """
    units, costs = history.units, history.costs
    reasons: dict[int, str] = {}
    candidates = _valid(history, alive, reasons)
    pinned, recent = _fixed(history, candidates, evictor, budget, tenured or 0, reasons)
    fixed = pinned | recent
    old = [unit for unit in candidates if unit not in fixed]

    room = budget - sum(costs[unit] for unit in pinned if _counts(history, unit, evictor))
    free = room - sum(costs[unit] for unit in recent if _counts(history, unit, evictor))
    cause = ""
    if sum(costs[unit] for unit in old) <= free:
        chosen = set(old)
        reasons |= dict.fromkeys(old, "fits")
    else:
        chosen, cause = _choose(history, old, fixed, evictor, tenured, room, free, reasons)
    kept = sorted(fixed | chosen)
    evicted = [unit for unit in alive if unit not in chosen and unit not in fixed]
    settled = max(tenured or 0, min(max(old, default=-1) + 1, history.settled)) if cause else tenured or 0
    return Decision(
        kept,
        evicted if cause or tenured is None else [],
        reasons,
        sum(costs[unit] for unit in kept),
        budget - free + sum(costs[unit] for unit in chosen),
        settled if tenured is not None else len(units),
        cause,
    )


def _valid(history: Reading, alive: Sequence[int], reasons: dict[int, str]) -> list[int]:
    """Units a provider would accept.

    Results with their call, calls with their results or waiting for them at the end, and nothing but the system's
    before the first human message, if there is one. Steps of excluded tools are not among them.
    """
    units = history.units
    valid = history.sendable(alive)
    opening = next((unit for unit in valid if units[unit].role == "human"), 0)
    valid = [unit for unit in valid if unit >= opening or units[unit].role == "system"]
    if all(units[unit].role == "system" for unit in valid):
        # Nothing but broken pieces: an invalid prompt says more to the caller than an empty one.
        valid = sorted({*valid, *[unit for unit in alive if units[unit].role != "system"][-1:]})
    for unit in set(alive).difference(valid):
        reasons[unit] = "excluded" if history.excluded[unit] and units[unit].complete else "invalid"
    return valid


def _fixed(
    history: Reading, candidates: Sequence[int], evictor: Evictor, budget: int, tenured: int, reasons: dict[int, str]
) -> tuple[set[int], set[int]]:
    """What stays whatever its score: the pinned, and of the recent window as much as fits, newest first.

    Each with the human turn that must open the view for it, which is paid for and counts as pinned. Beyond its share
    the window fits beside the tenured; the newest unit pushes them out if it must.
    """
    first_waiting = history.waiting
    waiting = [unit for unit in candidates if unit >= first_waiting]
    fixed = {unit for unit in candidates if history.pinned[unit]}.union(_turn(history, candidates, evictor), waiting)
    reasons |= dict.fromkeys(fixed, "pinned")
    opener = _opener(history, candidates, fixed)
    if opener is not None:
        fixed.add(opener)
        reasons[opener] = "opens"

    room = budget - sum(history.costs[unit] for unit in fixed)
    whole = room
    held = sum(history.costs[unit] for unit in candidates if unit < tenured and unit not in fixed)
    window = len(history.units) - evictor.keep_recent
    recent: list[int] = []
    for unit in reversed([unit for unit in candidates if unit >= window and unit not in fixed]):
        room -= history.costs[unit]
        crowded = recent and whole - room > WINDOW_SHARE * whole
        if room < (held if crowded else 0) and evictor.budget_scope == "view":
            room += history.costs[unit]
            break
        recent.append(unit)
    while recent:
        opener = _opener(history, candidates, fixed.union(recent))
        if opener is None:
            break
        if history.costs[opener] <= room or evictor.budget_scope == "history":
            fixed.add(opener)
            reasons[opener] = "opens"
            break
        room += history.costs[recent.pop()]
    reasons |= dict.fromkeys(recent, "recent")
    return fixed, set(recent)


def _turn(history: Reading, candidates: Sequence[int], evictor: Evictor) -> list[int]:
    """What stays of the current turn: all of it, or its question and what its next step cannot do without.

    That is the newest unit, since a model that is not shown a result asks for it again; and a first step that thinks,
    since Anthropic refuses a run of calls without the thinking it began with (langchain#34794).
    """
    units, human = history.units, history.last_human
    said = [unit for unit in candidates if units[unit].role != "system"]
    if human is None:
        return said[-1:]
    if evictor.whole_turn:
        return [unit for unit in said if unit >= human]
    first = next((unit for unit in range(human + 1, len(units)) if units[unit].role != "system"), human)
    newest = next(unit for unit in reversed(range(human, len(units))) if units[unit].role != "system")
    thinking = first if history.thinks(first) else human
    return [unit for unit in said if unit in (human, thinking, newest)]


def _opener(history: Reading, candidates: Sequence[int], fixed: set[int]) -> int | None:
    """The human turn that owns the first of the fixed units; None if that is human itself, or nothing human is left."""
    units = history.units
    first = min((unit for unit in fixed if units[unit].role != "system"), default=None)
    if first is None or units[first].role == "human":
        return None
    return max((unit for unit in candidates if unit < first and units[unit].role == "human"), default=None)


def _counts(history: Reading, unit: int, evictor: Evictor) -> bool:
    """Whether a fixed unit is paid for from the budget."""
    if evictor.budget_scope == "view":
        return True
    return unit < len(history.units) - evictor.keep_recent and history.units[unit].role != "system"


def _choose(
    history: Reading,
    old: Sequence[int],
    fixed: set[int],
    evictor: Evictor,
    tenured: int | None,
    room: int,
    free: int,
    reasons: dict[int, str],
) -> tuple[set[int], str]:
    """Chooses among the old units, and says which of them competed.

    Of the budget, the pinned leave `room`; of that, the recent window leaves `free`.
    """
    if tenured is None:
        return _select(history, old, set(), fixed, evictor, free, 0.0, reasons), "whole"
    elders = {unit for unit in old if unit < tenured}
    young = [unit for unit in old if unit >= tenured]
    held = sum(history.costs[unit] for unit in elders)
    admitted = max(int(YOUNG_SHARE * room), min((history.costs[unit] for unit in young), default=0))
    if 0 < held <= min(TENURED_SHARE * room, free) - admitted:
        return elders | _select(history, young, elders, fixed, evictor, admitted, 0.0, reasons), "young"
    fresh = min(int(FRESH_SHARE * room), free)
    return _select(history, old, set(), fixed, evictor, fresh, FRESH_DENSITY, reasons), "whole"


def _select(
    history: Reading,
    competing: Sequence[int],
    elders: set[int],
    fixed: set[int],
    evictor: Evictor,
    room: int,
    density: float,
    reasons: dict[int, str],
) -> set[int]:
    """The competing units with the largest sum of scores that fit the room and leave the view well opened.

    No more room is used than those take whose score a token is at least this part of the mean of all.
    """
    reasons |= dict.fromkeys(elders, "tenured")
    if not competing:
        return set()
    units = history.units
    scores = history.scores(evictor.scorer_for(history), competing)
    opening = min((unit for unit in fixed | elders if units[unit].role != "system"), default=len(units))
    costs = np.array([history.costs[unit] for unit in competing])
    has_human = any(units[unit].role == "human" for unit in (*competing, *fixed, *elders))
    heads = [units[unit].role == "human" or unit > opening or not has_human for unit in competing]
    # A step that a late result may still change has no score yet; being the newest, it is worth keeping.
    scores = np.nan_to_num(scores, nan=1.0)
    dense = int(costs[scores * costs.sum() >= density * scores.sum() * costs].sum())
    selection = select(scores, costs, min(room, dense), heads=np.array(heads))
    chosen = {competing[index] for index in selection.chosen}
    for unit, cost in zip(competing, costs, strict=True):
        reasons[unit] = "scored in" if unit in chosen else "too large" if cost > room else "scored out"
    return chosen
