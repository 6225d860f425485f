"""What eviction promises of a growing history: 5, a stable prefix, and 6, the cost of the new messages only."""

import copy
import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any
from unittest import TestCase

import pytest
from histories import SCORER, Chat, Facts, assistant, evictors, growing, histories, human, quarter, remember, same
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lre_core import Eviction, Evictor, InvalidMessage, Unit

many = settings(max_examples=500)


@many
@given(histories(least=4), evictors())
def test_promise_5_what_has_left_stays_out(history: list[Chat], evictor: Evictor) -> None:
    kept: set[int] = set()
    closed: set[int] = set()
    for prefix, view in growing(evictor, history):
        assert closed & set(view.kept) <= kept
        kept, closed = set(view.kept), set(range(len(prefix))) - Facts(prefix).open


@many
@given(histories(least=4, most=6), evictors())
def test_promise_5_views_chained_by_their_state_are_a_sessions_views(history: list[Chat], evictor: Evictor) -> None:
    state: dict[str, Any] = {}
    for prefix, view in growing(evictor, history):
        chained = evictor.view(prefix, json.loads(json.dumps(state)))
        assert same(chained, view)
        state = chained.state


@many
@given(histories(least=4, most=8), evictors(), st.integers(0, 16))
def test_promise_5_what_leaves_as_a_session_advances_does_not_depend_on_how_the_messages_came(
    history: list[Chat], evictor: Evictor, part: int
) -> None:
    one_by_one, in_parts = evictor.session(), evictor.session()
    for message in history:
        one_by_one.append([message])
        one_by_one.view()
    in_parts.advance(history[:part])
    assert same(in_parts.advance(history[part:]), one_by_one.view())
    assert in_parts.state == one_by_one.state


def test_promise_1_a_message_that_cannot_be_read_advances_nothing() -> None:
    session = Evictor(40, scorer=SCORER).session()
    before = session.advance([human("first"), assistant("second")])
    with pytest.raises(InvalidMessage, match="message 3"):
        session.advance([human("third"), {"role": "nobody"}])
    assert session.view().messages == before.messages


@many
@given(histories(least=4, most=8), evictors(), st.integers(1, 16))
def test_promise_5_a_session_restored_from_its_state_goes_on_as_if_never_stopped(
    history: list[Chat], evictor: Evictor, stop: int
) -> None:
    session = evictor.session()
    for message in history[:stop]:
        session.append([message])
        session.view()
    restored = evictor.session(json.loads(json.dumps(session.state)))
    restored.append(history[:stop])
    assert restored.state == session.state
    assert same(restored.view(), session.view())
    for message in history[stop:]:
        session.append([message])
        restored.append([message])
        assert same(restored.view(), session.view())
        assert restored.state == session.state


@many
@given(histories(least=4, most=8), evictors(), st.integers(0, 16))
def test_promise_5_reading_a_view_changes_nothing(history: list[Chat], evictor: Evictor, before: int) -> None:
    state = evictor.view(history[:before], {}).state
    given_state = copy.deepcopy(state)
    view = evictor.view(history, state)
    assert same(evictor.view(history, state), view)
    assert state == given_state
    session = evictor.session(state)
    session.append(history)
    assert same(session.view(), view)
    session.view().explain()
    assert same(session.view(), view)
    assert session.state == view.state
    again = evictor.view(history, view.state)
    assert (again.kept, again.state) == (view.kept, view.state)


