"""What can be set, and what is said of a setting that is wrong."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import SCORER, Chat, assistant, calling, human, quarter, result, system

from lre_core import Evictor, InvalidSetting, LREError, Message, evict

RUN: list[Chat] = [
    system("Be brief."),
    human("sign me in and look for books"),
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "sign_in"}}]},
    result("a", "session tk-77f1 " * 5),
    {"role": "assistant", "content": None, "tool_calls": [{"id": "b", "function": {"name": "search"}}]},
    result("b", "14 books " * 9),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "search"}}, {"id": "d", "function": {"name": "look_up"}}],
    },
    result("c", "3 books " * 9),
    result("d", "page 12 " * 9),
    assistant("Found some."),
    human("thanks"),
]
SIGN_IN, SEARCH, BOTH = [2, 3], [4, 5], [6, 7, 8]


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("budget", 1.5, "whole number of tokens, 1 or more"),
        ("budget", 2048.0, "whole number of tokens, 1 or more"),
        ("budget", True, "whole number of tokens, 1 or more"),
        ("budget", "2048", "whole number of tokens, 1 or more"),
        ("budget", None, "whole number of tokens, 1 or more"),
        ("budget", 0, "whole number of tokens, 1 or more"),
        ("budget", -5, "whole number of tokens, 1 or more"),
        ("budget", math.nan, "whole number of tokens, 1 or more"),
        ("keep_recent", -1, "whole number of units, 0 or more"),
        ("keep_recent", None, "whole number of units, 0 or more"),
        ("keep_recent", 2.5, "whole number of units, 0 or more"),
        ("message_overhead", -3, "whole number of tokens, 0 or more"),
        ("budget_scope", "prompt", "'view' or 'history'"),
        ("budget_scope", ["view"], "'view' or 'history'"),
        ("whole_turn", "no", "True or False"),
        ("whole_turn", 1, "True or False"),
        ("scorer", 3, "a Scorer, its name or its path, or 'auto'"),
        ("scorer", None, "a Scorer, its name or its path, or 'auto'"),
        ("token_counter", 4, "an encoding's name, or a callable from text to tokens"),
        ("token_counter", "o300k", "no tiktoken encoding 'o300k'"),
        ("pin", "msg_1", "a collection of message ids, or a callable"),
        ("pin", 7, "a collection of message ids, or a callable"),
        ("pin", [1, 2], "a collection of message ids, or a callable"),
        ("keep_tools", "sign_in", "a collection of tools' names"),
        ("keep_tools", None, "a collection of tools' names"),
        ("exclude_tools", [None], "a collection of tools' names"),
        ("reader", "langchain", "a callable from a message to a lre_core.Message, or None"),
        ("note", "left out", "True, None, or a callable"),
        ("note", lambda messages, tokens: {"role": "system", "content": "left out"}, "it must be a human one"),
        ("on_evict", "print", "a callable that takes an Eviction, or None"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(setting: str, value: Any, expected: str) -> None:
    settings: dict[str, Any] = {"budget": 100, "token_counter": quarter} | {setting: value}
    with pytest.raises(InvalidSetting) as raised:
        Evictor(**settings)
    assert setting in str(raised.value) or "o300k" in str(raised.value)
    assert expected in str(raised.value)
    assert isinstance(raised.value, LREError | ValueError)


def test_a_tool_cannot_be_both_kept_and_excluded() -> None:
    with pytest.raises(InvalidSetting, match="both name 'search'"):
        Evictor(100, keep_tools=["sign_in", "search"], exclude_tools={"search"})


def test_numpy_integers_are_whole_numbers_and_state_stays_plain_json() -> None:
    evictor = Evictor(np.int64(40), SCORER, np.int32(1), token_counter=lambda text: np.int64(len(text)))  # type: ignore[arg-type,return-value]
    view = evictor.view([human("hello " * 9), assistant("hi " * 9), human("books?")], {}, reserved=np.int16(3))  # type: ignore[arg-type]
    assert (type(evictor.budget), type(view.budget), type(view.tokens)) == (int, int, int)
    assert json.loads(json.dumps(view.state)) == view.state


@pytest.mark.parametrize("reserved", [-1, 2.5, None, "20", True])
def test_a_reserve_is_a_whole_number_of_tokens(reserved: Any) -> None:
    evictor = Evictor(100, SCORER, token_counter=quarter)
    for ask in (evictor.session().view, lambda reserved: evictor.view([human("hi")], reserved=reserved)):
        with pytest.raises(InvalidSetting, match=r"reserved is .*; it must be a whole number of tokens, 0 or more"):
            ask(reserved)


@pytest.mark.parametrize("counter", ["token_counter", "message_counter"])
@pytest.mark.parametrize("tokens", [2.5, None, -1, "4", [1, 2], True])
def test_a_counter_that_gives_no_number_of_tokens_is_named_and_no_message_is_added(tokens: Any, counter: str) -> None:
    wrong = False

    def count(given: Any) -> Any:
        return tokens if wrong else len(given)

    session = Evictor(100, SCORER, **{counter: count}).session()  # type: ignore[arg-type]
    session.append([human("hello")])
    wrong = True
    with pytest.raises(InvalidSetting, match=rf"what {counter} gave is .*; it must be a whole number of tokens"):
        session.append([assistant("hi"), human("books?")])
    wrong = False
    session.append([assistant("done")])
    assert [message["content"] for message in session.view().messages] == ["hello", "done"]


def test_a_message_counter_may_give_numpys_whole_numbers() -> None:
    def count(message: Chat) -> Any:
        return np.int64(7)

    view = Evictor(100, SCORER, message_counter=count).view([human("hello"), assistant("hi")])
    assert (type(view.tokens), view.tokens) == (int, 14)


def test_a_pin_that_raises_adds_no_message() -> None:
    def pin(message: Chat) -> bool:
        return bool(message["pinned"])

    session = Evictor(100, SCORER, token_counter=quarter, pin=pin).session()
    session.append([human("hello") | {"pinned": True}])
    with pytest.raises(KeyError):
        session.append([assistant("hi") | {"pinned": False}, human("books?")])
    assert session.view().kept == [0]


STATE = {"version": 1, "messages": 4, "kept": [[0, 1], [2, 4]], "digest": "00ff"}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ([], "state is list"),
        ("", "state is str"),
        (json.dumps(STATE), "state is str"),
        (7, "state is int"),
        ({"messages": 4}, "state version None"),
        (STATE | {"version": 99}, "state version 99"),
        (STATE | {"messages": "4"}, "damaged state: messages is '4'"),
        (STATE | {"messages": -4}, "damaged state: messages is -4"),
        (STATE | {"messages": True}, "damaged state: messages is True"),
        (STATE | {"digest": None}, "damaged state: messages is 4 and digest None"),
        (STATE | {"kept": None}, "damaged state: None among what is kept"),
        (STATE | {"kept": "all"}, "damaged state: 'all' among what is kept"),
        (STATE | {"kept": [[0, 1], [2]]}, "damaged state: [2] among what is kept"),
        (STATE | {"kept": [[0, 1.5]]}, "damaged state: [0, 1.5] among what is kept"),
        (STATE | {"kept": [[0, 2], [1, 4]]}, "damaged state: [1, 4] is out of place"),
        (STATE | {"kept": [[2, 2]]}, "damaged state: [2, 2] is out of place"),
        (STATE | {"kept": [[2, 9]]}, "damaged state: [2, 9] is out of place among stretches of 4 messages"),
        ({key: value for key, value in STATE.items() if key != "kept"}, "damaged state: None among what is kept"),
    ],
)
def test_a_state_that_is_none_or_damaged_is_refused_at_once(state: Any, said: str) -> None:
    evictor = Evictor(100, SCORER, token_counter=quarter)
    hi = [human("hi")]
    for resume in (evictor.session, lambda state: evictor.view(hi, state), lambda state: evictor.resumes(hi, state)):
        with pytest.raises(InvalidSetting) as raised:
            resume(state)
        assert said in str(raised.value)


def kept(budget: int, history: list[Chat] = RUN, **settings: Any) -> list[int]:
    """What a session shows of the run."""
    return Evictor(budget, SCORER, 0, token_counter=quarter, **settings).view(history, {}).kept


def test_a_pin_by_id_keeps_the_message_and_the_rest_of_its_step() -> None:
    marked = [message | {"id": f"msg_{index}"} for index, message in enumerate(RUN)]
    assert 3 not in kept(60, marked)
    assert kept(60, marked, pin=["msg_3"]) == [0, 1, 2, 3, 10]
    assert kept(60, marked, pin={"msg_9": "as a key"}) == [0, 1, 9, 10]
    assert kept(60, marked, pin=["msg_99"]) == kept(60, marked)


def test_a_message_without_an_id_is_pinned_by_its_key() -> None:
    key = Message("tool", RUN[3]["content"], tool_call_id="a").key
    assert kept(60, pin=frozenset([key])) == [0, 1, 2, 3, 10]
    # One that has an id goes by that alone.
    assert 3 not in kept(60, [message | {"id": "x"} for message in RUN], pin=[key])


class Said:
    """A message of another framework."""

    def __init__(self, role: str, text: str, **ids: str) -> None:
        self.role, self.text = role, text
        vars(self).update(ids)


@pytest.mark.parametrize("name", ["id", "id_"])
def test_an_object_read_by_a_reader_is_pinned_by_its_id(name: str) -> None:
    def read(said: Said) -> Message:
        return Message(said.role, said.text)

    history = [Said("user", "books? " * 9), Said("assistant", "14 " * 30, **{name: "run-1"}), Said("user", "thanks")]
    settings: dict[str, Any] = {"scorer": SCORER, "keep_recent": 0, "token_counter": quarter, "reader": read}
    assert Evictor(20, **settings).view(history).kept == [2]
    assert Evictor(20, pin=["run-1"], **settings).view(history).kept == [0, 1, 2]


def test_a_step_that_calls_any_tool_to_keep_is_pinned() -> None:
    assert kept(60, keep_tools=["sign_in"]) == [0, 1, *SIGN_IN, 10]
    assert kept(60, keep_tools=["look_up"]) == [0, 1, *BOTH, 10]
    assert kept(60, keep_tools=["delete"]) == kept(60)


@pytest.mark.parametrize("whole_turn", [True, False])
def test_a_step_of_nothing_but_excluded_tools_is_out_of_view_whatever_fits(whole_turn: bool) -> None:
    without = [index for index in range(len(RUN)) if index not in SEARCH]
    assert kept(10_000, exclude_tools=["search"], whole_turn=whole_turn) == without
    assert kept(10_000, exclude_tools=["search", "look_up"], whole_turn=whole_turn) == [0, 1, *SIGN_IN, 9, 10]


def test_the_model_sees_the_result_of_an_excluded_tool_once() -> None:
    session = Evictor(10_000, SCORER, token_counter=quarter, exclude_tools=["search"], whole_turn=False).session()
    seen = []
    for message in RUN:
        session.append([message])
        seen.append(session.view().kept)
    assert seen[4] == [0, 1, 2, 3, 4]
    assert seen[5] == [0, 1, 2, 3, 4, 5]
    assert seen[6] == [0, 1, 2, 3, 6]


def test_with_the_whole_turn_an_excluded_step_stays_until_the_next_turn() -> None:
    session = Evictor(10_000, SCORER, token_counter=quarter, exclude_tools=["search"]).session()
    session.append(RUN[:-1])
    assert session.view().kept == list(range(10))
    session.append(RUN[-1:])
    assert session.view().kept == [0, 1, 2, 3, 6, 7, 8, 9, 10]
    assert [row["reason"] for row in session.view().explain()][3] == "excluded"


def test_a_pinned_step_of_an_excluded_tool_stays() -> None:
    def pin(message: Chat) -> bool:
        return message.get("tool_call_id") == "b"

    assert set(SEARCH) <= set(kept(10_000, exclude_tools=["search"], pin=pin))


def test_a_history_of_excluded_steps_only_is_not_an_empty_view() -> None:
    steps = [message for n in range(3) for message in (calling(f"{n}"), result(f"{n}", "14 books"))]
    assert evict(steps, 1_000, scorer=SCORER, token_counter=quarter, exclude_tools=["look_up"]).kept == [4, 5]


def test_a_path_that_is_no_text_is_refused_with_what_to_give(tmp_path: Path) -> None:
    SCORER.save(tmp_path / "scorer.json")
    with pytest.raises(InvalidSetting, match=r"its path"):
        Evictor(100, scorer=tmp_path / "scorer.json")  # type: ignore[arg-type]
    saved = Evictor(100, scorer=str(tmp_path / "scorer.json"), token_counter=quarter)
    np.testing.assert_array_equal(saved.view(RUN).scores, evict(RUN, 100, scorer=SCORER, token_counter=quarter).scores)
