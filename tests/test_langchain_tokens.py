"""Every token counter LangChain takes counts here too: as it counts there, once a message, on valid sequences only."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_histories import chat, problems

from langchain_lre import lre_trim_messages, to_message
from langchain_lre.settings import evictor
from lre_core import InvalidSetting
from lre_core.tokens import counter

NOTATION = "S H AI H AI*1 T1 AI H AI*2,3 T2 T3 AI H"
HISTORY = chat(NOTATION)


def per_message(message: BaseMessage) -> int:
    return 7 + len(str(message.content).split()) + 5 * len(getattr(message, "tool_calls", ()))


def of_list(messages: Sequence[BaseMessage]) -> int:
    return sum(map(per_message, messages))


def of_text(text: str) -> int:
    return len(text.split())


class CountingModel(GenericFakeChatModel):
    """A model with a counter of its own, which refuses what its provider would."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None) -> int:
        refuse(messages)
        return of_list(messages)


def refuse(messages: Sequence[BaseMessage]) -> None:
    if found := problems(messages):
        raise ValueError(f"400: {found}")


MODEL = CountingModel(messages=iter(()))


def tokens(token_counter: Any, history: list[BaseMessage] = HISTORY) -> int:
    return evictor(10_000, token_counter=token_counter).view(history).tokens


@pytest.mark.parametrize(
    ("token_counter", "expected"),
    [
        (MODEL, of_list(HISTORY)),
        (MODEL.get_num_tokens_from_messages, of_list(HISTORY)),
        (of_list, of_list(HISTORY)),
        (lambda messages: of_list(messages), of_list(HISTORY)),
        (functools.partial(count_tokens_approximately, chars_per_token=2), None),
        (per_message, of_list(HISTORY)),
        (len, len(HISTORY)),
        ("approximate", count_tokens_approximately(HISTORY)),
        (count_tokens_approximately, None),
    ],
    ids=["model", "model's method", "list", "lambda", "partial", "message", "len", "approximate", "approximately"],
)
def test_a_view_costs_what_the_counter_says_of_its_messages(token_counter: Any, expected: int | None) -> None:
    if expected is not None:
        assert tokens(token_counter) == expected
    else:
        # A length of its own for every id: to a few tokens, and never less.
        assert 0 <= tokens(token_counter) - token_counter(HISTORY) <= len(HISTORY)


def test_a_counter_of_text_and_the_name_of_an_encoding_count_text() -> None:
    words = sum(len(str(message.content).split()) for message in HISTORY)
    assert words < tokens(of_text) < words + 10 * len(HISTORY)
    for encoding in ("cl100k_base", "o200k_base"):
        assert tokens(encoding, [HumanMessage("สวัสดี")]) == counter(encoding)("สวัสดี") + 3
    assert tokens("cl100k_base", [HumanMessage("สวัสดี")]) != tokens("o200k_base", [HumanMessage("สวัสดี")])


@pytest.mark.parametrize("notation", [NOTATION, "H AI*a AI*b Ta Tb AI", "S H AI*1 T1 H AI H AI", "H AI*1", "T1 H AI"])
def test_langchain_29637_a_counter_sees_only_sequences_that_a_provider_would_accept(notation: str) -> None:
    seen: list[list[BaseMessage]] = []

    def count(messages: list[BaseMessage]) -> int:
        seen.append(messages)
        refuse(messages)
        return of_list(messages)

    for budget in (40, 80, 10_000):
        lre_trim_messages(chat(notation), max_tokens=budget, token_counter=count)
    counted = {message.content for messages in seen for message in messages}
    assert {message.content for message in chat(notation)} <= counted


def test_a_message_is_counted_once_however_often_views_are_asked_for() -> None:
    counted: list[str] = []

    def count(message: BaseMessage) -> int:
        counted.append(str(message.content))
        return per_message(message)

    history = chat("H AI " * 30)
    for stop in range(2, len(history), 2):
        lre_trim_messages(history[:stop], max_tokens=200, token_counter=count)
        lre_trim_messages([message.model_copy() for message in history[:stop]], max_tokens=200, token_counter=count)
    assert sorted(counted) == sorted(str(message.content) for message in history[:58])


def test_a_counter_that_fails_on_messages_is_told_how_to_say_that_it_counts_text() -> None:
    def unannotated(text):  # type: ignore[no-untyped-def]
        return len(text.split())

    with pytest.raises(InvalidSetting, match=r"token_counter failed on a list of messages.*def count\(text: str\)"):
        lre_trim_messages(HISTORY, max_tokens=100, token_counter=unannotated)
    with pytest.raises(InvalidSetting, match="no tiktoken encoding 'o300k_base'"):
        lre_trim_messages(HISTORY, max_tokens=100, token_counter="o300k_base")
    with pytest.raises(InvalidSetting, match="token_counter is int; expected"):
        lre_trim_messages(HISTORY, max_tokens=100, token_counter=14)  # type: ignore[call-overload]


@pytest.mark.parametrize("counted", [str, BaseMessage, list[BaseMessage], None])
@pytest.mark.parametrize("given", [None, -1, "4", [1, 2], True, float("nan"), float("inf")])
def test_a_counter_that_gives_no_number_of_tokens_is_named(counted: Any, given: Any) -> None:
    def count(of):  # type: ignore[no-untyped-def]
        return given

    count.__annotations__ = {"of": counted} if counted else {}
    with pytest.raises(InvalidSetting, match=r"token_counter gave .*; it must give a number of tokens, 0 or more"):
        lre_trim_messages(HISTORY, max_tokens=100, token_counter=count)


def test_a_fraction_of_a_token_counts_as_a_whole_one() -> None:
    def quarter(message: BaseMessage) -> float:
        return len(message.content) / 4

    def rounded(message: BaseMessage) -> int:
        return math.ceil(quarter(message))

    for budget in (40, 80, 10_000):
        shown = lre_trim_messages(HISTORY, max_tokens=budget, token_counter=quarter)  # type: ignore[arg-type]
        assert shown == lre_trim_messages(HISTORY, max_tokens=budget, token_counter=rounded)


def test_a_counter_that_fails_later_loses_nothing() -> None:
    class Offline(Exception):
        pass

    broken = [True]

    def count(messages: list[BaseMessage]) -> int:
        if broken[0] and len(messages) > 1:
            raise Offline
        return of_list(messages)

    with pytest.raises(Offline):
        lre_trim_messages(HISTORY, max_tokens=10_000, token_counter=count)
    broken[0] = False
    assert lre_trim_messages(HISTORY, max_tokens=10_000, token_counter=count) == HISTORY


@pytest.mark.parametrize(
    "message",
    [
        SystemMessage("be brief"),
        HumanMessage("look"),
        AIMessage("14"),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "a"}]),
        ToolMessage("14", tool_call_id="a"),
    ],
    ids=lambda message: message.type,
)
def test_counting_changes_no_message(message: BaseMessage) -> None:
    before = message.model_copy(deep=True)
    evictor(100, token_counter=MODEL).message_cost(to_message(message), message)
    assert message == before
