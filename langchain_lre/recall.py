"""A tool with which the model finds again what has left its view."""

from __future__ import annotations

import importlib.util

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
        return evictor.quote(found[:FOUND], max_tokens) or NOTHING

    return recall


def _is_recall(unit: Recalled) -> bool:
    return any(call.name == NAME for message in unit.messages for call in to_message(message).calls)
