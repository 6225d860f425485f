"""A history of ten million tokens, appended message by message and viewed at every step: time, memory, evictions.

    python -m benchmarks.long_history
    python -m benchmarks.long_history --data chats.jsonl.gz
    python -m benchmarks.long_history --json

The history is made by joining chats: those of a file (a JSON object a line, each with `messages`), or synthetic ones.
Where they are too few they come again, with every fiftieth word made new, since a history goes on meeting new words.
It is gone through twice: once for the time, once under tracemalloc, which counts every byte that is held beyond the
messages themselves, and slows everything down.
"""

import gzip
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.selection import texts
from lre_core import Eviction, Evictor
from lre_core.messages import as_message
from lre_core.tokens import counter, message_tokens

ENCODING = "o200k_base"
NEW_WORD = 50
PARTS = 10

app = typer.Typer(add_completion=False)

Chat = list[dict[str, Any]]


class Row(NamedTuple):
    """Where the run stood after a tenth of the history.

    `median_ms` is of this tenth, all else from the start. `largest_view` is of the views that kept to the budget, and
    `over_budget` how many could not, since what is pinned exceeds it alone. Megabytes are those beyond the messages.
    """

    messages: int
    tokens: int
    seconds: float
    evictions: int
    largest_view: int
    over_budget: int
    median_ms: float
    held_mb: float
    peak_mb: float


def read_chats(path: Path) -> list[Chat]:
    """The chats of a file: a JSON object a line with `messages`, gzip or not."""
    written = path.read_bytes()
    lines = (gzip.decompress(written) if path.suffix == ".gz" else written).splitlines()
    return [json.loads(line)["messages"] for line in lines if line.strip()]


def synthetic_chats(chats: int = 50, messages: int = 400, seed: int = 0) -> list[Chat]:
    """Pseudo-English chats in which codes are given and asked for again."""
    random = Random(seed)
    said = texts(chats * messages, seed)
    made: list[Chat] = []
    for chat in range(chats):
        codes = [f"ref_{random.randrange(10**8):08}" for _ in range(messages // 20)]
        made.append(
            [
                {"role": ("user", "assistant")[n % 2], "content": f"{said[chat * messages + n]} {random.choice(codes)}"}
                for n in range(messages)
            ]
        )
    return made


def joined(chats: Sequence[Chat], tokens: int, cost: Callable[[dict[str, Any]], int]) -> Iterator[dict[str, Any]]:
    """Messages of the chats, one chat after the other and again from the first, until they cost as many tokens."""
    for again in count():
        for message in (message for chat in chats for message in chat):
            if tokens <= 0:
                return
            if again:
                words = str(message["content"] or "").split(" ")
                words[::NEW_WORD] = [f"{word}{again}" for word in words[::NEW_WORD]]
                message = message | {"content": " ".join(words)}
            tokens -= cost(message)
            yield message


def go_through(history: Chat, ends: Iterable[int], budget: int, scorer: str) -> Iterator[Row]:
    """Appends message by message, views at every step, and tells where it stands at each of the ends."""
    evictions = 0

    def told(eviction: Eviction) -> None:
        nonlocal evictions
        evictions += 1

    evictor = Evictor(budget, scorer, token_counter=ENCODING, on_evict=told)
    session, at, tokens, largest, over, spent = evictor.session(), 0, 0, 0, 0, 0.0
    for end in ends:
        times = []
        for message in history[at:end]:
            before = time.perf_counter()
            session.append([message])
            view = session.view()
            times.append(time.perf_counter() - before)
            over += view.over_budget
            largest = largest if view.over_budget else max(largest, view.tokens)
            tokens += evictor.message_cost(as_message(message))
        at, spent = end, spent + sum(times)
        held, peak = (size / 1e6 for size in tracemalloc.get_traced_memory())
        yield Row(at, tokens, spent, evictions, largest, over, 1e3 * statistics.median(times), held, peak)


def measure(history: Chat, budget: int, scorer: str, console: Console) -> list[Row]:
    """Goes through the history twice, for time and for memory."""
    ends = [len(history) * part // PARTS for part in range(1, PARTS + 1)]
    with console.status("For the time"):
        timed = list(go_through(history, ends, budget, scorer))
    with console.status("For the memory"):
        tracemalloc.start()
        traced = list(go_through(history, ends, budget, scorer))
        tracemalloc.stop()
    return [t._replace(held_mb=m.held_mb, peak_mb=m.peak_mb) for t, m in zip(timed, traced, strict=True)]


def table(rows: Sequence[Row], budget: int) -> Table:
    """The rows as a table for people."""
    last = rows[-1]
    drawn = Table(
        title=f"Appended message by message and viewed at every step, budget {budget:,} tokens",
        caption=f"Largest view {last.largest_view:,} tokens; {last.over_budget:,} more exceeded it by the pinned alone",
    )
    for heading in ("messages", "tokens", "seconds", "evictions", "median, ms", "held, MB", "peak, MB"):
        drawn.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        drawn.add_row(
            f"{row.messages:,}",
            f"{row.tokens:,}",
            f"{row.seconds:.1f}",
            f"{row.evictions:,}",
            f"{row.median_ms:.3f}",
            f"{row.held_mb:.1f}",
            f"{row.peak_mb:.1f}",
        )
    return drawn


@app.command()
def main(
    data: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="Chats, JSON lines.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of the whole history.")] = 10_000_000,
    budget: Annotated[int, typer.Option(min=1, help="Tokens a view may take.")] = 16_000,
    scorer: Annotated[str, typer.Option(help="A bundled scorer's name, or a path.")] = "assistant",
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line instead of the table.")] = False,
) -> None:
    """Go through a very long history message by message."""
    console = Console(stderr=True)
    count_tokens = counter(ENCODING)
    chats = synthetic_chats() if data is None else read_chats(data)
    history = list(joined(chats, tokens, lambda message: message_tokens(as_message(message), count_tokens)))
    rows = measure(history, budget, scorer, console)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row._asdict()))
    else:
        Console().print(table(rows, budget))


if __name__ == "__main__":
    app()
