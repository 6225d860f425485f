"""A week of an application's logs to try `lre train` on: a LangChain dump a day, six runs of the demo's agent each.

    python -m benchmarks.week --out logs

The bundled scorers were not trained on this agent, as they were not on yours. A line is a thread, its messages as
`messages_to_dict` writes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from langchain_core.messages import messages_to_dict

from benchmarks.demo.policies import EVERYTHING
from benchmarks.demo.run import play

DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
RUNS_A_DAY = 6
FIRST_SEED = 1000
"""Far from the seeds of the demo and of its tests."""
BUDGET = 8000
"""Without meaning where everything stays in view."""

app = typer.Typer(add_completion=False)


def write(out: Path) -> int:
    """Writes the logs, the same on every machine; how many threads they hold."""
    out.mkdir(parents=True, exist_ok=True)
    for number, day in enumerate(DAYS):
        seeds = range(FIRST_SEED + number * RUNS_A_DAY, FIRST_SEED + (number + 1) * RUNS_A_DAY)
        lines = [json.dumps({"thread_id": f"household-{seed}", "messages": messages(seed)}) for seed in seeds]
        (out / f"{day}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return RUNS_A_DAY * len(DAYS)


def messages(seed: int) -> list[dict[str, Any]]:
    """A run's messages, without the random ids that LangChain gave them."""
    history = play(EVERYTHING, BUDGET, seed).history
    return messages_to_dict([message.model_copy(update={"id": None}) for message in history])


def main(out: Annotated[Path, typer.Option(help="The folder the logs go to.")] = Path("logs")) -> None:
    """Write the logs."""
    typer.echo(f"{write(out)} threads in {len(DAYS)} files in {out}", err=True)


app.command()(main)

if __name__ == "__main__":
    app()
