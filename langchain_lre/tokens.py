"""Any of LangChain's token counters, asked once a message and only about sequences that a provider would accept."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, SupportsFloat

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_lre.messages import to_message
from lre_core import InvalidSetting

__all__ = ["TokenCounter", "counting"]

TokenCounter = (
    str
    | BaseLanguageModel[Any]
    | Callable[[str], int]
    | Callable[[BaseMessage], int]
    | Callable[[list[BaseMessage]], int]
)
"""The name of a tiktoken encoding, `"approximate"`, a model, or a callable on a list of messages, a message or text."""

REMEMBERED = 1 << 16
OPENING = HumanMessage("?")
CALL = AIMessage("", tool_calls=[ToolCall(name="f", args={}, id="1")])


def counting(token_counter: TokenCounter) -> dict[str, Any]:
    """The settings of `lre_core.Evictor` by which it counts as `token_counter` does.

    What a callable counts, its annotation says, as for LangChain's `trim_messages`: one message for `BaseMessage`, text
    for `str`, and a list of messages for everything else, so that `len` counts messages. A fraction of a token, as an
    estimate may give, counts as a whole one.

    Raises:
        lre_core.InvalidSetting: it is none of these, or a callable that fails on a list of messages and does not say
            that it counts something else; when it counts, that it gave no number of tokens.
    """
    if token_counter == "approximate":
        return {"message_counter": _remembering(lambda message: count_tokens_approximately([message]))}
    if isinstance(token_counter, str):
        return {"token_counter": token_counter}
    count = getattr(token_counter, "get_num_tokens_from_messages", None)
    if count is not None:
        return {"message_counter": _remembering(_Paired(_whole(count)))}
    if not callable(token_counter):
        raise InvalidSetting(
            f"token_counter is {type(token_counter).__name__}; expected the name of a tiktoken encoding, "
            "'approximate', a chat model, or a callable"
        )
    counted, count = _annotation(token_counter), _whole(token_counter)
    if counted is str:
        return {"token_counter": count}
    if isinstance(counted, type) and issubclass(counted, BaseMessage):
        return {"message_counter": _remembering(count)}
    if counted is None:
        _try(count)
    return {"message_counter": _remembering(_Paired(count))}


class _Paired:
    """What one message adds to a sequence that a provider would accept.

    A result is counted behind a call, a call before its results, an assistant's or a system message beside a human one.
    For a counter that adds up messages, the sum over a valid history is what the counter says of the whole.
    """

    def __init__(self, count: Callable[[list[BaseMessage]], int]) -> None:
        self._count = count
        self._bases: dict[int, int] = {}

    def __call__(self, message: BaseMessage) -> int:
        if isinstance(message, ToolMessage):
            # Its id, and the frame around its content, are counted with the call, which is never sent without a result.
            answer = message.model_copy(update={"tool_call_id": "1"})
            return self._added([OPENING, CALL, answer], [OPENING, CALL, _result("1")])
        read = to_message(message)
        if read.kind == "system":
            return self._added([message, OPENING], [OPENING])
        if read.kind == "assistant":
            results = [_result(call.id or "") for call in read.calls]
            return self._added([OPENING, message, *results], [OPENING])
        return self._count([message if read.kind == "human" else HumanMessage(read.text)])

    def _added(self, messages: list[BaseMessage], base: list[BaseMessage]) -> int:
        known = self._bases.get(len(base))
        if known is None:
            known = self._bases[len(base)] = self._count(base)
        return max(0, self._count(messages) - known)


def _result(id: str) -> ToolMessage:
    return ToolMessage("", tool_call_id=id)


def _whole(count: Callable[[Any], Any]) -> Callable[[Any], int]:
    """The same counter; what it gives is checked, for it is the caller's own."""

    def whole(counted: Any) -> int:
        tokens = count(counted)
        if isinstance(tokens, bool) or not isinstance(tokens, SupportsFloat) or not 0 <= float(tokens) < math.inf:
            raise InvalidSetting(f"token_counter gave {tokens!r}; it must give a number of tokens, 0 or more")
        return math.ceil(float(tokens))

    return whole


def _remembering(count: Callable[[Any], int]) -> Callable[[BaseMessage], int]:
    """The same counter, which counts a message it has lately seen once; it keeps no message."""
    known: dict[str, int] = {}

    def remembered(message: BaseMessage) -> int:
        key = to_message(message).key
        tokens = known.get(key)
        if tokens is None:
            if len(known) >= REMEMBERED:
                known.clear()
            tokens = known[key] = count(message)
        return tokens

    return remembered


def _annotation(counter: Callable[..., Any]) -> Any:
    """The type of a callable's first parameter; None if it does not say."""
    try:
        first = next(iter(inspect.signature(counter).parameters.values()))
    except (StopIteration, TypeError, ValueError):  # some builtins have no signature
        return None
    if first.annotation is first.empty:
        return None
    # Names stand for types under `from __future__ import annotations`, and not all can be looked up from here.
    return {"str": str, "BaseMessage": BaseMessage}.get(str(first.annotation), first.annotation)


def _try(counter: Callable[[list[BaseMessage]], int]) -> None:
    try:
        counter([OPENING])
    except InvalidSetting:
        raise
    except Exception as error:
        raise InvalidSetting(
            f"token_counter failed on a list of messages ({error!r}); one that counts text says so: "
            "def count(text: str) -> int"
        ) from error
