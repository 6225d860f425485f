"""What a turn costs in a LangChain chain: ours beside what LangChain has, on the same chat, in one run.

    make bench langchain    # writes results/langchain.json

A turn adds a question and an answer to a chat of so many messages, and asks for the prompt's messages under 2,048
tokens. Times are the process's own, so that other work on the machine does not count: the median, mean and slowest of
the turns of several chats. `first` is the one turn in which the whole chat is new, as after a restart.
`ConversationTokenBufferMemory` counts the whole buffer again for each message that it drops, so the chat it starts from
is what it would have kept, which is the best case for it, and the counter is the same tiktoken one.
"""

from __future__ import annotations

import json
import platform
import random
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from langchain_classic.memory import ConversationTokenBufferMemory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import trim_messages
from rich import box
from rich.console import Console
from rich.table import Table

from langchain_lre import LREChatMessageHistory, LREConversationMemory, lre_trim_messages
from langchain_lre.memory import InMemoryHistory
from lre_core.tokens import counter

app = typer.Typer(add_completion=False)

RESULTS = Path(__file__).parent.parent / "results" / "langchain.json"
BUDGET = 2_048
WORDS = """the of and to in is that it was for on are as with they be at have from or had by hot but some what there we
can out other were all your when up use word how said an each which their time will way about many then them would
write like these her long make thing see him two has look more day could go come did my sound no most number who over
know water than call first people may down side been now find head stand own page should country found answer""".split()

Turn = Callable[[list[BaseMessage]], int]


def chat(size: int, seed: str) -> list[BaseMessage]:
    """A chat of `size` messages of 10 to 60 words, one in five with a code."""
    chosen = random.Random(seed)
    messages: list[BaseMessage] = []
    for n in range(size):
        words = chosen.choices(WORDS, k=chosen.randint(10, 60)) + [f"ref-{chosen.randrange(10**6)}"] * (n % 5 == 0)
        messages.append((AIMessage if n % 2 else HumanMessage)(" ".join(words)))
    return messages


def tokens_of(messages: list[BaseMessage]) -> int:
    """Tokens of messages by tiktoken, three a message on top, as OpenAI counts them."""
    count = counter("o200k_base")
    return sum(count(str(message.content)) + 3 for message in messages)


class Counted(FakeListChatModel):
    """A model that counts tokens as `tokens_of` does."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
        """Tokens of messages."""
        return tokens_of(messages)


def ours() -> Turn:
    """`lre_trim_messages` as a Runnable, where `trim_messages` would stand."""
    trimmer = lre_trim_messages(max_tokens=BUDGET)
    return lambda history: len(trimmer.invoke(history))


def our_history() -> Turn:
    """`LREChatMessageHistory` around a history in memory."""
    inner = InMemoryHistory()
    history = LREChatMessageHistory(inner, max_tokens=BUDGET)

    def turn(messages: list[BaseMessage]) -> int:
        history.add_messages(messages[len(inner.messages) :])
        return len(history.messages)

    return turn


def our_memory() -> Turn:
    """`LREConversationMemory`, which gives the prompt one text."""
    memory = LREConversationMemory(max_token_limit=BUDGET)

    def turn(messages: list[BaseMessage]) -> int:
        memory.chat_memory.add_messages(messages[len(memory.chat_memory.messages) :])
        return len(memory.load_memory_variables({})["history"])

    return turn


def trimming(count: Callable[[list[BaseMessage]], int]) -> Turn:
    """`trim_messages` with a counter of lists of messages."""
    trimmer = trim_messages(
        max_tokens=BUDGET, token_counter=count, strategy="last", start_on="human", include_system=True
    )
    return lambda history: len(trimmer.invoke(history))


def trimming_cached() -> Turn:
    """`trim_messages` with a counter that has counted each message object once."""
    known: dict[int, int] = {}

    def count(messages: list[BaseMessage]) -> int:
        total = 0
        for message in messages:
            tokens = known.get(id(message))
            if tokens is None:
                tokens = known[id(message)] = tokens_of([message])
            total += tokens
        return total

    return trimming(count)


def token_buffer() -> Turn:
    """`ConversationTokenBufferMemory` that holds what it would hold at this point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        memory = ConversationTokenBufferMemory(
            llm=Counted(responses=["ok"]), max_token_limit=BUDGET, chat_memory=InMemoryHistory()
        )

    def turn(messages: list[BaseMessage]) -> int:
        held = memory.chat_memory.messages
        if not held:
            kept = trimming(tokens_of)
            held += messages[-kept(messages) :]
            return len(held)
        memory.save_context({"input": str(messages[-2].content)}, {"output": str(messages[-1].content)})
        return len(memory.load_memory_variables({})["history"])

    return turn


