"""Reading messages: every form a provider has for the same thing, and every form that is refused by name."""

import copy
import json
from typing import Any

import numpy as np
import pytest
from histories import SCORER, Chat, answers_of, assistant, calling, calls_of, histories, human, quarter, result
from hypothesis import given

from lre_core import Evictor, InvalidMessage, LREError, Message, ToolCall
from lre_core.messages import as_message, as_messages


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("system", "system"),
        ("developer", "system"),
        ("user", "human"),
        ("human", "human"),
        ("assistant", "assistant"),
        ("ai", "assistant"),
        ("model", "assistant"),
        ("tool", "tool"),
        ("function", "tool"),
    ],
)
def test_a_role_is_of_one_of_four_kinds(role: str, kind: str) -> None:
    assert as_message({"role": role, "content": "14 books"}).kind == kind


def test_a_user_message_with_tool_results_is_a_tools() -> None:
    found = {"type": "tool_result", "tool_use_id": "a", "content": "14"}
    message = as_message(
        {"role": "user", "content": [{"type": "text", "text": "here"}, found, found | {"tool_use_id": "b"}]}
    )
    assert (message.kind, message.answers) == ("tool", ("a", "b"))


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("14 books", "14 books"),
        ("", ""),
        (None, ""),
        ([], ""),
        (["14", "books"], "14\nbooks"),
        (("14", "books"), "14\nbooks"),
        ([{"type": "text", "text": "14"}, {"type": "input_text", "text": "books"}], "14\nbooks"),
        ([{"type": "refusal", "refusal": "I cannot"}], "I cannot"),
        ([{"type": "thinking", "thinking": "Count them.", "signature": "c2ln"}], "Count them."),
        ([{"type": "tool_result", "tool_use_id": "a", "content": "14"}], "14"),
        ([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "14"}]}], "14"),
        ([{"type": "tool_result", "tool_use_id": "a"}], ""),
        ([{"type": "function_call_output", "call_id": "a", "output": "14"}], "14"),
        ([{"type": "tool_use", "id": "a", "name": "count", "input": {"of": "books"}}, "14"], "14"),
        ([{"type": "image_url", "image_url": {"url": "data:;base64,aGk="}}, "14"], "14"),
    ],
)
def test_the_text_of_a_message_is(content: Any, text: str) -> None:
    assert as_message({"role": "user", "content": content}).text == text


def test_a_block_of_an_unknown_kind_keeps_its_text_for_counting() -> None:
    message = as_message({"role": "user", "content": [{"type": "citation", "source": "Buch über Wörter"}]})
    assert "Buch über Wörter" in message.text


COUNT = ToolCall("count", '{"of": "books"}', "a")


@pytest.mark.parametrize(
    "fields",
    [
        {
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "count", "arguments": '{"of": "books"}'}}
            ]
        },
        {"tool_calls": [{"id": "a", "name": "count", "args": {"of": "books"}}]},
        {"tool_calls": [{"id": "a", "function": {"name": "count", "arguments": {"of": "books"}}}]},
        {"tool_calls": (COUNT,)},
        {"content": [{"type": "tool_use", "id": "a", "name": "count", "input": {"of": "books"}}]},
        {"content": [{"type": "tool_call", "id": "a", "name": "count", "args": {"of": "books"}}]},
        {"content": [{"type": "function_call", "call_id": "a", "name": "count", "arguments": '{"of": "books"}'}]},
        {
            "content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "a", "name": "count", "input": {}}],
            "tool_calls": [{"id": "a", "name": "count", "args": {"of": "books"}}],
        },
    ],
)
def test_a_call_is_read_from_every_form_and_once(fields: Chat) -> None:
    assert as_message({"role": "assistant", "content": None} | fields).calls == (COUNT,)


def test_the_older_function_call_has_no_id() -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "count", "arguments": '{"of": "books"}'}}
    assert as_message(called).calls == (ToolCall("count", '{"of": "books"}', None),)
    assert as_message({"role": "function", "name": "count", "content": "14"}).answers == (None,)


def test_calls_without_arguments_have_empty_ones() -> None:
    calls = as_message({"role": "assistant", "content": None, "tool_calls": [{"function": {"name": None}}]}).calls
    assert calls == (ToolCall("", "{}", None),)


