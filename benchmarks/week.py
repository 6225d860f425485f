"""A week of an application's logs to try `lre train` on: one LangChain dump a day, fifteen agent runs in each.

    python -m benchmarks.week --out logs

The runs are those of `benchmarks/families.py`; a line is a thread, its messages as `messages_to_dict` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from langchain_core.messages import convert_to_messages, messages_to_dict

from benchmarks import families

DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
RUNS_A_DAY = 5
"""Of each family."""

app = typer.Typer(add_completion=False)


def write(out: Path) -> int:
    """Writes the logs, the same on every machine; how many threads they hold."""
    out.mkdir(parents=True, exist_ok=True)
    runs = [run for family in families.FAMILIES for run in families.histories(family, RUNS_A_DAY * len(DAYS))]
    for number, day in enumerate(DAYS):
        lines = [
            json.dumps({"thread_id": run["id"], "messages": messages_to_dict(convert_to_messages(run["messages"]))})
            for run in runs[number :: len(DAYS)]
        ]
        (out / f"{day}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(runs)


def main(out: Annotated[Path, typer.Option(help="The folder the logs go to.")] = Path("logs")) -> None:
    """Write the logs."""
    typer.echo(f"{write(out)} threads in {len(DAYS)} files in {out}", err=True)


app.command()(main)

if __name__ == "__main__":
    app()
