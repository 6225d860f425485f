"""`lre explain`: for every unit of a history, its score, what drove it, and whether it is in view and why."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from lre_core.cli.options import (
    Budget,
    Encoding,
    File,
    Json,
    KeepRecent,
    Quiet,
    ScorerName,
    Which,
    choose,
    evictor_of,
    scorer_of,
    view_of,
)
from lre_core.cli.summary import what_is
from lre_core.cli.terminal import console, printable, write_json
from lre_core.messages import as_messages

__all__ = ["explain"]

EXCERPT = 36
WIDTH_OF_A_FILE = 160


def explain(
    file: File,
    budget: Budget,
    keep_recent: KeepRecent = 5,
    scorer: ScorerName = "auto",
    encoding: Encoding = "o200k_base",
    history: Which = None,
    top: Annotated[int, typer.Option(help="How many features to name of those that drove a score.")] = 2,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show for every message, or tool call with its results, its score, what drove it, and why it is in view or out.

    A feature's number is what it added to the log-odds of being needed, beside an average unit in training.

    Example: lre explain run.jsonl --budget 2048
    """
    evictor = evictor_of(budget, scorer, keep_recent, encoding)
    log = choose(file, history)
    view, evictor = view_of(evictor, log.messages)
    read = as_messages(log.messages)
    effects = scorer_of(evictor, has_calls=any(unit.kind == "step" for unit in view.units)).explain(log.messages)
    rows: list[dict[str, Any]] = []
    for row, unit, effect in zip(view.explain(), view.units, effects, strict=True):
        messages = read[unit.start : unit.stop]
        rows.append(
            row
            | {
                "what": what_is(unit, read),
                "tokens": sum(map(evictor.message_cost, messages)),
                "drivers": dict(list(effect.items())[: max(top, 0)]),
                "text": " ".join(message.text for message in messages),
            }
        )
    if not quiet:
        console(WIDTH_OF_A_FILE).print(_table(rows))
    if as_json:
        write_json(
            {"id": log.id, "budget": budget, "tokens": view.tokens, "over_budget": view.over_budget, "units": rows}
        )


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("unit", "what", "tokens", "score", "view", "why"):
        table.add_column(name, justify="right" if name in ("unit", "tokens", "score") else "left", no_wrap=True)
    table.add_column("driven by", ratio=1, min_width=24)
    table.add_column("text", no_wrap=True, max_width=EXCERPT)
    for row in rows:
        table.add_row(
            str(row["unit"]),
            row["what"],
            f"{row['tokens']:,}",
            "-" if row["score"] is None else f"{row['score']:.3f}",
            "kept" if row["kept"] else "evicted",
            row["reason"],
            ", ".join(f"{name} {added:+.1f}" for name, added in row["drivers"].items()),
            printable(row["text"])[:EXCERPT],
            style=None if row["kept"] else "dim",
        )
    return table
