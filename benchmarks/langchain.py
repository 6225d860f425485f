"""What a turn costs in a LangChain chain: ours beside what LangChain has, on the same chat, in one run.

    make bench langchain
    make bench langchain ARGS="--out results/langchain.json"

A turn adds a question and an answer to a chat of so many messages, and asks for the prompt's messages under 2,048
tokens. Times are the process's own, so that other work on the machine does not count: the median, mean and slowest of
several turns. `first` is the one turn in which the whole chat is new, as after a
restart. `ConversationTokenBufferMemory` counts the whole buffer again for each message that it drops, so the chat it
starts from is what it would have kept, which is the best case for it, and the counter is the same tiktoken one.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_classic.memory import ConversationTokenBufferMemory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import trim_messages

from langchain_lre import LREChatMessageHistory, LREConversationMemory, lre_trim_messages
from langchain_lre.memory import InMemoryHistory
from lre_core.tokens import counter

BUDGET = 2_048
SIZES = (100, 1_000, 5_000)
TURNS = 20
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


METHODS: dict[str, Callable[[], Turn]] = {
    "lre_trim_messages": ours,
    "LREChatMessageHistory": our_history,
    "LREConversationMemory": our_memory,
    "trim_messages, tiktoken": lambda: trimming(tokens_of),
    "trim_messages, cached per message": trimming_cached,
    "ConversationTokenBufferMemory": token_buffer,
}


def measure(name: str, size: int) -> dict[str, float]:
    """Milliseconds of the first turn at this size and of the median and slowest turn after it."""
    # A chat of its own for each row: histories lately seen are remembered, and none may begin with another.
    history = chat(size + 2 * TURNS, f"{name} {size}")
    turn = METHODS[name]()
    start = time.process_time()
    turn(history[:size])
    first = time.process_time() - start
    later = []
    for stop in range(size + 2, size + 2 * TURNS + 1, 2):
        messages = history[:stop]
        start = time.process_time()
        assert turn(messages) > 0
        later.append(time.process_time() - start)
    return {
        "first_ms": round(1e3 * first, 3),
        "turn_ms": round(1e3 * statistics.median(later), 3),
        "mean_ms": round(1e3 * statistics.fmean(later), 3),
        "slowest_ms": round(1e3 * max(later), 3),
    }


def main() -> None:
    """Prints a table, and writes the rows where `--out` says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the rows to this JSON file")
    arguments = parser.parse_args()
    for name in METHODS:  # vocabularies and scorers are loaded once a process
        measure(name, 10)
    rows = []
    print(f"{'':34}{'messages':>9}{'turn, ms':>10}{'mean':>9}{'slowest':>9}{'first':>10}")  # noqa: T201
    for size in SIZES:
        for name in METHODS:
            row = {"method": name, "messages": size, **measure(name, size)}
            rows.append(row)
            print(  # noqa: T201
                f"{name:34}{size:9}{row['turn_ms']:10.2f}{row['mean_ms']:9.2f}{row['slowest_ms']:9.2f}"
                f"{row['first_ms']:10.1f}"
            )
    if arguments.out:
        packages = {name: version(name) for name in ("langchain-core", "langchain-classic", "tiktoken", "numpy")}
        result = {
            "command": "make bench langchain",
            "python": platform.python_version(),
            "machine": platform.machine(),
            "budget_tokens": BUDGET,
            "turns": TURNS,
            "packages": packages,
            "rows": rows,
        }
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
