"""What each way of choosing keeps and costs on logged histories, prompt by prompt."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile

import numpy as np
from numpy.typing import ArrayLike

from lre_core.eviction import Evictor, View
from lre_core.intervals import Resampled
from lre_core.messages import ChatMessage, as_messages
from lre_core.units import group_from

__all__ = ["CACHED_PRICE", "Moment", "Outcome", "Prompt", "Replay", "Simulation", "departures"]

CACHED_PRICE = 0.1
"""What providers bill for a token of a prompt's unchanged prefix, as a share of a fresh one's price."""
POLICIES = ("everything", "recency", "lre")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model was shown at one call.

    Attributes:
        size: messages of the history so far.
        kept: indexes of those in view, ascending.
        tokens: what they cost.
        shared: tokens of the longest prefix it has in common with the prompt before.
    """

    size: int
    kept: Sequence[int]
    tokens: int
    shared: int

    def cost(self, cached_price: float = CACHED_PRICE) -> float:
        """Tokens, those of the shared prefix at the price of cached ones."""
        return self.tokens - (1.0 - cached_price) * self.shared


@dataclass(frozen=True, slots=True)
class Moment:
    """How much of what was needed later stood in view at one moment, by policy, hindsight's best included.

    Attributes:
        prompt: which prompt it was.
        needed: the older units that the rest of the history turned out to need.
        share: of them, how many were in view; 0 to 1.
    """

    prompt: int
    needed: tuple[int, ...]
    share: dict[str, float]


