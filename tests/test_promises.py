"""What eviction promises, 1 to 4, over generated histories: whole ones, broken ones, and far too large ones."""

import copy

import numpy as np
import pytest
from histories import (
    SCORER,
    Chat,
    Facts,
    assistant,
    evictors,
    growing,
    histories,
    human,
    indexes,
    problems,
    quarter,
    result,
    same,
    system,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lre_core import Evictor, View, evict, group

many = settings(max_examples=500)

ROOMY = 10**9


def assert_verbatim(history: list[Chat], view: View) -> None:
    assert all(message is history[index] for message, index in zip(view.messages, view.kept, strict=True))
    assert view.kept == sorted(set(view.kept))
    assert sorted(view.kept + view.evicted) == list(range(len(history)))


@many
@given(histories(most=7), evictors())
def test_promise_1_a_view_holds_the_callers_own_messages_unchanged(history: list[Chat], evictor: Evictor) -> None:
    before = copy.deepcopy(history)
    view = evictor.view(history)
    assert_verbatim(history, view)
    for prefix, grown in growing(evictor, history):
        assert_verbatim(prefix, grown)
    view.explain()
    assert history == before


def test_promise_1_what_the_caller_does_with_a_view_changes_no_later_one() -> None:
    history = [human("hello"), assistant("hi"), human("order 14 books")]
    session = Evictor(ROOMY, token_counter=quarter).session()
    session.append(history)
    session.view().messages.clear()
    history.pop()
    session.append([assistant("done")])
    assert [message["content"] for message in session.view().messages] == ["hello", "hi", "order 14 books", "done"]


def assert_within_budget(history: list[Chat], evictor: Evictor, view: View) -> None:
    facts = Facts(history, evictor)
    pinned = facts.pinned(evictor)
    assert pinned <= set(view.kept)
    assert view.tokens == facts.cost(view.kept)
    assert view.over_budget == (view.tokens > view.budget)
    if view.over_budget and facts.human:
        opening = next(index for index in view.kept if index not in facts.systems)
        assert set(view.kept) - pinned - facts.open <= {opening}
        assert facts.cost(pinned | facts.open | {opening}) > view.budget


@many
@given(histories(), evictors(), st.sampled_from([0, 0, 20, 200]))
def test_promise_2_a_view_fits_the_budget_or_is_the_pinned_part(
    history: list[Chat], evictor: Evictor, reserved: int
) -> None:
    view = evictor.view(history, reserved=reserved)
    assert view.budget == evictor.budget - reserved
    assert_within_budget(history, evictor, view)


@many
@given(histories(least=4), evictors())
def test_promise_2_a_session_stays_within_budget_at_every_message(history: list[Chat], evictor: Evictor) -> None:
    for prefix, view in growing(evictor, history):
        assert_within_budget(prefix, evictor, view)


@many
@given(histories(least=4), evictors(), st.sampled_from([[0, 50], [0, 0, 400], [200, 0, 0, 0, 20]]))
def test_promise_2_a_session_keeps_to_what_is_left_beside_the_reserved(
    history: list[Chat], evictor: Evictor, reserved: list[int]
) -> None:
    session = evictor.session()
    for index, message in enumerate(history):
        session.append([message])
        view = session.view(reserved[index % len(reserved)])
        assert view.budget == evictor.budget - reserved[index % len(reserved)]
        assert_within_budget(history[: index + 1], evictor, view)


@many
@given(histories(), evictors(budget_scope="history"))
def test_promise_2_in_scope_history_the_budget_covers_what_is_older_than_the_window(
    history: list[Chat], evictor: Evictor
) -> None:
    facts = Facts(history, evictor)
    window = indexes(facts.units[max(0, len(facts.units) - evictor.keep_recent) :])
    for view in (evictor.view(history), evictor.view(history, {})):
        assert window & facts.sendable <= set(view.kept)
        older = set(view.kept) - window - facts.systems
        assert view.over_budget == (facts.cost(older) > evictor.budget)
        if view.over_budget and facts.human:
            assert older - facts.pinned(evictor) <= {min(set(view.kept) - facts.systems)}


@many
@given(histories(), evictors(pin=None))
def test_promise_2_the_recent_window_stays_while_it_fits(history: list[Chat], evictor: Evictor) -> None:
    facts = Facts(history, evictor)
    kept, pinned = set(evictor.view(history).kept), facts.pinned(evictor)
    # A human message may have to come along to open the view: whichever it is, there is room for it here.
    opener = max((facts.cost([unit.start]) for unit in facts.units if unit.role == "human"), default=0)
    room = evictor.budget - facts.cost(pinned) - opener
    for unit in facts.units[: -evictor.keep_recent - 1 : -1]:
        members = indexes([unit]) & facts.sendable - pinned
        room -= facts.cost(members)
        assert room < 0 or members <= kept


@many
@given(histories(most=6), evictors(keep_recent=0, pin=None, keep_tools=(), whole_turn=True))
def test_promise_2_no_other_choice_that_fits_scores_higher(history: list[Chat], evictor: Evictor) -> None:
    facts = Facts(history, evictor)
    pinned = facts.pinned(evictor)
    assume(facts.human and facts.cost(pinned) <= evictor.budget)
    view = evictor.view(history)
    free = [unit for unit, members in enumerate(facts.units) if members.start in facts.sendable - pinned]

    def may_be_sent(chosen: list[int]) -> bool:
        members = indexes(facts.units[unit] for unit in chosen)
        opens = not chosen or facts.units[chosen[0]].role == "human"
        return opens and facts.cost(pinned | members) <= evictor.budget

    def worth(chosen: list[int]) -> float:
        return float(view.scores[chosen].sum())

    subsets = ([unit for bit, unit in enumerate(free) if number >> bit & 1] for number in range(2 ** len(free)))
    best = max(worth(chosen) for chosen in subsets if may_be_sent(chosen))
    assert worth([unit for unit in free if facts.units[unit].start in view.kept]) == pytest.approx(best)


@pytest.mark.parametrize("whole_turn", [True, False])
@pytest.mark.parametrize("turns", [1, 10])
def test_promise_2_without_a_human_message_the_budget_still_holds(whole_turn: bool, turns: int) -> None:
    history = [system("Be brief."), *(assistant(f"{turn} " + "books " * 60) for turn in range(turns))]
    view = evict(history, 250, scorer=SCORER, token_counter=quarter, whole_turn=whole_turn)
    assert view.tokens <= 250
    tight = evict(history, 10, scorer=SCORER, token_counter=quarter, whole_turn=whole_turn)
    assert (tight.kept, tight.over_budget) == ([0, turns], True)


@pytest.mark.parametrize("text", ["order 14 " * 120_000, "x" * 1_000_000, "注文は明日" * 200_000, "\n" * 1_000_000])
def test_promise_2_a_message_of_a_megabyte_is_counted_and_left_out_or_pinned(text: str) -> None:
    history = [human("hello"), assistant(text), human("thanks"), assistant("bye"), human("still there?")]
    view = evict(history, 2_000, scorer=SCORER)
    assert (view.kept, view.over_budget) == ([0, 2, 3, 4], False)
    alone = evict([human(text)], 2_000, scorer=SCORER)
    assert (alone.kept, alone.over_budget) == ([0], True)
    assert alone.tokens > 2_000


LARGE = [human("order 14 " * 120_000), assistant("x" * 1_000_000), result("call_1", "注文は明日" * 200_000)]


def assert_valid(history: list[Chat], evictor: Evictor, view: View, alive: set[int]) -> None:
    """A provider takes the view, unless of what has not left before (`alive`) nothing could be sent at all."""
    facts = Facts(history, evictor)
    kept = set(view.kept)
    assert facts.systems <= kept
    assert kept - facts.systems or facts.systems == set(range(len(history)))
    if facts.sendable & alive - facts.systems:
        assert problems(view.messages, human_first=facts.human) == []
        assert not kept & facts.refused


@many
@given(histories(), evictors())
def test_promise_3_a_provider_accepts_the_view(history: list[Chat], evictor: Evictor) -> None:
    assert_valid(history, evictor, evictor.view(history), set(range(len(history))))


@many
@given(histories(least=4, most=8), evictors())
def test_promise_3_a_provider_accepts_every_view_of_a_session(history: list[Chat], evictor: Evictor) -> None:
    before: list[int] = []
    for prefix, view in growing(evictor, history):
        assert_valid(prefix, evictor, view, {*before, len(prefix) - 1})
        before = view.kept


@settings(max_examples=60)
@given(histories(most=5), evictors(), st.sampled_from(LARGE), st.integers(0, 20))
def test_promises_1_to_3_hold_with_a_message_of_a_megabyte_anywhere(
    history: list[Chat], evictor: Evictor, large: Chat, at: int
) -> None:
    history.insert(at % (len(history) + 1), large)
    before: list[int] = []
    for prefix, view in growing(evictor, history):
        assert_verbatim(prefix, view)
        assert_within_budget(prefix, evictor, view)
        assert_valid(prefix, evictor, view, {*before, len(prefix) - 1})
        before = view.kept


@many
@given(histories(most=7), evictors())
def test_promise_3_a_step_is_whole_or_absent(history: list[Chat], evictor: Evictor) -> None:
    for prefix, view in growing(evictor, history):
        for unit in group(prefix):
            members = indexes([unit])
            assert members & set(view.kept) in (members, set())


@many
@given(histories(most=7), evictors(whole_turn=True))
def test_promise_3_the_current_turn_is_untouched(history: list[Chat], evictor: Evictor) -> None:
    for view in (evictor.view(history), evictor.view(history, {})):
        assert Facts(history, evictor).turn <= set(view.kept)


@many
@given(histories(), st.sampled_from([0, 5]), st.booleans())
def test_promise_3_nothing_a_provider_accepts_is_left_out_while_it_fits(
    history: list[Chat], keep_recent: int, whole_turn: bool
) -> None:
    evictor = Evictor(ROOMY, SCORER, keep_recent, token_counter=quarter, whole_turn=whole_turn)
    facts = Facts(history)
    whole = not problems([*history, human("and then?")], human_first=False)
    expected = set(range(len(history))) - facts.greeting if whole else facts.sendable
    view = evictor.view(history)
    assert view.kept == sorted(expected) or not expected - facts.systems
    *_, (_, grown) = growing(evictor, history)
    assert grown.kept == view.kept


@many
@given(histories(), evictors())
def test_promise_3_a_view_of_a_view_is_the_same(history: list[Chat], evictor: Evictor) -> None:
    view = evictor.view(history)
    again = evictor.view(view.messages)
    assert again.kept == list(range(len(view.messages)))
    assert again.tokens == view.tokens


@pytest.mark.parametrize("keep_recent", [0, 5])
@pytest.mark.parametrize("whole_turn", [True, False])
@pytest.mark.parametrize(
    "history",
    [
        [system("Be brief."), result("a", "14 books")],
        [result("a", "14 books"), system("Be brief.")],
        [result("a", "14 books"), result("a", "15 books")],
        [system("Be brief."), assistant("hello " * 50)],
    ],
    ids=["S T", "T S", "T T", "S AI"],
)
def test_promise_3_a_view_is_never_empty_nor_only_the_systems(
    history: list[Chat], whole_turn: bool, keep_recent: int
) -> None:
    evictor = Evictor(5, SCORER, keep_recent, token_counter=quarter, whole_turn=whole_turn)
    for view in (evictor.view(history), evictor.view(history, {})):
        assert any(message["role"] != "system" for message in view.messages)
        assert Facts(history).systems <= set(view.kept)


@many
@given(histories(most=4), evictors(), st.integers(1, 3))
def test_promise_4_a_session_scores_every_prefix_as_a_fresh_start_does(
    history: list[Chat], evictor: Evictor, stride: int
) -> None:
    session = evictor.session()
    for start in range(0, len(history), stride):
        prefix = history[: start + stride]
        session.append(history[start : start + stride])
        view = session.view()
        assert list(view.units) == group(prefix)
        unscored = np.isnan(view.scores)
        assert {unit.start for unit, skipped in zip(view.units, unscored, strict=True) if skipped} <= Facts(prefix).open
        fresh = evictor.view(prefix).scores if unscored.any() else SCORER.score(prefix)
        np.testing.assert_allclose(view.scores, fresh, rtol=1e-9)


@many
@given(histories(most=5), evictors(), st.integers(1, 12))
def test_promise_4_a_view_knows_nothing_of_what_came_after_it(
    history: list[Chat], evictor: Evictor, moment: int
) -> None:
    prefix = history[:moment]
    session = evictor.session()
    session.append(prefix)
    view = session.view()
    session.append(history[moment:])
    session.view()
    expected = evictor.view(prefix, {})
    assert same(view, expected)
    assert view.explain() == expected.explain()
    np.testing.assert_array_equal(view.scores, expected.scores)
