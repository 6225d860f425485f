"""Public bug reports against trimmers and memories, each one as a test of the core; the source stands in the name."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from histories import SCORER, Chat, Facts, assistant, calling, growing, human, problems, quarter, result, shape, system

from lre_core import Evictor, Scorer, View, evict, group


def views(history: list[Chat], **settings: Any) -> Iterator[View]:
    """Views of a history at some thirty budgets, from nothing to more than enough: alone, and as a session's last."""
    total = Facts(history).cost(range(len(history)))
    for budget in range(1, total + 2, max(1, total // 30)):
        evictor = Evictor(budget, SCORER, token_counter=quarter, **settings)
        yield evictor.view(history)
        *_, (_, view) = growing(evictor, history)
        yield view


def test_langchain_33245_a_cut_never_starts_with_an_orphan_result() -> None:
    history = shape("S H AI*1 T1 H AI H AI", size=8)
    seen = set()
    for view in [*views(history), *views(history, keep_recent=0), *views(history, whole_turn=False)]:
        assert problems(view.messages) == []
        assert view.kept[0] == 0
        assert 3 not in view.kept or 2 in view.kept
        seen.add(len(view.kept))
    assert {3, 8} <= seen
    # The five messages at the end alone begin with the result: there the view begins with a human message.
    facts = Facts(history)
    budget = facts.cost({0, *range(3, 8)})
    assert evict(history, budget, scorer=SCORER, token_counter=quarter, keep_recent=6).kept == [0, 4, 5, 6, 7]


@pytest.mark.parametrize("notation", ["S H AI*1 T1 H AI H AI", "S H AI*a AI*b Tb Ta H AI"])
def test_langchain_29637_a_counter_sees_texts_in_the_order_of_the_history(notation: str) -> None:
    history = shape(notation)
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return quarter(text)

    evictor = Evictor(60, SCORER, token_counter=count)
    evictor.view(history)
    assert len(counted) == len(history)
    for text, message in zip(counted, history, strict=True):
        assert message["content"] in text


def test_langchain_26895_and_30376_an_empty_list_is_an_empty_view() -> None:
    evictor = Evictor(100, SCORER, token_counter=quarter)
    for view in (evict([], 100, scorer=SCORER), evictor.view([]), evictor.view([], {}), evictor.session().view()):
        assert (view.messages, view.kept, view.evicted, view.tokens, view.over_budget) == ([], [], [], 0, False)
        assert view.scores.shape == (0,)
        assert view.explain() == []
    assert group([]) == []
    assert SCORER.score([]).shape == (0,)
    assert SCORER.explain([]) == []


def test_langchain_26895_a_result_larger_than_the_budget_does_not_leave_only_the_system() -> None:
    history = [system("Be brief."), human("read it"), calling("a"), result("a", "x" * 40_000)]
    view = evict(history, 1_000, scorer=SCORER)
    assert (view.kept, view.over_budget) == ([0, 1, 2, 3], True)
    # Nor does a model lose the result it waits for: it would ask for it again.
    part = evict(history, 1_000, scorer=SCORER, whole_turn=False)
    assert (part.kept, part.over_budget) == ([0, 1, 2, 3], True)


def test_langchain_30376_a_lone_human_message_larger_than_the_budget_stays() -> None:
    for whole_turn in (True, False):
        view = evict([human("x" * 40_000)], 1_000, scorer=SCORER, whole_turn=whole_turn)
        assert (view.kept, view.over_budget) == ([0], True)


@pytest.mark.parametrize("notation", ["H AI*a AI*b Ta Tb", "H AI*a AI*b Tb Ta", "H AI* AI* T T"])
@pytest.mark.parametrize("after", ["", " AI", " AI H AI"])
def test_langchain_38352_two_calls_before_their_results_are_one_step(notation: str, after: str) -> None:
    history = shape(notation + after)
    step = {1, 2, 3, 4}
    outcomes = set()
    for view in [*views(history, keep_recent=0), *views(history, keep_recent=0, whole_turn=False)]:
        assert problems(view.messages) == []
        assert step & set(view.kept) in (step, set())
        outcomes.add(bool(step & set(view.kept)))
    # At the very end it stays: the model is to answer it.
    assert outcomes == ({True, False} if after else {True})


def test_langchain_34282_ten_parallel_calls_are_not_torn_by_a_window_of_six() -> None:
    ids = [f"call_{n}" for n in range(10)]
    called = [human("look"), calling(*ids), *(result(id, f"{id} found 14 books") for id in ids)]
    history = [*called, assistant("done"), human("thanks"), assistant("bye")]
    step = set(range(1, 12))
    outcomes = set()
    for view in [*views(history, keep_recent=6), *views(history, keep_recent=1)]:
        assert problems(view.messages) == []
        assert step & set(view.kept) in (step, set())
        outcomes.add(bool(step & set(view.kept)))
    assert outcomes == {True, False}
    # While the results come in, the calls wait, and nothing of them leaves.
    for prefix, view in growing(Evictor(10, SCORER, token_counter=quarter), called):
        assert view.kept == list(range(len(prefix)))


def test_langchain_34794_the_running_turn_keeps_its_thinking_block() -> None:
    thinking = {"type": "thinking", "thinking": "Two look-ups are needed. " * 20, "signature": "c2ln"}

    def step(n: int, *before: Chat) -> list[Chat]:
        use = {"type": "tool_use", "id": f"use_{n}", "name": "look_up", "input": {"n": n}}
        found = {"type": "tool_result", "tool_use_id": f"use_{n}", "content": f"14 books {n}"}
        return [{"role": "assistant", "content": [*before, use]}, {"role": "user", "content": [found]}]

    turn = [human("how many?"), *step(1, thinking), *step(2)]
    earlier = shape("H AI H AI", size=20)
    for view in views([*earlier, *turn]):
        assert view.messages[-5:] == turn
        assert view.messages[-4] is turn[1]
        assert problems(view.messages) == []


def test_langchain_39261_a_long_turn_of_large_results_has_its_human_message() -> None:
    history = shape("H AI*1 T1 AI*2 T2 AI*3 T3 AI*4 T4 AI*5 T5 AI*6 T6", size=60)
    total = Facts(history).cost(range(13))
    for view in views(history):
        assert view.kept == list(range(13))
        assert view.over_budget == (view.budget < total)
    for view in views(history, keep_recent=2, whole_turn=False):
        assert view.kept[0] == 0
        assert problems(view.messages) == []
        assert view.tokens <= view.budget or view.kept == [0, 11, 12]
    steps = Facts(history)
    roomy = evict(
        history, steps.cost({0, *range(9, 13)}), scorer=SCORER, keep_recent=2, whole_turn=False, token_counter=quarter
    )
    assert roomy.kept == [0, 9, 10, 11, 12]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_langchain_33856_the_system_message_at_the_start_stays(role: str) -> None:
    history = [system("Be brief.", role), *shape("H AI H AI*a Ta AI H AI H AI", size=12)]
    for view in [*views(history), *views(history, keep_recent=0, whole_turn=False)]:
        assert view.messages[0] is history[0]


def test_langchain_37815_a_decision_is_not_made_again_on_the_next_call() -> None:
    history = shape("S" + " H AI*a Ta AI" * 12, size=12)
    evictor = Evictor(300, SCORER, token_counter=quarter)
    session = evictor.session()
    gone: set[int] = set()
    for stop, message in enumerate(history, 1):
        session.append([message])
        view = session.view()
        assert session.view().kept == view.kept
        assert evictor.view(history[:stop], view.state).kept == view.kept
        assert not gone & set(view.kept)
        gone |= set(view.evicted)
    assert gone


@pytest.mark.parametrize("notation", ["H AI*a,b Ta Tb AI H AI", "H AI*, T T AI H AI"])
def test_langmem_126_a_parallel_pair_is_not_cut_after_its_first_result(notation: str) -> None:
    history = shape(notation, size=12)
    for view in [*views(history), *views(history, keep_recent=4), *views(history, keep_recent=0)]:
        assert problems(view.messages) == []
        assert {1, 2, 3} & set(view.kept) in ({1, 2, 3}, set())


@pytest.mark.parametrize("whole_turn", [True, False])
@pytest.mark.parametrize("notation", ["S H AI H", "S H AI*a Ta H AI*b", "H AI H AI*a Ta AI*b Tb", "H H H"])
def test_langmem_77_and_111_the_newest_human_message_is_never_swallowed(notation: str, whole_turn: bool) -> None:
    history = shape(notation, size=30)
    newest = max(index for index, message in enumerate(history) if message["role"] == "user")
    for view in [*views(history, whole_turn=whole_turn), *views(history, whole_turn=whole_turn, keep_recent=0)]:
        assert newest in view.kept


# Case 25: messages without ids, two identical messages in one history, an id used twice.


def test_case_25_identical_messages_are_told_apart_by_their_place() -> None:
    same = human("yes")
    history = [human("books?"), assistant("14 " * 40), same, assistant("ordered " * 40), same, same, assistant("done")]
    for view in [*views(history), *views(history, keep_recent=0)]:
        assert len(view.kept) + len(view.evicted) == len(history)
        assert [history[index] for index in view.kept] == view.messages
        assert {5, 6} <= set(view.kept)
        assert view.tokens == Facts(history).cost(view.kept)


def test_case_25_a_session_of_identical_messages_stays_within_budget() -> None:
    history = [human("yes"), assistant("done " * 10)] * 50
    for prefix, view in growing(Evictor(120, SCORER, token_counter=quarter), history):
        assert view.tokens <= 120
        assert view.kept[-1] == len(prefix) - 1
        assert problems(view.messages) == []


@pytest.mark.parametrize("id", ["call_0", None])
def test_case_25_an_id_used_again_or_none_at_all_pairs_by_place(id: str | None) -> None:
    steps = [message for n in range(6) for message in (calling(id, text=f"try {n}"), result(id, f"{n} books " * 9))]
    history = [human("look until you find it"), *steps, assistant("found"), human("thanks")]
    kept_steps = set()
    for view in [*views(history), *views(history, keep_recent=0)]:
        assert problems(view.messages) == []
        for first in range(1, 13, 2):
            assert (first in view.kept) == (first + 1 in view.kept)
        kept_steps.add(len(view.kept))
    assert len(kept_steps) > 4


# Case 26: a history handed over from another provider.

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 1_000}}
FOREIGN: list[Chat] = [
    {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
    {"role": "user", "content": [{"type": "text", "text": "What is this?"}, PICTURE]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot say who that is."}]},
    {"role": "user", "content": ["Then count", {"type": "input_text", "text": "the books."}]},
    {"role": "assistant", "content": None, "function_call": {"name": "count", "arguments": '{"of": "books"}'}},
    {"role": "function", "name": "count", "content": "14"},
    {"role": "model", "content": "Fourteen."},
    {"role": "human", "content": "And pages?"},
    {"role": "ai", "content": None, "tool_calls": [{"id": "a", "name": "count", "args": {"of": "pages"}}]},
    {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "3022"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "count", "input": {"of": "words"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": None}]},
    {"role": "assistant", "content": None},
    {"role": "user", "content": None},
]


def test_case_26_a_history_of_many_providers_is_read_and_kept_whole() -> None:
    before = json.dumps(FOREIGN)
    kinds = [(unit.start, unit.stop, unit.role, unit.complete) for unit in group(FOREIGN)]
    assert kinds == [
        (0, 1, "system", True),
        (1, 2, "human", True),
        (2, 3, "assistant", True),
        (3, 4, "human", True),
        (4, 6, "assistant", True),
        (6, 7, "assistant", True),
        (7, 8, "human", True),
        (8, 10, "assistant", True),
        (10, 12, "assistant", True),
        (12, 13, "assistant", True),
        (13, 14, "human", True),
    ]
    roomy = evict(FOREIGN, 10_000, scorer=SCORER)
    assert all(message is foreign for message, foreign in zip(roomy.messages, FOREIGN, strict=True))
    for view in [*views(FOREIGN), *views(FOREIGN, keep_recent=0, whole_turn=False)]:
        assert {0, 13} <= set(view.kept)
        assert (4 in view.kept, 8 in view.kept, 10 in view.kept) == (5 in view.kept, 9 in view.kept, 11 in view.kept)
        assert view.tokens <= view.budget or view.kept == [0, 13]
    assert json.dumps(FOREIGN) == before


def test_case_26_a_picture_costs_what_is_billed_and_not_its_base64_text() -> None:
    text_only = {"role": "user", "content": [{"type": "text", "text": "What is this?"}]}
    with_picture, without = (evict([message], 10_000, scorer=SCORER) for message in (FOREIGN[1], text_only))
    assert 85 <= with_picture.tokens - without.tokens <= 1_600


def test_case_26_a_call_the_provider_answers_itself_waits_for_nothing() -> None:
    searched = [
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "books"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"title": "Books", "url": "b.io"}]},
        {"type": "text", "text": "There are 14."},
    ]
    history = [human("how many?"), {"role": "assistant", "content": searched}, human("thanks"), assistant("bye")]
    assert [unit.complete for unit in group(history)] == [True] * 4
    assert evict(history, 10_000, scorer=SCORER).kept == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["agent", "assistant"])
def test_case_26_every_message_is_scored_by_the_bundled_scorers(name: str) -> None:
    scores = Scorer.from_pretrained(name).score(FOREIGN)
    assert scores.shape == (11,)
    assert np.isfinite(scores).all()
    assert ((scores > 0) & (scores < 1)).all()