@many
@given(
    histories(least=6, most=9, broken=False),
    st.sampled_from(["lose", "replace", "swap", "cut short"]),
    st.integers(0, 30),
    st.booleans(),
)
def test_promise_5_a_history_changed_behind_the_state_is_noticed(
    history: list[Chat], change: str, at: int, whole_turn: bool
) -> None:
    evictor = Evictor(150, SCORER, 1, token_counter=quarter, whole_turn=whole_turn)
    view = evictor.view(history, {})
    decided = view.state["messages"]
    assume(decided >= 2)
    changed, at = list(history), at % (decided - 1)
    if change == "lose":
        del changed[at]
    elif change == "replace":
        changed[at] = human("Something else was said here.")
    elif change == "swap":
        changed[at], changed[at + 1] = changed[at + 1], changed[at]
    else:
        del changed[decided - 1 :]
    assume(changed[:decided] != history[:decided])
    assert evictor.resumes(history, view.state)
    assert not evictor.resumes(changed, view.state)
    with TestCase().assertLogs("lre_core", "WARNING") as logged:
        chosen = evictor.view(changed, view.state)
    assert len(logged.records) == 1
    assert same(chosen, evictor.view(changed, {}))
    assert all(message is changed[index] for message, index in zip(chosen.messages, chosen.kept, strict=True))


def test_whether_a_state_is_of_a_history_is_told_without_counting_a_token() -> None:
    counted: list[str] = []
    evictor = Evictor(150, SCORER, token_counter=lambda text: counted.append(text) or len(text))  # type: ignore[func-returns-value]
    history = chat(30)
    state = evictor.view(history, {}).state
    counted.clear()
    assert state["messages"] > 0
    for longer in (history, [*history, human("more")], history[: state["messages"]]):
        assert evictor.resumes(longer, state)
    assert not evictor.resumes(history[: state["messages"] - 1], state)
    assert not evictor.resumes([], state)
    assert evictor.resumes([], None)
    assert evictor.resumes(history, {})
    assert counted == []


def indexes_of(units: Iterable[Unit]) -> list[int]:
    """The messages of these units, in order."""
    return [index for unit in units for index in range(unit.start, unit.stop)]


def chat(messages: int) -> list[Chat]:
    """A chat of different messages that all cost the same: 25 tokens under `quarter`."""
    speakers = (human, assistant)
    return [speakers[n % 2](f"{n:03} " + "word " * 16 + "end.") for n in range(messages)]


def shared(before: list[int], now: list[int]) -> int:
    """How many messages at the start two prompts have in common."""
    return next((n for n, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), min(len(before), len(now)))