PICTURES: list[Chat] = [
    {"type": "image_url", "image_url": {"url": "https://example.org/books.png"}},
    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
    {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0="}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
    {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": [{"type": "image", "source": {"type": "url", "url": "b.io"}}],
    },
]


@pytest.mark.parametrize("block", PICTURES, ids=lambda block: block["type"])
def test_media_are_counted_and_are_no_text(block: Chat) -> None:
    message = as_message({"role": "user", "content": [{"type": "text", "text": "look"}, block]})
    assert (message.media, message.text) == (1, "look")


def test_a_message_comes_back_as_it_is() -> None:
    message = Message("user", "14 books")
    assert as_message(message) is message


@given(histories())
def test_reading_finds_the_calls_and_results_and_changes_nothing(history: list[Chat]) -> None:
    before = copy.deepcopy(history)
    for message, read in zip(history, as_messages(history), strict=True):
        assert [call.id for call in read.calls] == calls_of(message)
        assert list(read.answers if read.kind == "tool" else ()) == answers_of(message)
    assert history == before


@given(histories())
def test_a_message_survives_its_chat_dict(history: list[Chat]) -> None:
    for read in as_messages(history):
        wire = json.loads(json.dumps(read.to_dict()))
        assert as_message(wire) == read
        assert as_message(wire).key == read.key


def test_equal_messages_have_equal_keys_and_others_have_others() -> None:
    messages: list[Chat] = [
        human("14 books"),
        human("15 books"),
        assistant("14 books"),
        human("14 books") | {"name": "Mara"},
        result("a", "14 books"),
        result("b", "14 books"),
        calling("a"),
        calling("b"),
        calling("a", text="14 books"),
        calling("a", arguments='{"of": "books"}'),
        calling("a", "b"),
        {"role": "user", "content": [{"type": "text", "text": "14 books"}, PICTURES[0]]},
        human("14 \ud800 books"),
    ]
    keys = [as_message(message).key for message in messages]
    assert len(set(keys)) == len(messages)
    assert [as_message(copy.deepcopy(message)).key for message in messages] == keys


def test_a_key_is_the_same_on_every_machine() -> None:
    assert as_message(human("14 books")).key == as_message({"content": "14 books", "role": "human"}).key
    assert len(as_message(human("14 books")).key) == 16


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("14 books", "found str"),
        (None, "found NoneType"),
        ({"content": "14 books"}, "it has no 'role'"),
        ({"role": None, "content": "14 books"}, "role None"),
        ({"role": "wizard", "content": "14 books"}, "role 'wizard' is none of system, developer, user"),
        ({"role": ["user"], "content": "14 books"}, "role"),
        ({"role": "user", "content": 14}, "'content' is int"),
        ({"role": "user", "content": {"type": "text"}}, "'content' is dict"),
        ({"role": "user", "content": b"14 books"}, "'content' is bytes"),
        ({"role": "user", "content": "14 books", "name": 14}, "'name' is int"),
        ({"role": "user", "content": "14 books", "timestamp": "yesterday"}, "'timestamp' is str"),
        ({"role": "tool", "content": "14 books", "tool_call_id": ["a"]}, "'tool_call_id' is list"),
        ({"role": "assistant", "content": None, "tool_calls": "abc"}, "'tool_calls' is str"),
        ({"role": "assistant", "content": None, "tool_calls": {"id": "a"}}, "'tool_calls' is dict"),
        ({"role": "assistant", "content": None, "tool_calls": [None]}, "call"),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": "count"}]}, "call"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(message: Any, found: str) -> None:
    with pytest.raises(InvalidMessage, match=f"^message 1: .*{found}") as caught:
        as_messages([human("hello"), message])
    assert isinstance(caught.value, LREError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "content",
    [[None, 14, {"type": ["text"]}], [{"text": None}], [{"type": "text", "text": 14}], [[["deep"]]], [{}]],
    ids=str,
)
def test_odd_blocks_are_kept_and_cost_something(content: list[Any]) -> None:
    history: list[Chat] = [human("hello"), {"role": "assistant", "content": content}, human("thanks")]
    view = Evictor(1_000, SCORER, token_counter=quarter).view(history)
    assert view.kept == [0, 1, 2]
    assert np.isfinite(view.scores).all()


@pytest.mark.parametrize("timestamp", [0, -1.5, 1e300, float("inf"), float("nan")])
def test_an_odd_timestamp_leaves_scores_probabilities(timestamp: float) -> None:
    history = [human("hello"), assistant("hi") | {"timestamp": timestamp}, human("thanks") | {"timestamp": 5}] * 9
    view = Evictor(100, SCORER, token_counter=quarter).view(history)
    assert ((view.scores >= 0) & (view.scores <= 1)).all()


def test_append_takes_all_or_nothing() -> None:
    session = Evictor(1_000, SCORER, token_counter=quarter).session()
    session.append([human("hello")])
    with pytest.raises(InvalidMessage, match=r"^message 2: it has no 'role'"):
        session.append([assistant("hi"), {"content": "14 books"}])
    assert session.view().kept == [0]
    session.append([assistant("hi")])
    assert [message["content"] for message in session.view().messages] == ["hello", "hi"]


@pytest.mark.parametrize("setting", ["token_counter", "pin"])
def test_a_callers_callable_that_raises_leaves_the_session_as_it_was(setting: str) -> None:
    def refuse(given: Any) -> int:
        if "books" in str(given):
            raise RuntimeError("no books")
        return 1

    arguments: dict[str, Any] = {"token_counter": quarter, setting: refuse}
    session = Evictor(1_000, SCORER, **arguments).session()
    session.append([human("hello")])
    with pytest.raises(RuntimeError, match="no books"):
        session.append([assistant("hi"), assistant("14 books")])
    session.append([human("thanks")])
    assert [message["content"] for message in session.view().messages] == ["hello", "thanks"]


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ('{"order_id": "ord_41", "lines": [{"sku": "b7", "count": 2}]}', "ord_41 b7 2"),
        ("{}", ""),
        ("order ord_41", "order ord_41"),
        ('"ord_41"', "ord_41"),
    ],
)
def test_the_values_of_a_call_leave_out_the_names_of_its_parameters(arguments: str, values: str) -> None:
    assert ToolCall("look_up", arguments).values == values
