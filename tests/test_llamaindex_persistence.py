"""What of an `LREChatMemoryBuffer` outlives a process: written down, copied, read again from its store."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from histories import SCORER
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ThinkingBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llamaindex_histories import LIMIT, WritingStore, memory, refused, said, tool_turn

import lre_core
from llamaindex_lre import LREChatMemoryBuffer


def test_case_15_after_a_reload_a_call_and_its_result_are_both_there_or_neither() -> None:
    buffer = memory()
    for n in range(16):
        buffer.put_messages(tool_turn(n, calls=1 + n % 3))
        reloaded = LREChatMemoryBuffer.from_dict(json.loads(buffer.to_string()), tokenizer_fn=str.split)
        assert refused(reloaded.get()) == []
        assert reloaded.get() == buffer.get()


def reloads() -> dict[str, Callable[[LREChatMemoryBuffer], LREChatMemoryBuffer]]:
    again = {"tokenizer_fn": str.split}
    return {
        "dict": lambda buffer: LREChatMemoryBuffer.from_dict(buffer.to_dict(), **again),
        "string": lambda buffer: LREChatMemoryBuffer.from_dict(json.loads(buffer.to_string()), **again),
        "deep copy": copy.deepcopy,
        "copy": lambda buffer: buffer.model_copy(),
        "store": lambda buffer: memory(chat_store=copy.deepcopy(buffer.chat_store)),
    }


@pytest.mark.parametrize("store", [SimpleChatStore, WritingStore])
@pytest.mark.parametrize("reload", list(reloads()))
def test_a_memory_goes_on_after_a_reload_as_if_never_stopped(
    reload: str, store: type[BaseChatStore], caplog: pytest.LogCaptureFixture
) -> None:
    stopped, running = memory(chat_store=store()), memory()
    for n, message in enumerate(said(20)):
        if n % 7 == 3:
            stopped = reloads()[reload](stopped)
        stopped.put(message)
        running.put(message)
        if n % 3:
            assert stopped.get() == running.get()
            assert stopped.get(initial_token_count=60) == running.get(initial_token_count=60)
    assert "not the one its state was made from" not in caplog.text


def test_what_was_decided_is_plain_json_and_small() -> None:
    buffer = memory(said(300))
    buffer.get()
    (state,) = json.loads(buffer.to_string())["eviction_state"].values()
    assert state["messages"] == 600
    assert len(json.dumps(buffer.eviction_state)) < 500


def test_a_copy_and_its_original_go_their_own_ways() -> None:
    buffer = memory(said(20))
    buffer.get()
    copied = copy.deepcopy(buffer)
    copied.put(said(21)[-2])
    assert copied.get() == memory([*said(20), said(21)[-2]]).get()
    assert buffer.get() == memory(said(20)).get()


def test_a_state_made_from_other_messages_is_not_trusted(caplog: pytest.LogCaptureFixture) -> None:
    buffer = memory(said(40))
    buffer.get()
    dumped = buffer.to_dict()
    dumped["chat_store"]["store"]["chat_history"].pop(3)
    dumped["chat_store"]["store"]["chat_history"] += dumped["chat_store"]["store"]["chat_history"][-2:]
    reloaded = LREChatMemoryBuffer.from_dict(dumped, tokenizer_fn=str.split)
    assert reloaded.get() == memory(reloaded.get_all()).get()
    assert "not the one its state was made from" in caplog.text


def test_settings_are_kept_whatever_the_scorer(tmp_path: Any) -> None:
    SCORER.save(tmp_path / "ours.json")
    for scorer in ("agent", str(tmp_path / "ours.json"), SCORER):
        buffer = memory(said(15), keep_recent=2, scorer=scorer, chat_store_key="Mara", tokenizer_fn=None)
        reloaded = LREChatMemoryBuffer.from_dict(json.loads(buffer.to_string()))
        assert (reloaded.settings["keep_recent"], reloaded.token_limit, reloaded.chat_store_key) == (2, LIMIT, "Mara")
        assert reloaded.get() == buffer.get()
        assert reloaded.to_dict() == buffer.to_dict()


def test_what_cannot_be_written_is_named_and_can_be_given_again(caplog: pytest.LogCaptureFixture) -> None:
    buffer = memory(said(15), pin=lambda message: True)
    dumped = buffer.to_dict()
    assert "A pin cannot be written down" in caplog.text
    store = WritingStore()
    given = LREChatMemoryBuffer.from_dict(dumped, chat_store=store, tokenizer_fn=str.split, **buffer.settings)
    assert (given.chat_store, given.settings, given.tokenizer_fn) == (store, buffer.settings, str.split)


class Remembering(LREChatMemoryBuffer):
    settings: dict[str, Any] = Field(default={"pin": lambda message: "7 " in str(message)}, exclude=True)


def test_a_subclass_keeps_its_pin(caplog: pytest.LogCaptureFixture) -> None:
    buffer = Remembering.from_defaults(chat_history=said(30), token_limit=LIMIT)
    reloaded = Remembering.from_string(buffer.to_string())
    assert caplog.records == []
    assert said(30)[7] in reloaded.get() == buffer.get()


def test_what_a_chat_memory_buffer_wrote_can_be_read() -> None:
    messages = [message.model_dump(mode="json") for message in said(2)]
    written = {
        "chat_store": {"store": {"chat_history": messages}, "class_name": "SimpleChatStore"},
        "chat_store_key": "chat_history",
        "token_limit": LIMIT,
        "class_name": "ChatMemoryBuffer",
    }
    older = {"token_limit": LIMIT, "chat_history": messages}
    for data in (written, older):
        before = copy.deepcopy(data)
        assert LREChatMemoryBuffer.from_string(json.dumps(data)).get() == said(2)
        assert LREChatMemoryBuffer.from_dict(data).get() == said(2)
        assert data == before


def test_a_store_that_nobody_imported_is_named() -> None:
    dumped = memory().to_dict() | {"chat_store": {"class_name": "RadishChatStore"}}
    with pytest.raises(lre_core.InvalidSetting, match=r"'RadishChatStore'.*'SimpleChatStore'.*chat_store="):
        LREChatMemoryBuffer.from_dict(dumped)


def test_every_kind_of_message_survives_being_written() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    messages = [
        ChatMessage(role="user", blocks=[TextBlock(text="注文は？"), ImageBlock(image=b"\x89PNG\r\n\x1a\n\xff")]),
        ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [call]}),
        ChatMessage(role="tool", content="14", additional_kwargs={"tool_call_id": "call_1"}),
        ChatMessage(role="assistant", blocks=[ThinkingBlock(content="hm", additional_information={"signature": "s"})]),
        *tool_turn(1, calls=2),
    ]
    buffer = memory(messages, token_limit=10_000)
    assert LREChatMemoryBuffer.from_string(buffer.to_string()).get() == messages
