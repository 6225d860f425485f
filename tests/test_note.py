"""A note says how much was left out: valid, counted, and still between evictions. Off by default."""

from itertools import pairwise
from typing import Any

import pytest
from histories import (
    SCORER,
    Chat,
    Facts,
    assistant,
    growing,
    histories,
    human,
    problems,
    quarter,
    result,
    shape,
    system,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from lre_core import Evictor, InvalidSetting, Message, View, evict


def brief(messages: int, tokens: int) -> Chat:
    return human(f"({messages} left out, {tokens} tokens)")


def noting(budget: int, **more: Any) -> Evictor:
    settings: dict[str, Any] = {"token_counter": quarter, "note": brief, "keep_recent": 1}
    return Evictor(budget, SCORER, **settings | more)


def without_note(view: View) -> list[Chat]:
    return [message for message in view.messages if message is not view.note]


def chat(messages: int) -> list[Chat]:
    return [system("Be brief."), *((human, assistant)[n % 2](f"{n:03} " + "word " * 16) for n in range(messages))]


def test_no_note_is_there_unless_asked_for_nor_before_anything_left() -> None:
    history = chat(40)
    assert evict(history, 300, scorer=SCORER, token_counter=quarter).note is None
    assert noting(300, note=False).view(history).messages == noting(300, note=None).view(history).messages
    session = noting(10_000).session()
    session.append(history)
    assert session.view().note is None
    assert session.view().messages == history


@pytest.mark.parametrize("state", [None, {}])
def test_the_note_tells_how_many_messages_and_tokens_left_and_is_counted(state: dict[str, Any] | None) -> None:
    history = chat(40)
    view = noting(300).view(history, state)
    left = Facts(history).cost(view.evicted)
    assert view.note == brief(len(view.evicted), left)
    assert view.tokens == Facts(history).cost(view.kept) + quarter(view.note["content"]) + 3 <= 300
    assert without_note(view) == [history[index] for index in view.kept]
    assert sum(message is view.note for message in view.messages) == 1


def test_the_note_of_a_chat_is_the_users_one_line() -> None:
    view = noting(300, note=True).view(chat(40))
    assert view.note["role"] == "user"
    assert "\n" not in view.note["content"]
    assert f"left out here: {len(view.evicted)} (" in view.note["content"]


def test_the_note_stands_where_the_newest_of_what_left_stood() -> None:
    history = chat(40)
    view = noting(300).view(history)
    at = view.messages.index(view.note)
    assert view.kept[:at] == [index for index in view.kept if index < view.evicted[-1]]
    assert view.kept[at] == view.evicted[-1] + 1


def test_between_evictions_the_prompt_only_grows_at_its_end() -> None:
    views = [view for _, view in growing(noting(1_000), chat(300))]
    kept_on = [(a, b) for a, b in pairwise(views) if a.state == b.state]
    assert 200 < len(kept_on) < 299
    for before, after in kept_on:
        assert after.messages[: len(before.messages)] == before.messages
    noted = [view for view in views if view.note is not None]
    assert len({view.note["content"] for view in noted}) == len(views) - 1 - len(kept_on)


def test_a_note_does_not_part_a_system_message_from_the_one_before_it() -> None:
    history = [system("Be brief."), human("hello " * 80), assistant("hi " * 80), system("It is May."), human("books?")]
    view = noting(60).view(history)
    assert (view.kept, [message["role"] for message in view.messages]) == (
        [0, 3, 4],
        ["system", "system", "user", "user"],
    )


def test_a_note_never_stands_as_the_message_to_answer() -> None:
    history = shape("H AI*1 T1", size=60)
    view = noting(60, keep_recent=0, whole_turn=False).view(history)
    assert (view.kept, view.note) == ([0], None)


def test_a_note_gives_way_to_what_is_pinned() -> None:
    history = [human("a " * 40), assistant("b " * 40), human("c " * 40)]
    needed = Facts(history).cost([2])
    roomy, tight = noting(needed + 12).view(history), noting(needed + 2).view(history)
    assert (roomy.kept, tight.kept) == ([2], [2])
    assert (roomy.note, tight.note) == (brief(2, Facts(history).cost([0, 1])), None)
    assert not roomy.over_budget
    assert not tight.over_budget


def test_a_note_beside_a_reader_is_made_in_the_readers_own_form() -> None:
    def read(text: str) -> Message:
        role, said = text.split(": ", 1)
        return Message(role, said)

    history = ["user: books? " * 9, "assistant: 14 " * 30, "user: thanks"]
    evictor = noting(40, reader=read, note=lambda messages, tokens: f"user: ({messages} left out)", keep_recent=0)
    assert evictor.view(history).messages == ["user: (2 left out)", "user: thanks"]
    with pytest.raises(InvalidSetting, match="beside a reader give a callable"):
        noting(40, reader=read, note=True)


NOTING = [
    noting(budget, keep_recent=keep_recent, whole_turn=whole_turn, exclude_tools=excluded)
    for budget in (500, 250, 120, 60, 30)
    for keep_recent in (0, 2)
    for whole_turn in (True, False)
    for excluded in ((), ("search",))
]


@settings(max_examples=500)
@given(histories(least=4, most=8), st.sampled_from(NOTING))
def test_promises_1_to_5_hold_with_a_note(history: list[Chat], evictor: Evictor) -> None:
    before: list[int] = []
    state: dict[str, Any] = {}
    for prefix, view in growing(evictor, history):
        facts = Facts(prefix, evictor)
        assert all(a is b for a, b in zip(without_note(view), map(prefix.__getitem__, view.kept), strict=True))
        note = facts.cost([]) if view.note is None else quarter(view.note["content"]) + 3
        assert view.tokens == facts.cost(view.kept) + note
        assert view.tokens <= view.budget or view.note is None
        if facts.sendable & {*before, len(prefix) - 1} - facts.systems:
            assert problems(view.messages, human_first=facts.human) == []
        chained = evictor.view(prefix, state)
        assert (chained.messages, chained.kept, chained.tokens) == (view.messages, view.kept, view.tokens)
        before, state = view.kept, chained.state


def test_a_step_is_not_parted_by_a_note() -> None:
    history = shape("S H AI*a,b Ta Tb AI*c Tc AI*d Td H AI*e Te", size=12)
    for budget in range(40, 400, 7):
        for view in (noting(budget, whole_turn=False).view(history), noting(budget).view(history, {})):
            assert problems(view.messages) == []
    assert noting(150, whole_turn=False).view([*history, result("x", "orphan"), human("go on")]).note is not None