class Replay:
    """One history gone through again, a prompt before every reply of the assistant.

    Args:
        messages: a whole history, oldest first.
        evictor: what chooses under the policy `lre`, in one session; its budget is `recency`'s too.

    Attributes:
        units: the history's units.
        costs: (units,) tokens of each.
        prompts: for each policy its prompts. `everything` is the whole history so far. `recency` is trimmed anew for
            every prompt: system messages, the newest human message, and the newest units that fit, opened by the
            human message they belong to. `lre` is a session's view.
        views: the views behind `prompts["lre"]`.
    """

    def __init__(self, messages: Sequence[ChatMessage], evictor: Evictor) -> None:
        self._messages, self._evictor = messages, evictor
        read = as_messages(messages)
        self.units = group_from(read, 0)
        tokens = [evictor.message_cost(message) for message in read]
        self.costs = [sum(tokens[unit.start : unit.stop]) for unit in self.units]
        self._behind = [0, *accumulate(tokens)]
        self._tokens = tokens
        self._stops = [unit.stop for unit in self.units]
        self._systems, self._humans = (
            [index for index, unit in enumerate(self.units) if unit.role == role] for role in ("system", "human")
        )
        sizes = [unit.start for unit in self.units if unit.role == "assistant" and unit.start > 0]
        if self.units and (
            self.units[-1].role != "assistant" or (self.units[-1].kind == "step" and self.units[-1].complete)
        ):
            sizes.append(len(messages))
        self.views = self._session(sizes)
        self.prompts: dict[str, list[Prompt]] = {
            "everything": self._prompts(sizes, [range(size) for size in sizes]),
            "recency": self._prompts(sizes, [self._newest(size) for size in sizes]),
            "lre": self._prompts(sizes, [view.kept for view in self.views]),
        }

    def moments(self, labelled: Sequence[tuple[Sequence[ChatMessage], ArrayLike]]) -> list[Moment]:
        """What was in view where something had to go and something was needed.

        Args:
            labelled: (prefix, labels) pairs of this history, as `lre_core.labels.from_log` gives them.
        """
        found = []
        for prefix, labels in labelled:
            prompt = next((i for i, p in enumerate(self.prompts["lre"]) if p.size >= len(prefix)), None)
            needed = [int(unit) for unit in np.flatnonzero(np.asarray(labels))]
            if prompt is None or not needed or self._behind[len(prefix)] <= self._evictor.budget:
                continue
            share = {"hindsight": self._hindsight(prompt, needed)}
            for policy, prompts in self.prompts.items():
                kept = set(prompts[prompt].kept)
                share[policy] = sum(self.units[unit].start in kept for unit in needed) / len(needed)
            found.append(Moment(prompt, tuple(needed), share))
        return found

    def _session(self, sizes: Sequence[int]) -> list[View]:
        session = self._evictor.session()
        views = []
        for start, stop in zip([0, *sizes], sizes, strict=False):
            session.append(self._messages[start:stop])
            views.append(session.view())
        return views

    def _prompts(self, sizes: Sequence[int], kept: Sequence[Sequence[int]]) -> list[Prompt]:
        prompts: list[Prompt] = []
        before: Sequence[int] = ()
        for size, now in zip(sizes, kept, strict=True):
            if isinstance(now, range):
                prompts.append(Prompt(size, now, self._behind[size], self._behind[len(before)]))
            else:
                same = takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
                shared = sum(self._tokens[index] for index, _ in same)
                prompts.append(Prompt(size, now, sum(self._tokens[index] for index in now), shared))
            before = now
        return prompts

    def _newest(self, size: int) -> list[int]:
        count, fixed, room = self._fixed(size)
        recent: list[int] = []
        for index in reversed(range(count)):
            if index in fixed:
                continue
            if self.costs[index] > room:
                break
            room -= self.costs[index]
            recent.append(index)
        # A provider wants a human message first: the one that what is kept belongs to, paid for like the rest.
        while recent and not self._opened(recent[-1], fixed):
            opener = self._human_before(recent[-1])
            if opener is not None and self.costs[opener] <= room:
                recent.append(opener)
            else:
                room += self.costs[recent.pop()]
        chosen = (self.units[unit] for unit in sorted({*recent, *fixed}))
        return [index for unit in chosen for index in range(unit.start, unit.stop)]

    def _opened(self, first: int, fixed: set[int]) -> bool:
        """Whether a view of the fixed units and some from `first` on begins with a human turn, or has none at all."""
        humans = [unit for unit in {first, *fixed} if self.units[unit].role == "human"]
        return not humans or min(humans) <= first

    def _hindsight(self, prompt: int, needed: Sequence[int]) -> float:
        """The largest share of the needed units that fits beside what every prompt holds.

        It fits the budget, or the largest prompt of any policy where what must stay is more than the budget.
        """
        shown = [prompts[prompt] for policy, prompts in self.prompts.items() if policy != "everything"]
        _, fixed, room = self._fixed(shown[0].size)
        room += max(0, *(view.tokens - self._evictor.budget for view in shown))
        costs = sorted(self.costs[unit] for unit in needed if unit not in fixed)
        fitting = sum(1 for spent in accumulate(costs) if spent <= room)
        return (len(needed) - len(costs) + fitting) / len(needed)

    def _fixed(self, size: int) -> tuple[int, set[int], int]:
        """How many units the first messages make; the system's and the last human one; the budget they leave."""
        count = bisect_right(self._stops, size)
        fixed = set(self._systems[: bisect_left(self._systems, count)])
        last = self._human_before(count)
        if last is not None:
            fixed.add(last)
        return count, fixed, self._evictor.budget - sum(self.costs[index] for index in fixed)

    def _human_before(self, unit: int) -> int | None:
        """The last human turn before a unit."""
        place = bisect_left(self._humans, unit)
        return self._humans[place - 1] if place else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy did over all histories.

    Attributes:
        tokens: of all prompts together.
        cost: the same, unchanged prefixes at the cached price.
        peak: of the largest prompt.
        over: prompts larger than the budget.
        evidence: mean share of what was needed later that stood in view, with the ends of its 95 % bootstrap interval
            over histories; None where nothing was labelled.
    """

    tokens: int
    cost: float
    peak: int
    over: int
    evidence: tuple[float, float, float] | None


@dataclass
class Simulation:
    """Sums up replays of many histories, one at a time.

    Attributes:
        budget: tokens a prompt may take.
        cached_price: of a token of an unchanged prefix, as a share of a fresh one's.
        histories: replayed so far.
        outgrown: those of them that at some prompt exceeded the budget.
        prompts: replayed so far.
        moments: labelled moments at which something had to go.
    """

    budget: int
    cached_price: float = CACHED_PRICE
    histories: int = 0
    outgrown: int = 0
    prompts: int = 0
    moments: int = 0
    _sums: dict[str, list[float]] = field(default_factory=lambda: {policy: [0, 0, 0, 0] for policy in POLICIES})
    _shares: dict[object, list[dict[str, float]]] = field(default_factory=dict)

    def add(self, replay: Replay, moments: Sequence[Moment], group: object) -> None:
        """Counts one replay and its labelled moments; histories of a group are drawn together for the interval."""
        self.histories += 1
        self.prompts += len(replay.prompts["lre"])
        self.outgrown += any(prompt.tokens > self.budget for prompt in replay.prompts["everything"])
        for policy, prompts in replay.prompts.items():
            sums = self._sums[policy]
            sums[0] += sum(prompt.tokens for prompt in prompts)
            sums[1] += sum(prompt.cost(self.cached_price) for prompt in prompts)
            sums[2] = max([sums[2], *(prompt.tokens for prompt in prompts)])
            sums[3] += sum(prompt.tokens > self.budget for prompt in prompts)
        self.moments += len(moments)
        if moments:
            self._shares.setdefault(group, []).extend(moment.share for moment in moments)

    def outcomes(self) -> dict[str, Outcome]:
        """For each policy what it did; `hindsight`, which no policy can beat, has evidence only."""
        outcomes = {
            policy: Outcome(int(sums[0]), sums[1], int(sums[2]), int(sums[3]), self._evidence(policy))
            for policy, sums in self._sums.items()
        }
        best = self._evidence("hindsight")
        return outcomes if best is None else outcomes | {"hindsight": Outcome(0, 0.0, 0, 0, best)}

    def _evidence(self, policy: str) -> tuple[float, float, float] | None:
        groups = [[share[policy] for share in shares] for shares in self._shares.values()]
        if not groups:
            return None
        evidence = Resampled([np.reshape(group, (-1, 1)) for group in groups]).interval(0)
        return evidence.mean, evidence.low, evidence.high


def departures(replay: Replay) -> Iterator[tuple[int, int, str, float]]:
    """Every unit that left the session's view: its index, the prompt that lacked it first, why, and its score then."""
    alive: list[int] = []
    read = 0
    for number, view in enumerate(replay.views):
        while read < len(replay.units) and replay.units[read].stop <= replay.prompts["lre"][number].size:
            alive.append(read)
            read += 1
        kept = set(view.kept)
        left = [index for index in alive if replay.units[index].start not in kept]
        if left:
            scores = view.scores
            for index in left:
                yield index, number, view.reason(index), float(scores[index])
            alive = [index for index in alive if replay.units[index].start in kept]
