"""LlamaIndex's messages as the core reads them: every kind of block, every way of carrying calls, nothing changed."""

import copy
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from histories import Chat, histories
from hypothesis import given, settings
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr
from llamaindex_histories import chat_message

from llamaindex_lre.messages import copy_of, to_message
from lre_core import ToolCall
from lre_core.messages import as_message
from lre_core.tokens import MEDIA_TOKENS, MESSAGE_OVERHEAD, message_tokens

ARGUMENTS = '{"order": "A-17"}'
CALL = ToolCall("refund", ARGUMENTS, "call_1")
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20_000)


def openai_call(id: str | None = "call_1", name: str = "refund", arguments: Any = ARGUMENTS) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def block_call(id: str | None = "call_1", name: str = "refund", arguments: Any = ARGUMENTS) -> ToolCallBlock:
    return ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=arguments)


def assistant(*blocks: Any, **extra: Any) -> ChatMessage:
    return ChatMessage(role="assistant", blocks=list(blocks), additional_kwargs=extra)


@settings(max_examples=100)
@given(histories())
def test_a_message_reads_as_the_chat_dict_of_the_same_meaning(history: list[Chat]) -> None:
    for chat in history:
        ours, cores = to_message(chat_message(chat)), as_message(chat)
        assert (ours.kind, ours.text, ours.media, ours.name) == (cores.kind, cores.text, cores.media, cores.name)
        assert ours.calls == cores.calls
        assert ours.kind != "tool" or ours.answers == cores.answers


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("system", "system"),
        ("developer", "system"),
        ("user", "human"),
        ("assistant", "assistant"),
        ("chatbot", "assistant"),
        ("model", "assistant"),
        ("tool", "tool"),
        ("function", "tool"),
    ],
)
def test_every_role_is_known(role: str, kind: str) -> None:
    assert to_message(ChatMessage(role=role, content="14 books")).kind == kind
    assert len(MessageRole) == 8


@pytest.mark.parametrize(
    ("block", "text", "media"),
    [
        (TextBlock(text="14 books"), "14 books", 0),
        (ThinkingBlock(content="Which order?", additional_information={"signature": "c2ln" * 500}), "Which order?", 0),
        (ThinkingBlock(content=None, num_tokens=900), "", 0),
        (ImageBlock(image=PICTURE), "", 1),
        (AudioBlock(audio=b"RIFF" + bytes(20_000), format="wav"), "", 1),
        (VideoBlock(url="https://example.org/tour.mp4"), "", 1),
        (DocumentBlock(data=b"%PDF-1.7" + bytes(20_000)), "", 1),
        (CachePoint(cache_control=CacheControl(type="ephemeral")), "", 0),
        (
            CitableBlock(
                title="Terms", source="shop", content=[TextBlock(text="30 days"), DocumentBlock(data=b"%PDF-1.7")]
            ),
            "Terms\nshop\n30 days",
            1,
        ),
        (
            CitationBlock(
                title="Terms", source="shop", cited_content=TextBlock(text="30 days"), additional_location_info={}
            ),
            "Terms\nshop\n30 days",
            0,
        ),
        (block_call(), "", 0),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str | int) else "",
)
def test_every_block_counts_as_what_it_is(block: Any, text: str, media: int) -> None:
    message = to_message(assistant(block, TextBlock(text="and")))
    assert (message.text, message.media) == (f"{text}\nand" if text else "and", media)
    assert message_tokens(message, len) < MESSAGE_OVERHEAD + MEDIA_TOKENS * media + 60


def test_a_block_of_a_kind_yet_unknown_still_costs_tokens() -> None:
    class SketchBlock(TextBlock):
        block_type: Any = "sketch"

    class Strange:
        def __repr__(self) -> str:
            return "a map of Kyoto"

    message = ChatMessage(role="user", content="here")
    message.blocks += [SketchBlock(text="a line"), Strange()]  # type: ignore[list-item]
    assert to_message(message).text == "here\na line\na map of Kyoto"


OPENAI_OBJECT = SimpleNamespace(
    id="call_1", type="function", function=SimpleNamespace(name="refund", arguments=ARGUMENTS)
)


