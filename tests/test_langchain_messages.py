"""LangChain's messages in every shape providers give them, as `lre_core` reads them: each part once, none changed."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)

from langchain_lre import to_message
from lre_core import InvalidMessage, Message, ToolCall, evict, group
from lre_core.tokens import MEDIA_TOKENS, counter, message_tokens

PNG = base64.b64encode(bytes(range(256)) * 40).decode()
LOOK: dict[str, Any] = {"name": "look", "args": {"shelf": 1}, "id": "call_1"}
LOOKED = ToolCall("look", '{"shelf": 1}', "call_1")


def read(message: BaseMessage) -> Message:
    """Reads a message, and makes sure that it stays as it was."""
    before = message.model_copy(deep=True)
    result = to_message(message)
    assert message == before
    return result


def cost(message: BaseMessage) -> int:
    return message_tokens(to_message(message), counter())


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("hi", name="Ana"), Message("user", "hi", name="Ana")),
        (SystemMessage("be brief"), Message("system", "be brief")),
        (AIMessage("hello"), Message("assistant", "hello")),
        (AIMessage("", tool_calls=[LOOK]), Message("assistant", "", (LOOKED,))),
        (
            AIMessage("", invalid_tool_calls=[{"name": "look", "args": "{", "id": "b", "error": "not JSON"}]),
            Message("assistant", "", (ToolCall("look", "{", "b"),)),
        ),
        (ToolMessage("14", tool_call_id="a", artifact=b"x" * 9_000), Message("tool", "14", (), "a")),
        (FunctionMessage(content="14", name="look"), Message("function", "14", name="look")),
        (HumanMessageChunk(content="hi"), Message("user", "hi")),
        (AIMessageChunk(content="hello"), Message("assistant", "hello")),
        (ToolMessageChunk(content="14", tool_call_id="a"), Message("tool", "14", (), "a")),
        (ChatMessage(content="14", role="assistant"), Message("assistant", "14")),
        (ChatMessage(content="be brief", role="developer"), Message("developer", "be brief")),
        (ChatMessage(content="14", role="model"), Message("model", "14")),
        (ChatMessage(content="14", role="critic"), Message("user", "14")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_message_class_is_read(message: BaseMessage, expected: Message) -> None:
    assert read(message) == expected


def test_a_remove_message_is_refused_with_a_word_on_what_to_do() -> None:
    with pytest.raises(InvalidMessage, match=r"RemoveMessage\(id='m1'\).*add_messages"):
        to_message(RemoveMessage(id="m1"))


OPENAI_CHAT = AIMessage(
    "",
    additional_kwargs={
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"shelf": 1}'}},
            {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": '{"shelf": 2}'}},
        ],
        "refusal": None,
    },
    response_metadata={"token_usage": {"completion_tokens": 40}, "model_name": "gpt-4o"},
)


def test_openai_chat_calls_that_stand_in_two_places_count_once() -> None:
    assert len(OPENAI_CHAT.tool_calls) == len(OPENAI_CHAT.additional_kwargs["tool_calls"]) == 2
    assert read(OPENAI_CHAT) == Message("assistant", "", (LOOKED, ToolCall("look", '{"shelf": 2}', "call_2")))


def test_calls_in_additional_kwargs_alone_are_calls() -> None:
    only = OPENAI_CHAT.model_copy(update={"tool_calls": []})
    assert [call.id for call in read(only).calls] == ["call_1", "call_2"]
    role = ChatMessage(content="", role="assistant", additional_kwargs=OPENAI_CHAT.additional_kwargs)
    assert [call.id for call in read(role).calls] == ["call_1", "call_2"]
    older = AIMessage("", additional_kwargs={"function_call": {"name": "look", "arguments": '{"shelf": 1}'}})
    assert read(older).calls == (ToolCall("look", '{"shelf": 1}', None),)
    assert [unit.complete for unit in group([to_message(older), Message("function", "14", name="look")])] == [True]


def test_openai_chat_refusals_and_spoken_answers_are_text() -> None:
    refused = AIMessage("", additional_kwargs={"refusal": "I cannot say who that is."})
    assert read(refused).text.strip() == "I cannot say who that is."
    spoken = AIMessage("", additional_kwargs={"audio": {"id": "audio_1", "data": PNG, "transcript": "Fourteen."}})
    assert (read(spoken).text.strip(), read(spoken).media) == ("Fourteen.", 1)


OPENAI_RESPONSES = AIMessage(
    [
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Two shelves, so two looks."}],
            "encrypted_content": None,
        },
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"query": "bolts", "type": "search"},
        },
        {
            "type": "text",
            "text": "Looking.",
            "annotations": [{"type": "url_citation", "url": "https://example.org", "title": "Bolts", "start_index": 0}],
            "id": "msg_1",
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"shelf": 1}'},
    ],
    tool_calls=[LOOK],
    id="resp_1",
)


def test_openai_responses_reasoning_and_server_calls_are_text_and_the_call_counts_once() -> None:
    message = read(OPENAI_RESPONSES)
    assert message.calls == (LOOKED,)
    assert "Two shelves, so two looks." in message.text
    assert "bolts" in message.text
    assert "Looking." in message.text
    assert "example.org" not in message.text
    assert "rs_1" not in message.text


def test_openai_responses_calls_of_its_own_tools_wait_for_their_answer() -> None:
    click = {"type": "click", "x": 10, "y": 20, "button": "left"}
    call = {"type": "computer_call", "id": "cu_1", "call_id": "call_7", "action": click, "status": "completed"}
    screen = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    answer = ToolMessage([screen], tool_call_id="call_7", additional_kwargs={"type": "computer_call_output"})
    messages = [read(AIMessage([call])), read(answer)]
    assert messages[0].calls[0].id == "call_7"
    assert "left" in messages[0].calls[0].arguments
    assert messages[1].media == 1
    assert [unit.complete for unit in group(messages)] == [True]


def test_a_generated_image_costs_an_image_and_not_its_base64_text() -> None:
    message = AIMessage([{"type": "image_generation_call", "id": "ig_1", "result": PNG, "status": "completed"}])
    assert read(message).media == 1
    assert cost(message) < MEDIA_TOKENS + 50


ANTHROPIC = AIMessage(
    [
        {"type": "thinking", "thinking": "Two look-ups are needed.", "signature": "c2ln" * 100},
        {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk" * 40},
        {
            "type": "text",
            "text": "There are 14.",
            "citations": [{"type": "char_location", "cited_text": "fourteen bolts", "document_index": 0}],
        },
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"shelf": 1}},
    ],
    tool_calls=[LOOK],
)


def test_anthropic_thinking_is_text_and_signatures_and_citations_cost_nothing() -> None:
    message = read(ANTHROPIC)
    assert message.calls == (LOOKED,)
    assert "Two look-ups are needed." in message.text
    assert "There are 14." in message.text
    assert "c2lnc2ln" not in message.text
    assert "fourteen bolts" not in message.text


def test_what_is_encrypted_costs_about_what_is_inside() -> None:
    thought = "The order of 14 bolts for Mara was refunded, so the next shelf is worth a look. " * 60
    hidden = base64.b64encode(thought.encode()).decode()
    inside = counter()(thought)
    for block in (
        {"type": "redacted_thinking", "data": hidden},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": hidden},
        {"type": "web_search_tool_result", "content": [{"title": "Bolts", "encrypted_content": hidden}]},
    ):
        assert inside / 2 < cost(AIMessage([block])) < inside * 2


def test_anthropic_server_tools_are_text_and_wait_for_nothing() -> None:
    message = AIMessage(
        [
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "bolts M8"}},
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [{"type": "web_search_result", "title": "Bolts", "url": "https://bolts.example"}],
            },
            {"type": "text", "text": "Found."},
        ]
    )
    assert "bolts M8" in read(message).text
    assert "https://bolts.example" in read(message).text
    assert [unit.complete for unit in group([read(message)])] == [True]


def test_anthropic_results_within_a_human_message_answer_their_call() -> None:
    found = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "14 bolts"}]}
    pictured = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    answer = HumanMessage([{**found, "content": [*found["content"], pictured]}])
    messages = [read(ANTHROPIC), read(answer)]
    assert (messages[1].kind, messages[1].text, messages[1].media) == ("tool", "14 bolts", 1)
    assert [unit.complete for unit in group(messages)] == [True]


def test_google_calls_thoughts_and_code_are_read() -> None:
    message = AIMessage(
        [
            {"type": "thinking", "thinking": "A sum.", "signature": "c2ln" * 100},
            {"type": "executable_code", "executable_code": "print(6 + 8)", "language": "PYTHON"},
            {"type": "code_execution_result", "code_execution_result": "14", "outcome": 1},
            {"type": "function_call_signature", "signature": "c2ln" * 100, "index": 0},
            "Fourteen.",
        ],
        additional_kwargs={"function_call": {"name": "look", "arguments": '{"shelf": 1}'}},
        tool_calls=[LOOK],
    )
    result = read(message)
    assert result.calls == (LOOKED,)
    for said in ("A sum.", "print(6 + 8)", '"14"', "Fourteen."):
        assert said in result.text
    assert "c2ln" not in result.text


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}},
        {"type": "image_url", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"},
        {"type": "media", "mime_type": "image/png", "data": PNG},
        {"image": {"format": "png", "source": {"bytes": base64.b64decode(PNG)}}},
        {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
        {"type": "audio", "base64": PNG, "mime_type": "audio/wav"},
        {"type": "video", "base64": PNG, "mime_type": "video/mp4"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}},
        {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PNG}},
        {"type": "tool_of_tomorrow", "picture": {"bytes": base64.b64decode(PNG)}},
        {"type": "non_standard", "value": {"type": "sketch", "payload": PNG}},
    ],
    ids=lambda block: next(iter(block)) + "-" + str(block.get("type")),
)
def test_media_cost_what_is_billed_and_not_their_base64_text(block: dict[str, Any]) -> None:
    message = HumanMessage([{"type": "text", "text": "What is this?"}, block])
    assert read(message).media == 1
    assert MEDIA_TOKENS <= cost(message) < MEDIA_TOKENS + 40
    assert "What is this?" in read(message).text


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Shelf 3 is full."}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Shelf 3 is full."}]}},
        {"type": "text-plain", "text": "Shelf 3 is full.", "mime_type": "text/plain", "title": "Stock"},
        {"type": "search_result", "title": "Stock", "content": [{"type": "text", "text": "Shelf 3 is full."}]},
        {"type": "guard_content", "guard_content": {"text": {"text": "Shelf 3 is full."}}},
        {"type": "json", "json": {"note": "Shelf 3 is full."}},
        {"type": "note_of_tomorrow", "body": "Shelf 3 is full."},
    ],
    ids=lambda block: str(block["type"]),
)
def test_documents_of_text_and_blocks_unknown_cost_their_text(block: dict[str, Any]) -> None:
    message = HumanMessage([block])
    assert read(message).media == 0
    assert "Shelf 3 is full." in read(message).text


def test_cache_points_and_pieces_of_calls_cost_nothing() -> None:
    bare = cost(AIMessage([]))
    for block in ({"cachePoint": {"type": "default"}}, {"type": "input_json_delta", "partial_json": '{"a"'}):
        assert cost(AIMessage([block])) == bare


def test_langchains_standard_blocks_are_read() -> None:
    message = AIMessage(
        content_blocks=[
            {"type": "reasoning", "reasoning": "Two shelves."},
            {"type": "text", "text": "Looking.", "annotations": [{"type": "citation", "cited_text": "fourteen bolts"}]},
            {"type": "tool_call", "name": "look", "args": {"shelf": 1}, "id": "call_1"},
            {"type": "server_tool_call", "id": "srv_1", "name": "web_search", "args": {"query": "bolts M8"}},
            {"type": "server_tool_result", "tool_call_id": "srv_1", "status": "success", "output": "many bolts"},
        ]
    )
    result = read(message)
    assert result.calls == (LOOKED,)
    for said in ("Two shelves.", "Looking.", "bolts M8", "many bolts"):
        assert said in result.text
    assert "fourteen bolts" not in result.text


def test_a_streamed_call_is_one_call() -> None:
    chunks = [
        AIMessageChunk(content="", tool_call_chunks=[{"name": "look", "args": '{"shelf"', "id": "call_1", "index": 0}]),
        AIMessageChunk(content="", tool_call_chunks=[{"name": None, "args": ": 1}", "id": None, "index": 0}]),
    ]
    assert read(chunks[0] + chunks[1]).calls == (LOOKED,)


def test_case_26_a_history_from_many_providers_is_kept_whole_and_in_order() -> None:
    history = [
        SystemMessage([{"type": "text", "text": "Be brief."}], additional_kwargs={"__openai_role__": "developer"}),
        HumanMessage(["What is this?", {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}]),
        OPENAI_RESPONSES,
        ToolMessage("14", tool_call_id="call_1"),
        HumanMessage("And now?"),
        ANTHROPIC,
        ToolMessage([{"type": "text", "text": "15"}], tool_call_id="call_1"),
        AIMessage("", additional_kwargs={"function_call": {"name": "look", "arguments": "{}"}}),
        FunctionMessage(content="16", name="look"),
        AIMessage("", additional_kwargs={"refusal": "I cannot."}),
        HumanMessage("Thanks."),
    ]
    read_history = [to_message(message) for message in history]
    assert all(unit.complete for unit in group(read_history))
    assert evict(read_history, 10_000).kept == list(range(len(history)))
