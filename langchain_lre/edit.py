"""Learned eviction as an edit of `langchain.agents.middleware.ContextEditingMiddleware`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from langchain_core.messages import AnyMessage, BaseMessage

from langchain_lre.settings import Settings, evictor
from langchain_lre.threads import Threads, shown

__all__ = ["LREEdit"]


class LREEdit:
    """Leaves the messages the model most likely still needs, verbatim, within a token budget.

        agent = create_agent(model, tools, middleware=[ContextEditingMiddleware(edits=[LREEdit(8_000)])])

    An edit has no place in the graph's state, so what has left follows from the messages alone: each was decided when
    it was the last one. So the same history is edited in the same way on every call and after a restart
    (langchain#37815), and what has left stays out. Thinking blocks are treated as by `LREMiddleware`.

    Args:
        max_tokens: tokens the messages may take. An edit sees neither system prompt nor tools: they come on top.
        **settings: `token_counter` and the other settings of `langchain_lre.Settings`.

    Raises:
        lre_core.InvalidSetting: a budget or a setting out of range.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """

    def __init__(self, max_tokens: int, **settings: Unpack[Settings]) -> None:
        self._evictor = evictor(max_tokens, **settings)
        self._threads = Threads()

    def apply(self, messages: list[AnyMessage], *, count_tokens: Callable[[Sequence[BaseMessage]], int]) -> None:
        """Takes what leaves out of the list.

        Args:
            messages: the copy of the history that is to be edited in place.
            count_tokens: the middleware's counter, which is not asked: it counts whole prompts, an eviction messages.
                Another counter is given as a setting.
        """
        view = self._threads.view(self._evictor, messages)
        messages[:] = shown(messages, view)  # type: ignore[assignment]
