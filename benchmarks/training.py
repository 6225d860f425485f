"""What `lre train` costs on logs of a gigabyte: time and peak memory, beside a small part of them.

    make bench training    # writes results/training.json

The logs are the week of `benchmarks.week` over and over, each run a thread of its own. The command streams through all
of them and trains on an even sample, so its memory should not grow with the file.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.week import DAYS, FIRST_SEED, RUNS_A_DAY, messages

app = typer.Typer(add_completion=False)

RESULTS = Path(__file__).parent.parent / "results" / "training.json"
MIB = 1 << 20
TRAIN = (sys.executable, "-c", "from lre_core.cli import main; main()", "train")


class Row(NamedTuple):
    """One run of the command."""

    log_mib: int
    threads: int
    used: int
    moments: int
    units: int
    seconds: float
    peak_mib: int


def threads() -> Iterator[str]:
    """Lines of a log without end: the week's runs again and again, as other threads."""
    week = [json.dumps(messages(seed)) for seed in range(FIRST_SEED, FIRST_SEED + RUNS_A_DAY * len(DAYS))]
    for number in itertools.count():
        yield from (f'{{"thread_id": "{number}-{run}", "messages": {said}}}\n' for run, said in enumerate(week))


def write(path: Path, size: int) -> int:
    """Writes whole threads until the file has so many bytes; how many threads there are."""
    with path.open("w", encoding="utf-8") as log:
        for number, line in enumerate(threads()):
            if log.tell() >= size:
                return number
            log.write(line)
    raise AssertionError("threads() has no end")


def measure(folder: Path, mib: int) -> Row:
    """`lre train` on a log of this size, in a process of its own."""
    path = folder / f"{mib}.jsonl"
    count = write(path, mib * MIB)
    start = time.perf_counter()
    with subprocess.Popen([*TRAIN, path, "-o", folder / "scorer.json", "--json"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise typer.Exit(process.returncode)
    said: dict[str, Any] = json.loads(printed)
    seconds = time.perf_counter() - start
    path.unlink()
    peak = usage.ru_maxrss // (MIB if sys.platform == "darwin" else 1 << 10)
    return Row(mib, count, said["used"], said["moments"], said["units"], round(seconds, 1), peak)


@app.command()
def main(
    sizes: Annotated[str, typer.Option(help="Sizes of the logs in MiB, with commas.")] = "64,1024",
    out: Annotated[Path, typer.Option(help="Where to write the rows as JSON.", dir_okay=False)] = RESULTS,
) -> None:
    """Train on logs of these sizes, and say how long it took and how much memory."""
    with TemporaryDirectory() as folder:
        rows = [measure(Path(folder), int(size)) for size in sizes.split(",")]
    result = {
        "command": "make bench training",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: version(name) for name in ("scikit-learn", "scipy", "numpy")},
        "rows": [row._asdict() for row in rows],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    table = Table(*(name.replace("_", " ") for name in Row._fields))
    for row in rows:
        table.add_row(*(f"{value:,}" for value in row))
    Console().print(table)


if __name__ == "__main__":
    app()