@pytest.mark.parametrize(
    "message",
    [
        assistant(block_call()),
        assistant(block_call(arguments={"order": "A-17"})),
        assistant(tool_calls=[openai_call()]),
        assistant(tool_calls=[openai_call(arguments={"order": "A-17"})]),
        assistant(tool_calls=[OPENAI_OBJECT]),
        assistant(tool_calls=[{"id": "call_1", "type": "tool_use", "name": "refund", "input": {"order": "A-17"}}]),
        assistant(
            tool_calls=[SimpleNamespace(tool_id="call_1", tool_name="refund", tool_kwargs={"order": "A-17"})],
        ),
        assistant(block_call(), tool_calls=[openai_call()]),
        assistant(block_call(), tool_calls=[OPENAI_OBJECT]),
        assistant(TextBlock(text=""), tool_calls=[openai_call()]),
    ],
)
def test_a_call_counts_once_however_it_is_carried(message: ChatMessage) -> None:
    assert to_message(message).calls == (CALL,)


@pytest.mark.parametrize(
    ("blocks", "entries", "ids"),
    [
        (["a", "b"], ["a", "b"], ["a", "b"]),
        (["a"], ["a", "b"], ["a", "b"]),
        ([None, None], [None, None], [None, None]),
        ([None, None], ["a", "b"], [None, None]),
        (["a", "a"], ["a", "a"], ["a", "a"]),
        ([], ["a", "a"], ["a", "a"]),
    ],
)
def test_parallel_calls_count_once_each_also_without_or_with_repeated_ids(
    blocks: list[str | None], entries: list[str | None], ids: list[str | None]
) -> None:
    message = assistant(*map(block_call, blocks), tool_calls=list(map(openai_call, entries)))
    assert [call.id for call in to_message(message).calls] == ids


def test_case_16_arguments_count_where_there_is_no_content() -> None:
    message = assistant(tool_calls=[openai_call(arguments="x" * 4000)])
    assert message.content is None
    assert message_tokens(to_message(message), len) > 4000


def test_the_older_function_call_is_a_call_and_its_result_answers_it() -> None:
    called = assistant(function_call={"name": "refund", "arguments": ARGUMENTS})
    assert to_message(called).calls == (ToolCall("refund", ARGUMENTS, None),)
    result = to_message(ChatMessage(role="function", content="done", additional_kwargs={"name": "refund"}))
    assert (result.kind, result.name, result.answers) == ("tool", "refund", (None,))


def test_a_direct_answer_that_carries_a_call_id_is_not_a_result() -> None:
    message = to_message(ChatMessage(role="assistant", content="done", additional_kwargs={"tool_call_id": "call_1"}))
    assert (message.kind, message.tool_call_id) == ("assistant", None)


def test_a_message_without_content_has_none() -> None:
    assert to_message(ChatMessage(role="assistant", content=None)).content is None


def test_a_copy_shares_no_list_or_dict_with_the_original() -> None:
    file = BytesIO(PICTURE)
    original = assistant(
        TextBlock(text="here"),
        block_call(arguments={"orders": ["A-17"]}),
        ImageBlock(image=file),
        tool_calls=[openai_call()],
    )
    before = copy.deepcopy((original.blocks[:2], original.additional_kwargs))
    copied: Any = copy_of(original)
    assert copied == original
    assert copied.blocks[2].image is file
    copied.blocks[0].text = "gone"
    copied.blocks[1].tool_kwargs["orders"].append("A-18")
    copied.additional_kwargs["tool_calls"][0]["function"]["name"] = "gone"
    copied.blocks.pop()
    assert (original.blocks[:2], original.additional_kwargs) == before
    assert len(original.blocks) == 3


class Marked(ChatMessage):
    """A message of a caller's own class."""

    model_config = ConfigDict(extra="allow")
    _mark: str | None = PrivateAttr(default=None)


def test_a_copy_is_of_the_same_class_with_what_is_extra_and_what_is_private() -> None:
    original: Any = Marked.model_validate({"role": "user", "blocks": [], "tags": {"order": "A-17"}})
    original._mark = "seen"
    copied: Any = copy_of(original)
    assert copied == original
    assert (type(copied), copied._mark, copied.tags) == (Marked, "seen", {"order": "A-17"})
    assert copied.model_fields_set == original.model_fields_set
    assert copied.model_dump() == original.model_dump()
    copied._mark, copied.tags["order"], copied.role = "gone", "gone", "assistant"
    assert (original._mark, original.tags, original.role) == ("seen", {"order": "A-17"}, "user")
