"""What a view kept and why, as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from lre_core.cli.terminal import console, printable
from lre_core.eviction import Evictor, View
from lre_core.messages import Message, as_messages
from lre_core.units import Unit

__all__ = ["print_summary", "what_is"]

MOST_ROWS = 40
EDGE_ROWS = 15
"""Of a history with more units than MOST_ROWS, so many at either end are shown."""


def print_summary(view: View, messages: Sequence[dict[str, Any]], evictor: Evictor, scorer: str) -> None:
    """Prints a table of units and a line of totals to stderr; plain where that is no terminal.

    Args:
        view: what was kept.
        messages: the history it was chosen from.
        evictor: what chose it.
        scorer: the scorer asked for, which may be `auto`.
    """
    screen = console()
    read = as_messages(messages)
    costs = [sum(map(evictor.message_cost, read[unit.start : unit.stop])) for unit in view.units]
    rows = view.explain()
    kept = sum(row["kept"] for row in rows)
    screen.print(_table(view.units, rows, costs, read))
    screen.print(
        f"{len(rows):,} units: {kept:,} kept, {len(rows) - kept:,} evicted. "
        f"{sum(costs):,} tokens before, {view.tokens:,} after, budget {_budget(evictor)}. "
        f"Scorer: {_scorer_name(scorer, view.units)}.",
        soft_wrap=True,
    )
    if not evictor.whole_turn and not view.over_budget:
        screen.print("The current turn does not fit the budget whole, so its finished steps competed too.")


def _table(
    units: Sequence[Unit], rows: Sequence[dict[str, Any]], costs: Sequence[int], messages: Sequence[Message]
) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("unit", "messages", "what", "tokens", "score", "view", "why"):
        right = name in ("unit", "tokens", "score")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "what")
    size = len(units)
    hidden = range(EDGE_ROWS, size - EDGE_ROWS) if size > MOST_ROWS else range(size, size)
    for index, (unit, row) in enumerate(zip(units, rows, strict=True)):
        if index == hidden.start:
            kept = sum(rows[i]["kept"] for i in hidden)
            table.add_row(
                "...", "", f"{len(hidden):,} more", f"{sum(costs[i] for i in hidden):,}", "", f"{kept:,} kept"
            )
        if index in hidden:
            continue
        table.add_row(
            str(index),
            str(unit.start) if unit.stop - unit.start == 1 else f"{unit.start}-{unit.stop - 1}",
            what_is(unit, messages),
            f"{costs[index]:,}",
            "-" if row["score"] is None else f"{row['score']:.3f}",
            "kept" if row["kept"] else "evicted",
            row["reason"],
            style=None if row["kept"] else "dim",
        )
    return table


def what_is(unit: Unit, messages: Sequence[Message]) -> str:
    """The unit's kind, with the tools of a step; nothing in it can move the cursor or colour the terminal."""
    if unit.kind == "turn":
        return unit.role
    calls = (call.name for message in messages[unit.start : unit.stop] for call in message.calls)
    what = ": ".join(filter(None, (unit.kind, ", ".join(dict.fromkeys(calls)))))
    return printable(what)


def _budget(evictor: Evictor) -> str:
    if evictor.budget_scope == "view":
        return f"{evictor.budget:,}"
    return f"{evictor.budget:,} for what is older than the last {evictor.keep_recent:,} units"


def _scorer_name(scorer: str, units: Sequence[Unit]) -> str:
    if scorer != "auto":
        return scorer
    return "agent (auto)" if any(unit.kind == "step" for unit in units) else "assistant (auto)"
