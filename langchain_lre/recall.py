"""A tool with which the model finds again what has left its view."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, tool

from langchain_lre.messages import to_message
from langchain_lre.threads import STATE_KEY, Threads
from lre_core import Evictor, MissingExtra, Recalled

__all__ = ["NAME", "recall_tool"]

NAME = "recall"
FOUND = 5
"""How many units an answer shows at most."""
NOTHING = "Nothing earlier that is no longer shown has any of these words."


def recall_tool(threads: Threads, evictor: Evictor, max_tokens: int) -> BaseTool:
    """The tool: it searches the messages of the graph's state that are out of view, and changes nothing.

    Args:
        threads: where the sessions of the model's calls are kept.
        evictor: reads and counts messages, and stands in where no such session is there any more.
        max_tokens: of an answer. A message that goes beyond is cut there, and the answer says so.

    Raises:
        lre_core.MissingExtra: bm25s is not installed.
    """
    if importlib.util.find_spec("bm25s") is None:
        raise MissingExtra("recall", "recall")

    @tool(NAME)
    def recall(query: str, runtime: ToolRuntime) -> str:
        """Find earlier messages of this conversation, word for word, that are no longer shown to you.

        Give names, numbers or other words that they are likely to contain.
        """
        messages, state = runtime.state["messages"], runtime.state.get(STATE_KEY)
        # What this tool once found is out of view as well; it would be found beside its own source.
        found = [unit for unit in threads.recall(evictor, messages, state, query, 2 * FOUND) if not _is_recall(unit)]
        return "\n\n".join(_within(max_tokens, map(_told, found[:FOUND]), evictor)) or NOTHING

    return recall


def _is_recall(unit: Recalled) -> bool:
    return any(call.name == NAME for message in unit.messages for call in to_message(message).calls)


def _told(unit: Recalled) -> str:
    """A unit as text: who said it, and the calls it made."""
    lines = [
        f"[message {unit.start + 1}]" if unit.stop == unit.start + 1 else f"[messages {unit.start + 1}-{unit.stop}]"
    ]
    for message in map(to_message, unit.messages):
        calls = [f"{call.name}({call.arguments})" for call in message.calls]
        lines.append("\n".join(filter(None, [f"{message.role}: {message.text}", *calls])))
    return "\n".join(lines)


def _within(max_tokens: int, texts: Iterator[str], evictor: Evictor) -> Iterator[str]:
    """As many of the texts as fit, the last one cut."""
    for text in texts:
        tokens = evictor.count(text)
        if tokens > max_tokens:
            shown = len(text) * max_tokens // tokens
            if shown:
                yield f"{text[:shown]}\n[cut here: {len(text) - shown:,} more characters]"
            return
        yield text
        max_tokens -= tokens
