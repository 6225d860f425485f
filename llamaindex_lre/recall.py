"""A tool with which an agent finds again what it is no longer shown."""

# LlamaIndex finds a tool's context by its annotation as it is; `from __future__ import annotations` would hide it.

import asyncio
import importlib.util
from collections.abc import Callable, Collection, Iterable
from typing import Any

from llama_index.core.memory import BaseMemory
from llama_index.core.tools import FunctionTool
from llama_index.core.utils import get_tokenizer
from llama_index.core.workflow import Context

from llamaindex_lre.settings import evictor_of
from llamaindex_lre.steps import read_step
from lre_core import Evictor, MissingExtra, Recalled

__all__ = ["SHOWN_KEY", "recall_tool", "searching", "shown_keys"]

NAME = "recall"
DESCRIPTION = """Find earlier messages of this conversation, word for word, that are no longer shown to you.

Give names, numbers or other words that they are likely to contain."""
FOUND = 5
"""How many units an answer shows at most."""
NOTHING = "Nothing earlier that is no longer shown has any of these words."
SHOWN_KEY = "lre_shown"
"""Where a context's store keeps what each agent was last shown: the keys of the messages."""
UNFINISHED = ("scratchpad", "current_reasoning")
"""Where it keeps what a run has collected so far, by LlamaIndex's kinds of agents."""


def recall_tool(max_tokens: int = 2_000, tokenizer_fn: Callable[[str], list[Any]] | None = None) -> FunctionTool:
    """A tool for any agent: it searches the messages of the agent's memory that the memory does not show it.

    It reads a query, which nothing that decides what is shown ever does, and changes nothing. `LREFunctionAgent` and
    `LREReActAgent`, which choose from what the memory shows, have their own: `recall=True`.

        agent = FunctionAgent(tools=[*tools, recall_tool()], llm=llm)
        answer = await agent.run(user_msg="What was the code?", memory=LREMemory.from_defaults(token_limit=8_000))

    Args:
        max_tokens: of an answer. A message that goes beyond is cut there, and the answer says so.
        tokenizer_fn: from text to tokens; LlamaIndex's global tokenizer by default.

    Raises:
        lre_core.InvalidSetting: a limit under 1.
        lre_core.MissingExtra: bm25s is not installed.
    """
    tokenizer = tokenizer_fn or get_tokenizer()
    return searching(evictor_of(max_tokens, {}, read_step, token_counter=lambda text: len(tokenizer(text))), max_tokens)


def searching(
    evictor: Evictor, max_tokens: int, agent: str | None = None, unfinished: Collection[str] = UNFINISHED
) -> FunctionTool:
    """The tool.

    Args:
        evictor: reads and counts messages and steps.
        max_tokens: of an answer.
        agent: the name of one that keeps the keys of what it was last shown.
        unfinished: where in a context's store a run is collected.

    Raises:
        lre_core.MissingExtra: bm25s is not installed.
    """
    if importlib.util.find_spec("bm25s") is None:
        raise MissingExtra("recall", "recall")

    async def recall(ctx: Context, query: str) -> str:
        # A context has a copy of its own of the memory it was given.
        memory: BaseMemory = await ctx.store.get("memory")
        collected = [item for key in unfinished for item in await ctx.store.get(key, default=[])]
        shown = (await ctx.store.get(SHOWN_KEY, default={})).get(agent)
        if shown is None:
            shown = shown_keys([*await memory.aget(), *collected])
        everything = [*await memory.aget_all(), *collected]
        return await asyncio.to_thread(_answer, evictor, everything, set(shown), query, max_tokens)

    return FunctionTool.from_defaults(async_fn=recall, name=NAME, description=DESCRIPTION)


def shown_keys(items: Iterable[Any]) -> list[str]:
    """What tells the messages of a prompt from others, for the store of a context."""
    return [read_step(item).key for item in items]


def _answer(evictor: Evictor, messages: list[Any], shown: set[str], query: str, max_tokens: int) -> str:
    # What is shown, and what this tool once found, would be found beside what is looked for.
    found = [
        unit
        for unit in evictor.search(messages, query, len(messages) or 1)
        if not _is_answer(unit) and not shown.issuperset(shown_keys(unit.messages))
    ]
    found.sort(key=_quotes_answer)
    return evictor.quote(found[:FOUND], max_tokens) or NOTHING


def _is_answer(unit: Recalled) -> bool:
    """Whether it is a call of this tool with its answer."""
    return any(call.name == NAME for message in unit.messages for call in read_step(message).calls)


def _quotes_answer(unit: Recalled) -> bool:
    """Whether it is a finished run of a ReAct agent, in one message, in which this tool was called among others."""
    return any(f"\nAction: {NAME}\n" in read_step(message).text for message in unit.messages)
