"""The page itself: figures and excerpts as JSON inside one HTML document that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any

from lre_core.cli.options import scorer_of
from lre_core.cli.summary import what_is
from lre_core.evaluation import CACHED_PRICE, Moment, Replay, departures
from lre_core.eviction import Evictor, View
from lre_core.logs import History
from lre_core.messages import as_messages
from lre_core.units import Unit

__all__ = ["render"]

EXCERPT = 600
"""Characters of a unit's text that the page shows."""
DRIVERS = 4
POLICIES = {"everything": "everything", "recency": "recency", "lre": "LRE"}
FIGURES = ("evidence in view", "largest prompt", "tokens of all prompts", "prompt cost*", "against everything")
LEGEND = {
    "system": "system",
    "human": "person",
    "assistant": "assistant",
    "step": "tool call",
    "gone": "out of view",
    "held": "needed later, in view",
    "missed": "needed later, out of view",
}


def render(history: History, replay: Replay, moments: Sequence[Moment], evictor: Evictor, scorer: str) -> str:
    """Draws a replayed history.

    Args:
        history: the history.
        replay: of it, by `evictor`.
        moments: labelled moments of it; none leave the row of evidence out.
        evictor: what chose.
        scorer: its scorer's name, as it was asked for.

    Returns:
        A whole HTML document that loads nothing; text from messages is shown as text, whatever it holds.
    """
    folder = resources.files("lre_core.cli.report")
    style = folder.joinpath("page.css").read_text("utf-8")
    script = folder.joinpath("page.js").read_text("utf-8")
    shown = {*map(_role, replay.units), "gone", *(("held", "missed") if moments else ())}
    drawn = json.dumps(_drawn(history, replay, moments, evictor), ensure_ascii=False, separators=(",", ":"))
    return Template(folder.joinpath("page.html").read_text("utf-8")).substitute(
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'",
        style=style,
        script=script,
        title=escape(history.id),
        messages=_counted(len(history.messages), "message"),
        units=_counted(len(replay.units), "unit"),
        calls=_counted(len(replay.prompts["lre"]), "call"),
        budget=f"{evictor.budget:,}",
        scorer=escape(scorer),
        cached=f"{CACHED_PRICE:g}",
        policies="".join(f"<th scope=col>{name}</th>" for name in POLICIES.values()),
        figures=_figures(replay, moments),
        legend="".join(f"<li><i class={name}></i>{LEGEND[name]}</li>" for name in LEGEND if name in shown),
        # Inside a script element only "</" and "<!--" mean something to HTML; JSON reads the escape as the same text.
        drawn=drawn.replace("<", "\\u003c"),
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what if count == 1 else what + 's'}"


def _digest(text: str) -> str:
    """How a content security policy names the one style or script it lets through."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _figures(replay: Replay, moments: Sequence[Moment]) -> str:
    """The table's rows, a figure each: the evidence kept, if any, the largest prompt, the sum and the price of all."""
    columns = []
    whole = sum(prompt.cost() for prompt in replay.prompts["everything"])
    for policy in POLICIES:
        prompts = replay.prompts[policy]
        cost = sum(prompt.cost() for prompt in prompts)
        columns.append(
            [
                f"{sum(moment.share[policy] for moment in moments) / max(len(moments), 1):.0%}",
                f"{max((prompt.tokens for prompt in prompts), default=0):,}",
                f"{sum(prompt.tokens for prompt in prompts):,}",
                f"{cost:,.0f}",
                f"{cost / whole:.0%}" if whole else "–",
            ]
        )
    rows = list(zip(FIGURES, zip(*columns, strict=True), strict=True))
    return "".join(
        f"<tr><th scope=row>{name}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for name, cells in rows[0 if moments else 1 :]
    )


def _drawn(history: History, replay: Replay, moments: Sequence[Moment], evictor: Evictor) -> dict[str, Any]:
    read = as_messages(history.messages)
    scorer = scorer_of(evictor, has_calls=any(unit.kind == "step" for unit in replay.units))
    effects = scorer.explain(history.messages)
    left = {unit: (prompt, reason, score) for unit, prompt, reason, score in departures(replay)}
    last = replay.views[-1] if replay.views else evictor.view(history.messages)
    evictions = sorted({prompt for prompt, _, _ in left.values()}, reverse=True)
    sizes = [prompt.size for prompt in replay.prompts["lre"]]
    scores = last.scores.tolist()
    units = []
    seen = _seen(replay)
    for index, unit in enumerate(replay.units):
        gone = left.get(index)
        score = gone[2] if gone else scores[index] if index < len(scores) else float("nan")
        messages = read[unit.start : unit.stop]
        text = " ".join(" ".join([message.text, *(call.values for call in message.calls)]) for message in messages)
        units.append(
            {
                "what": what_is(unit, read),
                "role": _role(unit),
                "start": unit.start,
                "stop": unit.stop,
                "tokens": replay.costs[index],
                "score": None if score != score else round(score, 3),
                "why": gone[1]
                if gone
                else _why(index, last, replay, evictions)
                if index < len(scores)
                else "not sent yet",
                "left": gone[0] if gone else None,
                "seen": seen[index],
                "needed": [moment.prompt for moment in moments if index in moment.needed],
                # The first call that could have held the unit.
                "born": bisect_left(sizes, unit.stop),
                "drivers": [[name, round(added, 2)] for name, added in list(effects[index].items())[:DRIVERS]],
                "text": " ".join(text.split())[:EXCERPT],
            }
        )
    return {
        "budget": evictor.budget,
        "prompts": {policy: [prompt.tokens for prompt in replay.prompts[policy]] for policy in POLICIES},
        "units": units,
    }


def _role(unit: Unit) -> str:
    return "step" if unit.kind == "step" else unit.role


def _why(unit: int, last: View, replay: Replay, evictions: Sequence[int]) -> str:
    """Why a unit is still in view; if it merely fits, what kept it at the newest eviction that had a reason."""
    reason = last.reason(unit)
    if reason not in ("fits", "recent"):
        return reason
    stop = replay.units[unit].stop
    then = (replay.views[call].reason(unit) for call in evictions if replay.prompts["lre"][call].size >= stop)
    return next((kept for kept in then if kept not in ("fits", "recent")), reason)


def _seen(replay: Replay) -> list[list[list[int]]]:
    """For each unit the half-open ranges of calls at which it was in view."""
    calls: list[list[int]] = [[] for _ in replay.units]
    unit_at = {unit.start: index for index, unit in enumerate(replay.units)}
    for number, prompt in enumerate(replay.prompts["lre"]):
        for message in prompt.kept:
            if message in unit_at:
                calls[unit_at[message]].append(number)
    return [_ranges(numbers) for numbers in calls]


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1][1] = number + 1
        else:
            ranges.append([number, number + 1])
    return ranges
