"""Agents a scorer has never seen: trained on one family of runs, tested on each of the others.

    pip install --no-deps bfcl-eval==2026.3.23 mpmath
    python -m benchmarks.transfer --data FOLDER

FOLDER holds `tau-airline.jsonl.gz`; the other families are executed runs of the installed BFCL benchmark and generated
ones. Every run is cut at its moments of decision; ranked are the units older than the recent window, which are the
ones a scorer is asked about. Nothing is chosen by what is tested on. The last rows train on all families but the one
tested on, as the bundled `agent` scorer is trained on all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import bfcl, families
from benchmarks.scorers import lines
from lre_core import Scorer
from lre_core.comparison import Comparison, rank
from lre_core.labels import moments

KEEP_RECENT = 5

app = typer.Typer(add_completion=False)


class Cases(NamedTuple):
    """Runs of a family cut at their moments of decision: histories, labels, and the task of each."""

    histories: list[Any]
    labels: list[Any]
    tasks: list[str]


class Row(NamedTuple):
    """How a scorer ranks a family it was not trained on."""

    trained_on: str
    tested_on: str
    result: Comparison


def cut(runs: Iterable[dict[str, Any]]) -> Cases:
    """The moments of decision of runs with `task` and `messages`."""
    cases = Cases([], [], [])
    for run in runs:
        for prefix, labels in moments(run["messages"]):
            cases.histories.append(prefix)
            cases.labels.append(labels)
            cases.tasks.append(str(run["task"]))
    return cases


def all_families(data: Path) -> dict[str, Cases]:
    """Every family there is, by name."""
    found = {"tau-airline": cut(lines(data / "tau-airline.jsonl.gz"))}
    found["bfcl long-context"] = cut(bfcl.histories(bfcl.Variant.LONG_CONTEXT))
    return found | {family: cut(families.histories(family)) for family in families.FAMILIES}


def measure(families: dict[str, Cases], console: Console) -> list[Row]:
    """Trains on each family, and on all but one, and tests on what is left."""
    rows = []
    trained = [(name, [name]) for name in families]
    trained += [(f"all but {name}", [other for other in families if other != name]) for name in families]
    for title, names in track(trained, "Training", console=console, transient=True, disable=not console.is_terminal):
        histories, labels, tasks = (
            [one for name in names for one in getattr(families[name], field)] for field in Cases._fields
        )
        scorer = Scorer.fit(histories, labels, groups=tasks)
        for other in (name for name in families if name not in names):
            tests = families[other]
            result = rank(scorer.score, tests.histories, tests.labels, groups=tests.tasks, keep_recent=KEEP_RECENT)
            rows.append(Row(title, other, result))
    return rows


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder with tau-airline.jsonl.gz.", exists=True)],
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line instead of the table.")] = False,
) -> None:
    """Rank the steps of agents that the scorer has never seen."""
    rows = measure(all_families(data), Console(stderr=True))
    if as_json:
        for row in rows:
            auc = {name: round(interval.mean, 4) for name, interval in row.result.auc.items()}
            typer.echo(json.dumps({"trained_on": row.trained_on, "tested_on": row.tested_on} | auc))
        return
    names = list(rows[0].result.auc)
    table = Table("trained on", "tested on", *names, title="Macro-AUC at moments of decision, 95 % over tasks")
    for row in rows:
        table.add_row(row.trained_on, row.tested_on, *(str(row.result.auc[name]) for name in names))
    Console(width=None).print(table)


if __name__ == "__main__":
    app()