def test_promise_5_a_session_evicts_rarely_and_mostly_at_the_back() -> None:
    prompts = [view.kept for _, view in growing(Evictor(1_000, SCORER, token_counter=quarter), chat(400))]
    evictions = [(before, now) for before, now in pairwise(prompts) if shared(before, now) < len(before)]
    at_the_front = [before for before, now in evictions if shared(before, now) < len(before) // 4]
    assert 0 < len(evictions) <= len(prompts) // 8
    assert len(at_the_front) <= len(evictions) // 2


def test_promise_5_prompts_cost_far_less_than_with_trimming_on_every_turn() -> None:
    prompts = [view.kept for _, view in growing(Evictor(1_000, SCORER, token_counter=quarter), chat(400))]
    trimmed = [list(range(max(0, n - 40), n)) for n in range(1, 401)]

    def price(prompts: list[list[int]]) -> float:
        """In messages: a tenth for those of the prefix that the prompt before had too."""
        return sum(len(now) - 0.9 * shared(before, now) for before, now in pairwise([[], *prompts]))

    assert price(prompts) < 0.4 * price(trimmed)


def test_promise_5_a_window_of_long_units_leaves_what_earlier_evictions_kept_its_share() -> None:
    session = Evictor(1_000, SCORER, keep_recent=4, token_counter=quarter).session()
    session.advance(chat(80))
    tenured = set(session.view().kept[:-6])  # but for the window, and what is new since the last eviction
    assert 450 < 25 * len(tenured) < 700

    # Two answers of 320 tokens would take two thirds: beside the newer one and its question the tenured stay.
    long = "word " * 252
    session.append([assistant(f"080 {long}"), human("081 " + "why? " * 5), assistant(f"082 {long}"), human("And?")])
    view = session.view()
    assert {*tenured, 81, 82, 83} <= set(view.kept)
    assert 80 not in view.kept

    # One of 900 leaves no room for them, and stays.
    session.append([assistant("084 " + "word " * 717), human("Which?")])
    view = session.view()
    assert {84, 85} <= set(view.kept)
    assert view.tokens <= 1_000


class ReadCounted(list[Any]):
    """Content blocks that count how often they are read."""

    reads = 0

    def __iter__(self) -> Iterator[Any]:
        self.reads += 1
        return super().__iter__()


def most_reads(messages: int, *, view_each: bool) -> int:
    """How often a session of so many messages reads the one it reads most."""
    history = chat(messages)
    contents = [ReadCounted([{"type": "text", "text": message["content"]}]) for message in history]
    session = Evictor(1_000, SCORER, token_counter=quarter).session()
    for message, content in zip(history, contents, strict=True):
        session.append([message | {"content": content}])
        if view_each:
            assert session.view().scores.size
    assert session.view().evicted
    return max(content.reads for content in contents)


@pytest.mark.parametrize("view_each", [True, False])
def test_promise_6_a_message_is_read_no_more_often_for_those_that_follow(view_each: bool) -> None:
    assert most_reads(300, view_each=view_each) == most_reads(100, view_each=view_each) > 0


def test_promise_6_no_token_is_counted_twice_and_no_pin_asked_twice() -> None:
    history = chat(200)
    counted, asked = Counter[str](), Counter[int]()

    def count(text: str) -> int:
        counted[text] += 1
        return quarter(text)

    def pin(message: Chat) -> bool:
        asked[id(message)] += 1
        return remember(message)

    evictor = Evictor(1_000, SCORER, token_counter=count, pin=pin)
    *_, (_, view) = growing(evictor, history)
    view.explain()
    assert set(asked.values()) == {1}
    evictor.view(history, view.state)
    assert counted == Counter(message["content"] for message in history)


@pytest.mark.parametrize("budget", [10**9, 400])
def test_promise_6_threads_that_append_at_once_lose_nothing(budget: int) -> None:
    said: dict[int, Chat] = {}

    def left(eviction: Eviction) -> None:
        said.update(zip(indexes_of(eviction.units), eviction.messages, strict=True))

    session = Evictor(budget, SCORER, token_counter=quarter, on_evict=left).session()
    session.append([human("start")])
    said_by = {thread: [f"{thread} {n}" for n in range(100)] for thread in range(4)}

    def speak(texts: list[str]) -> None:
        for text in texts:
            session.append([human(text), assistant(f"{text} done")])
            assert session.view().tokens <= budget

    threads = [threading.Thread(target=speak, args=(texts,)) for texts in said_by.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    view = session.view()
    assert bool(said) == (budget == 400)
    assert said.keys().isdisjoint(view.kept)
    said.update(zip(view.kept, view.messages, strict=True))
    assert sorted(said) == list(range(1 + 2 * 4 * 100))
    texts = [said[index]["content"] for index in sorted(said)]
    assert texts[0] == "start"
    for text, answer in zip(texts[1::2], texts[2::2], strict=True):
        assert answer == f"{text} done"
    for own in said_by.values():
        assert [text for text in texts if text in set(own)] == own


IN_VIEW = {"pinned", "recent", "opens", "fits", "tenured", "scored in"}


@many
@given(histories(least=4, most=7), evictors())
def test_promise_6_what_is_gathered_as_messages_come_is_what_deciding_afresh_gives(
    history: list[Chat], evictor: Evictor
) -> None:
    # A view that fits is put together from what was gathered before; its reasons are decided over the whole of it.
    for _, view in growing(evictor, history):
        reasons = {unit: view.reason(unit) for unit in range(len(view.units))}
        shown = {unit for unit, reason in reasons.items() if reason in IN_VIEW}
        assert view.kept == [index for unit in sorted(shown) for index in indexes_of([view.units[unit]])]
