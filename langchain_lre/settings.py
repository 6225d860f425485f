"""What every adapter here takes beside its budget, and the evictor that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal, TypedDict, Unpack

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_lre.messages import to_message
from langchain_lre.tokens import TokenCounter, counting
from lre_core import Eviction, Evictor, Scorer

__all__ = ["Settings", "evictor"]


class Settings(TypedDict, total=False):
    """The settings of `lre_core.Evictor`, which says what each does, in LangChain's terms.

    `token_counter` is the name of a tiktoken encoding, or whatever LangChain takes: a chat model, `"approximate"`, a
    callable on a list of messages, on one message or on text. `pin` is asked about LangChain messages, or holds their
    ids; `note` makes one, from messages and tokens left out. `on_evict` hears of an eviction again where a history is
    read anew. `whole_turn` is off unless given: an agent's run is often one long turn, and finished steps of it older
    than the recent window compete like everything else.
    """

    scorer: Scorer | str
    keep_recent: int
    budget_scope: Literal["view", "history"]
    token_counter: TokenCounter
    pin: Callable[[BaseMessage], bool] | Collection[str] | None
    message_overhead: int
    whole_turn: bool
    keep_tools: Collection[str]
    exclude_tools: Collection[str]
    note: Callable[[int, int], BaseMessage] | bool | None
    on_evict: Callable[[Eviction], object] | None


def evictor(max_tokens: int, **settings: Unpack[Settings]) -> Evictor:
    """An evictor of LangChain messages.

    Raises:
        lre_core.InvalidSetting: a budget under 1, a setting out of range, or a token counter that is none.
        lre_core.UnknownScorer: no bundled scorer of that name, and no file.
    """
    given: dict[str, Any] = {"reader": to_message, "whole_turn": False, "token_counter": "o200k_base", **settings}
    given |= counting(given.pop("token_counter"))
    if given.get("note") is True:
        given["note"] = _note
    return Evictor(max_tokens, **given)


def _note(messages: int, tokens: int) -> HumanMessage:
    return HumanMessage(f"[{messages:,} earlier messages were left out here, {tokens:,} tokens]")