PLAIN, CACHED = "trim_messages, tiktoken", "trim_messages, counts cached"
METHODS: dict[str, Callable[[], Turn]] = {
    "lre_trim_messages": ours,
    "LREChatMessageHistory": our_history,
    "LREConversationMemory": our_memory,
    PLAIN: lambda: trimming(tokens_of),
    CACHED: trimming_cached,
    "ConversationTokenBufferMemory": token_buffer,
}


class Row(NamedTuple):
    """A method at a size of chat, in milliseconds."""

    method: str
    messages: int
    turns: int
    turn_ms: float
    mean_ms: float
    slowest_ms: float
    first_ms: float


def measure(name: str, size: int, turns: int, chats: int) -> Row:
    """Times a method: the first turn at a size, and those after it, in several chats."""
    first, later = [], []
    for n in range(chats):
        # A chat of its own for each row: histories lately seen are remembered, and none may begin with another.
        history = chat(size + 2 * turns, f"{name} {size} {n}")
        turn = METHODS[name]()
        first.append(milliseconds(turn, history[:size]))
        later += [milliseconds(turn, history[:stop]) for stop in range(size + 2, len(history) + 1, 2)]
    times = statistics.median(later), statistics.fmean(later), max(later), statistics.median(first)
    return Row(name, size, len(later), *(round(ms, 4) for ms in times))


def milliseconds(turn: Turn, messages: list[BaseMessage]) -> float:
    """The process's own time for a turn."""
    start = time.process_time()
    shown = turn(messages)
    spent = time.process_time() - start
    assert shown > 0
    return 1e3 * spent


def shown(rows: list[Row]) -> Table:
    """The rows as a table, the mean beside that of `trim_messages` at the same size."""
    table = Table(
        title="A turn after n messages, milliseconds",
        caption="a, b: times faster than trim_messages with tiktoken, with counts cached",
        box=box.SIMPLE,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("method", no_wrap=True)
    for heading in ("n", "median", "mean", "slowest", "first", "a", "b"):
        table.add_column(heading, justify="right", no_wrap=True)
    mean = {(row.method, row.messages): row.mean_ms for row in rows}
    for row in rows:
        times = (f"{ms:.0f}" if ms >= 10 else f"{ms:.2f}" for ms in row[3:])
        faster = (mean[other, row.messages] / row.mean_ms for other in (PLAIN, CACHED))
        table.add_row(row.method, str(row.messages), *times, *(f"{ratio:.1f}" for ratio in faster))
    return table


@app.command()
def main(
    sizes: Annotated[str, typer.Option(help="Messages already there, with commas.")] = "100,1000,5000",
    turns: Annotated[int, typer.Option(help="Turns timed in each chat.")] = 20,
    chats: Annotated[int, typer.Option(help="Chats of each size.")] = 5,
    out: Annotated[Path, typer.Option(help="Where to write the rows as JSON.", dir_okay=False)] = RESULTS,
) -> None:
    """Times what puts the messages of a LangChain prompt together."""
    for name in METHODS:  # vocabularies and scorers are loaded once a process
        measure(name, 200, 2, 1)
    rows = [measure(name, size, turns, chats) for size in map(int, sizes.split(",")) for name in METHODS]
    packages = {name: version(name) for name in ("langchain-core", "langchain-classic", "tiktoken", "numpy")}
    result = {
        "command": "make bench langchain",
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": packages,
        "budget_tokens": BUDGET,
        "rows": [row._asdict() for row in rows],
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    Console().print(shown(rows))


if __name__ == "__main__":
    app()
