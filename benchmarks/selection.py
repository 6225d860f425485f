"""What choosing costs beside counting: the time of `select`, and of tiktoken on the same units' text, in one run.

    python -m benchmarks.selection
    python -m benchmarks.selection --json

Units are as long as messages are (lognormal around 120 words) and are counted once with o200k_base. Each kind of score
is then chosen from, freely and with a third of the units as heads. The kinds that follow the cost exactly are there
because they are the hardest a knapsack can meet, not because a scorer gives them.
"""

import json
import statistics
import time
from collections.abc import Iterator
from random import Random
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lre_core.selection import select
from lre_core.tokens import counter, estimate

ENCODING = "o200k_base"
REPEATS = 9
VOCABULARY = (
    "the of and to a in is it you that was for on are with as at be this have from or one had by but not what all were "
    "we when your can said there use an each which she do how their if will up other about out many then them these so "
    "some her would make like him into time has look two more write go see number no way could people my than first "
    "water been call who now find long down day did get come made may part order refund address invoice customer "
    "account delivery shipment reservation confirmation payment schedule request response connection timeout server "
    "deployment configuration database exception warning tomorrow yesterday remember"
)
WORDS = VOCABULARY.split()
FREQUENCIES = [1 / rank for rank in range(1, len(WORDS) + 1)]

app = typer.Typer(add_completion=False)


class Row(NamedTuple):
    """One measurement: milliseconds are the median of `REPEATS` choices; the ratio is counting over choosing."""

    scores: str
    heads: bool
    units: int
    budget: int
    chosen: int
    select_ms: float
    count_ms: float
    ratio: float
    relative_gap: float


def texts(n: int, seed: int) -> list[str]:
    """Pseudo-English of `n` messages: common words by Zipf's law, in sentences, with a number now and then."""
    random = Random(seed)
    return [" ".join(_sentences(max(1, round(random.lognormvariate(4.8, 0.8))), random)) for _ in range(n)]


def _sentences(length: int, random: Random) -> Iterator[str]:
    starts = True
    for word in random.choices(WORDS, FREQUENCIES, k=length):
        written = str(random.randrange(10_000)) if random.random() < 0.03 else word
        ends = random.random() < 0.08
        yield (written.capitalize() if starts else written) + ("." if ends else "")
        starts = ends


def scores(costs: NDArray[np.int64], seed: int) -> dict[str, NDArray[np.float64]]:
    """Scores of each kind for units of these costs."""
    rng = np.random.default_rng(seed)
    n = costs.size
    log_odds = np.log(costs) - 5 + rng.normal(0, 0.5, n)
    return {
        "uniform": rng.random(n),
        "mostly low": rng.beta(0.5, 3, n),
        "two decimals": np.rint(rng.random(n) * 100) / 100,
        "whole numbers 1 to 10": rng.integers(1, 11, n).astype(np.float64),
        "all equal": np.full(n, 0.3),
        "logistic in the length": 1 / (1 + np.exp(-log_odds)),
        "near the cost": np.maximum(costs / 1000 + rng.normal(0, 0.02, n), 0.001),
        "the cost": costs / 1000,
        "the cost and a constant": costs / 1000 + 0.1,
        "root of the cost": np.sqrt(costs),
    }


def measure(n: int, budget: int, seed: int, console: Console) -> list[Row]:
    """Count the text of `n` units once, then choose from them with scores of each kind."""
    count = counter(ENCODING)
    if count is estimate:
        raise LookupError(f"{ENCODING} is not on this machine, so there is no counting time to compare with")
    messages = texts(n, seed)
    count(messages[0])
    before = time.perf_counter()
    costs = np.array([count(message) for message in messages])
    count_ms = (time.perf_counter() - before) * 1e3
    third = np.random.default_rng(seed).random(n) < 1 / 3
    kinds = scores(costs, seed).items()
    rows = []
    for kind, values in track(kinds, "Choosing", console=console, transient=True, disable=not console.is_terminal):
        for heads in (None, third):
            times = []
            for _ in range(REPEATS):
                before = time.perf_counter()
                result = select(values, costs, budget, heads)
                times.append((time.perf_counter() - before) * 1e3)
            select_ms = statistics.median(times)
            gap = result.gap / result.bound if result.gap else 0.0
            rows.append(
                Row(
                    scores=kind,
                    heads=heads is not None,
                    units=n,
                    budget=budget,
                    chosen=result.chosen.size,
                    select_ms=round(select_ms, 3),
                    count_ms=round(count_ms, 1),
                    ratio=round(count_ms / select_ms, 1),
                    relative_gap=gap,
                )
            )
    return rows


def table(rows: list[Row]) -> Table:
    """The rows as a table for people."""
    first = rows[0]
    title = (
        f"{first.units:,} units, budget {first.budget:,} tokens; counted once with {ENCODING}: {first.count_ms:,.0f} ms"
    )
    drawn = Table(title=title)
    drawn.add_column("scores", no_wrap=True)
    for heading in ("heads", "chosen", "select, ms", "ratio", "gap"):
        drawn.add_column(heading, justify="right")
    for row in rows:
        gap = f"{row.relative_gap:.1e}" if row.relative_gap else "0"
        cells = ("a third" if row.heads else "-", f"{row.chosen:,}", f"{row.select_ms:.2f}", f"{row.ratio:,.0f}", gap)
        drawn.add_row(row.scores, *cells)
    return drawn


@app.command()
def main(
    units: Annotated[int, typer.Option(min=1, help="Units to choose from.")] = 10_000,
    budget: Annotated[int, typer.Option(min=0, help="Tokens the chosen units may cost.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of text, scores and heads.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line instead of the table.")] = False,
) -> None:
    """Time the choice of units beside the counting of their tokens."""
    console = Console(stderr=True)
    try:
        rows = measure(units, budget, seed, console)
    except LookupError as error:
        console.print(f"selection: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row._asdict()))
    else:
        Console().print(table(rows))


if __name__ == "__main__":
    app()
