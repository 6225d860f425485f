"""What a turn costs in LlamaIndex's memories and in ours: the time of `get()`, in one run.

    make bench llamaindex
    make bench llamaindex ARGS="--sizes 100,1000 --out llamaindex.json"

A memory already holds so many messages (pseudo-English, 40 words on average), then a conversation goes on: the
question is put, `get()` is timed, the answer is put; all memories take a turn before any takes the next. The first
`get()`, which reads what is already there, has a column of its own. Each memory holds its messages where it does by
default: `ChatMemoryBuffer` and `LREChatMemoryBuffer` in a `SimpleChatStore`, `Memory` and `LREMemory` in SQLite in
memory, all but the newest archived. Times are the process's own, so that other work on the machine does not count.

`ChatMemoryBuffer.get()` counts the rest of the history again for every message that it drops, so its time grows with
the square of the history. It is timed for three turns, and above `--bound` messages not at all: its time is then that
at the bound, scaled by the square, and the table says so with a ~.
"""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Collection
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import typer
from llama_index.core.async_utils import asyncio_run
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.memory.types import BaseMemory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.selection import texts
from llamaindex_lre import LREChatMemoryBuffer, LREMemory

RESULTS = Path(__file__).parent.parent / "results" / "llamaindex.json"
SLOW, SLOW_TURNS = "ChatMemoryBuffer", 3
QUEUE = 30
"""Messages that `Memory` has not archived when the conversation goes on."""

app = typer.Typer(add_completion=False)


class Row(NamedTuple):
    """One memory at one size. Times in milliseconds; `get_ms` is the median over the turns."""

    memory: str
    messages: int
    first_ms: float
    get_ms: float
    slowest_ms: float
    shown: int
    turns: int
    extrapolated: bool


def _buffer(kind: type[ChatMemoryBuffer], limit: int, messages: list[ChatMessage]) -> BaseMemory:
    return kind.from_defaults(chat_history=messages, token_limit=limit)


def _memory(kind: type[Memory], limit: int, messages: list[ChatMessage]) -> BaseMemory:
    made: Memory = kind.from_defaults(token_limit=limit, token_flush_size=limit // 10)
    archived, active = messages[:-QUEUE], messages[-QUEUE:]
    asyncio_run(made.sql_store.add_messages(made.session_id, archived, status=MessageStatus.ARCHIVED))
    asyncio_run(made.sql_store.add_messages(made.session_id, active))
    return made


MEMORIES: dict[str, tuple[Callable[..., BaseMemory], Any]] = {
    "ChatMemoryBuffer": (_buffer, ChatMemoryBuffer),
    "Memory": (_memory, Memory),
    "LREChatMemoryBuffer": (_buffer, LREChatMemoryBuffer),
    "LREMemory": (_memory, LREMemory),
}


def conversation(n: int, seed: int = 0) -> list[ChatMessage]:
    """So many messages, questions and answers in turn."""
    random = Random(seed)
    words = " ".join(texts(-(-n // 2), seed)).split()
    starts = (random.randrange(len(words) - 80) for _ in range(n))
    return [
        ChatMessage(
            role="assistant" if at % 2 else "user", content=" ".join(words[start : start + random.randrange(1, 80)])
        )
        for at, start in enumerate(starts)
    ]


def milliseconds(call: Callable[[], object]) -> float:
    """The process's time for a call, its threads' included."""
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def measure(names: Collection[str], size: int, limit: int, turns: int) -> dict[str, Row]:
    """A conversation of so many turns on top of so many messages, with each of the memories."""
    messages = conversation(size + 2 * turns)
    made = {name: MEMORIES[name][0](MEMORIES[name][1], limit, messages[:size]) for name in names}
    first = {name: milliseconds(memory.get) for name, memory in made.items()}
    times: dict[str, list[float]] = {name: [] for name in names}
    for question, answer in zip(messages[size::2], messages[size + 1 :: 2], strict=True):
        for name, memory in made.items():
            if name != SLOW or len(times[name]) < SLOW_TURNS:
                memory.put(question)
                times[name].append(milliseconds(memory.get))
                memory.put(answer)
    return {
        name: Row(
            name, size, first[name], statistics.median(taken), max(taken), len(made[name].get()), len(taken), False
        )
        for name, taken in times.items()
    }


def scaled(row: Row, size: int) -> Row:
    """The same memory at a larger size, by the square of it."""
    factor = (size / row.messages) ** 2
    return row._replace(
        messages=size,
        first_ms=row.first_ms * factor,
        get_ms=row.get_ms * factor,
        slowest_ms=row.slowest_ms * factor,
        turns=0,
        extrapolated=True,
    )


def shown(rows: list[Row]) -> Table:
    """The rows as a table, each time beside that of `ChatMemoryBuffer` at the same size."""
    table = Table(
        title="Time of get() after n messages, milliseconds", box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("memory", no_wrap=True)
    for heading in ("n", "first", "get()", "slowest", "shown", "faster"):
        table.add_column(heading, justify="right", no_wrap=True)
    original = {row.messages: row.get_ms for row in rows if row.memory == SLOW}
    for row in rows:
        mark = "~" if row.extrapolated else ""
        times = (
            f"{mark}{ms:,.0f}" if ms >= 100 else f"{mark}{ms:.2f}" for ms in (row.first_ms, row.get_ms, row.slowest_ms)
        )
        ratio = f"{original[row.messages] / row.get_ms:,.0f}" if row.messages in original else ""
        table.add_row(row.memory, f"{row.messages:,}", *times, str(row.shown), ratio)
    return table


@app.command()
def main(
    sizes: Annotated[str, typer.Option(help="Messages already there, with commas.")] = "100,1000,5000",
    limit: Annotated[int, typer.Option(help="Tokens a prompt may take.")] = 2_048,
    turns: Annotated[int, typer.Option(help="Turns timed.")] = 100,
    bound: Annotated[int, typer.Option(help="Messages up to which ChatMemoryBuffer is run.")] = 1_000,
    out: Annotated[Path, typer.Option(help="Where to write the rows as JSON.", dir_okay=False)] = RESULTS,
) -> None:
    """Times `get()` of LlamaIndex's memories and of ours."""
    rows: list[Row] = []
    for size in map(int, sizes.split(",")):
        known = [row for row in rows if row.memory == SLOW and not row.extrapolated]
        skipped = {SLOW: scaled(known[-1], size)} if known and size > bound else {}
        measured = measure(MEMORIES.keys() - skipped.keys(), size, limit, turns) | skipped
        rows += [measured[name] for name in MEMORIES]
    out.parent.mkdir(parents=True, exist_ok=True)
    ran = {"limit": limit, "python": platform.python_version(), "machine": platform.machine(), "cpus": os.cpu_count()}
    versions = {name: version(name) for name in ("llama-index-core", "pydantic", "SQLAlchemy")}
    out.write_text(json.dumps(ran | versions | {"rows": [row._asdict() for row in rows]}, indent=1) + "\n")
    Console().print(shown(rows))


if __name__ == "__main__":
    app()
