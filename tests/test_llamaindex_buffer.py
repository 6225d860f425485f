"""`LREChatMemoryBuffer` in the place of `ChatMemoryBuffer`: its interface, its promises, public cases 14 to 24."""

import asyncio
import copy
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from histories import SCORER, Chat, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ThinkingBlock
from llama_index.core.llms import MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore
from llamaindex_histories import (
    LIMIT,
    WritingStore,
    chat_message,
    memory,
    put_by_speakers,
    refused,
    said,
    texts,
    through_every_awaited_way,
    through_every_way,
    tokens,
    tool_turn,
)

import lre_core
from llamaindex_lre import LREChatMemoryBuffer

# The interface


def test_it_is_a_chat_memory_buffer_that_is_never_false() -> None:
    empty = memory()
    assert isinstance(empty, ChatMemoryBuffer)
    assert (empty or None) is empty
    assert empty.get() == empty.get_all() == []
    assert LREChatMemoryBuffer.class_name() == "LREChatMemoryBuffer"


def test_defaults_are_those_of_the_original() -> None:
    ours, original = LREChatMemoryBuffer.from_defaults(), ChatMemoryBuffer.from_defaults()
    assert (ours.token_limit, ours.tokenizer_fn) == (original.token_limit, original.tokenizer_fn)
    llm = MockLLM()
    assert LREChatMemoryBuffer.from_defaults(llm=llm).token_limit == int(llm.metadata.context_window * 0.75)


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        ({"token_limit": 0}, ValueError, "greater than 0"),
        ({"keep_recent": -1}, ValueError, "keep_recent is -1"),
        ({"scorer": "agnet"}, lre_core.UnknownScorer, "'agnet'"),
        ({"token_limti": 5}, ValueError, "token_limti"),
    ],
)
def test_wrong_settings_are_refused_at_once(wrong: dict[str, Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        memory(**wrong)


def test_all_is_shown_while_it_fits_as_the_original_shows_it() -> None:
    messages = [ChatMessage(role="system", content="Be brief."), *said(4, size=5), *tool_turn(1, calls=2)]
    ours, original = memory(messages, token_limit=1000), ChatMemoryBuffer.from_defaults(messages, token_limit=1000)
    assert ours.get() == original.get() == messages
    assert ours.get(initial_token_count=1000 - tokens(messages)) == messages


def test_every_way_in_and_out_is_there_sync_and_async() -> None:
    messages = said(2)[:3]
    expected = [texts(messages)] * 2 + [[]]
    for store in (SimpleChatStore(), WritingStore()):
        assert through_every_way(memory(chat_store=store), messages) == expected
        assert asyncio.run(through_every_awaited_way(memory(chat_store=store), messages)) == expected


class AwaitedStore(WritingStore):
    def add_message(self, key: str, message: ChatMessage) -> None:
        raise AssertionError("this store is only awaited")

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        self.set_messages(key, [*self.get_messages(key), message])


def test_a_store_that_can_only_be_awaited_is_awaited() -> None:
    buffer = memory(chat_store=AwaitedStore())
    for message in said(2):
        asyncio.run(buffer.aput(message))
    assert buffer.get() == said(2)


def test_settings_changed_on_the_memory_count_from_the_next_get_on() -> None:
    buffer = memory(said(20))
    buffer.token_limit = 90
    assert tokens(buffer.get()) <= 90
    assert buffer.get() == memory(said(20), token_limit=90).get()


def test_what_the_caller_pins_stays() -> None:
    buffer = memory(said(40), pin=lambda message: str(message.content).startswith("7 "))
    assert said(40)[7] in buffer.get()
    assert said(40)[7] not in memory(said(40)).get()


def test_a_note_says_how_much_is_not_shown_and_is_never_stored() -> None:
    buffer = memory(said(40), note=True)
    (note,) = (text for text in texts(buffer.get()) if "earlier messages were left out here" in str(text))
    missing = len(buffer.get_all()) - (len(buffer.get()) - 1)
    assert str(note).startswith(f"[{missing} ")
    assert note not in texts(buffer.get_all())
    assert tokens(buffer.get()) <= LIMIT
    assert "left out" not in str(memory(said(2), note=True).get())


# Valid, within the limit, changing nothing


@settings(max_examples=60)
@given(histories(least=4, most=12, broken=False), st.sampled_from([20, 60, 150]))
def test_every_view_of_a_growing_history_is_one_a_provider_accepts(history: list[Chat], limit: int) -> None:
    buffer = memory(token_limit=limit, scorer=SCORER)
    for message in map(chat_message, history):
        buffer.put(message)
        view = buffer.get(initial_token_count=10)
        humans = [kept for kept in view if kept.role == "user"]
        assert tokens(view) <= limit - 10 or len(humans) <= 1
        only_systems = all(stored.role in ("system", "developer") for stored in buffer.get_all())
        assert view == buffer.get_all() if only_systems else refused(view) == []


def test_case_14_no_message_is_tokenised_twice_and_the_view_keeps_to_the_limit() -> None:
    read: list[str] = []

    def tokenizer(text: str) -> list[str]:
        read.append(text)
        return text.split()

    messages = said(500, size=217)
    buffer = memory(messages, token_limit=16_000, tokenizer_fn=tokenizer)
    assert 8_000 < tokens(buffer.get()) <= 16_000
    assert len(read) == len(set(read)) == 1000
    for message in said(520, size=217)[1000:]:
        read.clear()
        buffer.put(message)
        assert tokens(buffer.get()) <= 16_000
        assert tokens(buffer.get(initial_token_count=4_000)) <= 12_000
        assert read == [message.content]


def test_case_16_arguments_of_a_call_without_content_count_against_the_limit() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "save", "arguments": "x " * 150}}
    turn = [
        ChatMessage(role="user", content="save it"),
        ChatMessage(role="assistant", content=None, additional_kwargs={"tool_calls": [call]}),
        ChatMessage(role="tool", content="saved", additional_kwargs={"tool_call_id": "call_1"}),
    ]
    view = memory([*turn, *said(5)]).get()
    assert turn[1] not in view
    assert tokens(view) <= LIMIT
    assert refused(view) == []


def test_case_17_the_system_message_does_not_go_first() -> None:
    system = ChatMessage(role="system", content="Answer in French. " * 5)
    view = memory([system, *said(10)]).get()
    assert view[0] == system
    assert len(view) < 21
    assert tokens(view) <= LIMIT


@pytest.mark.parametrize("after", [[], said(1)[:1]])
def test_case_18_a_turn_larger_than_the_limit_does_not_leave_only_the_assistant(after: list[ChatMessage]) -> None:
    view = memory([*tool_turn(1, result="found " * 300), *after]).get()
    assert view[0].role == "user"
    assert refused(view) == []
    assert tokens(view) <= LIMIT


@pytest.mark.parametrize("count", [LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT])
def test_case_19_where_nothing_is_left_of_the_limit_the_pinned_part_is_shown(count: int) -> None:
    messages = [ChatMessage(role="system", content="Be brief."), *said(10), *said(11)[-2:-1]]
    assert memory(messages).get(initial_token_count=count) == [messages[0], messages[-1]]


def test_case_21_a_get_changes_nothing_in_the_store_nor_does_what_is_done_with_its_messages() -> None:
    messages = [*said(10), ChatMessage(role="assistant", content=None), *tool_turn(1)]
    messages[2].blocks += [ThinkingBlock(content="hm", additional_information={"signature": "c2ln"})]
    buffer = memory(messages, token_limit=10_000)
    before = copy.deepcopy(buffer.chat_store.get_messages(buffer.chat_store_key))
    for shown in (buffer.get(), buffer.get_all()):
        assert shown == before
        for message in shown:
            for block in message.blocks:
                if isinstance(block, TextBlock):
                    block.text = "changed"
            message.additional_kwargs["changed"] = True
            message.blocks.clear()
        shown.clear()
    assert buffer.chat_store.get_messages(buffer.chat_store_key) == before
    assert buffer.get() == before


def test_the_callers_own_list_stays_as_it_is() -> None:
    given, later = said(3), said(4)
    buffer = memory(given)
    buffer.put(later[-2])
    buffer.set(later)
    buffer.put(given[0])
    assert (len(given), len(later)) == (6, 8)


def test_case_23_no_messages_to_put_and_a_message_as_input() -> None:
    buffer = memory(said(30))
    asyncio.run(buffer.aput_messages([]))
    expected = buffer.get()
    question = ChatMessage(role="user", content="Where is the order?")
    for put in ("Where is the order?", question, None):
        assert asyncio.run(buffer.aget(input=put)) == buffer.get(input=put) == buffer.get(put) == expected


def test_case_24_a_store_that_loses_calls_and_their_ids_gives_no_invalid_prompt() -> None:
    buffer = memory(chat_store=WritingStore(loses=["tool_calls", "tool_call_id"]))
    for n in range(12):
        question, called, result, answer = tool_turn(n)
        called = ChatMessage(
            role="assistant", content="", additional_kwargs={"tool_calls": [{"id": "a", "name": "look_up"}]}
        )
        buffer.put_messages([question, called, result, answer])
        view = buffer.get()
        assert refused(view) == []
        assert view[0].role == "user"
        assert texts(view)[-1] == answer.content
        assert len(buffer.get_all()) == 4 * (n + 1)


# The same messages, the same view


def test_a_view_follows_from_the_messages_alone_however_often_and_however_one_asks() -> None:
    asked, silent = memory(), memory()
    for n, message in enumerate([*said(10), *tool_turn(1, calls=2), *said(25)]):
        asked.put(message)
        silent.put(message)
        for count in (0, 31 * (n % 5), 0)[: n % 4]:
            asked.get(initial_token_count=count)
    for count in (50, 0, 90, 1000, 31):
        assert asked.get(initial_token_count=count) == silent.get(initial_token_count=count)
        assert asked.get(initial_token_count=count) == asked.get(initial_token_count=count)
    assert asked.get() == memory(asked.get_all()).get()


@pytest.mark.parametrize("store", [SimpleChatStore, WritingStore])
@pytest.mark.parametrize(
    "edit",
    [
        lambda store, key: store.delete_last_message(key),
        lambda store, key: store.delete_message(key, 0),
        lambda store, key: store.set_messages(key, said(20)[7:]),
        lambda store, key: store.set_messages(key, [*said(9), *tool_turn(3), *said(4)]),
        lambda store, key: store.set_messages(key, []),
    ],
)
def test_a_store_changed_behind_its_back_is_noticed(
    store: type[BaseChatStore], edit: Callable[[BaseChatStore, str], None]
) -> None:
    buffer = memory(said(15), chat_store=store())
    buffer.get()
    buffer.get(initial_token_count=60)
    edit(buffer.chat_store, buffer.chat_store_key)
    for message in said(2):
        for count in (0, 60):
            fresh = memory(buffer.get_all())
            assert buffer.get(initial_token_count=count) == fresh.get(initial_token_count=count)
        buffer.put(message)


def test_a_history_set_again_on_every_turn_is_not_read_again() -> None:
    read: list[str] = []
    buffer = memory(tokenizer_fn=lambda text: read.append(text) or text.split())  # type: ignore[func-returns-value]
    for turns in range(1, 40):
        buffer.set(said(turns))
        assert tokens(buffer.get()) <= LIMIT
    assert len(read) == len(set(read)) == 2 * 39


@pytest.mark.parametrize("count", [0, 130])
def test_the_prefix_of_the_prompt_seldom_changes(count: int) -> None:
    def changes(buffer: ChatMemoryBuffer) -> int:
        before: list[ChatMessage] = []
        changed = 0
        for question, answer in zip(said(60, 5)[::2], said(60, 5)[1::2], strict=True):
            buffer.put(question)
            view = buffer.get(initial_token_count=count)
            changed += view[: len(before)] != before
            before = view
            buffer.put(answer)
        return changed

    original = ChatMemoryBuffer.from_defaults(token_limit=3 * LIMIT, tokenizer_fn=str.split)
    assert 0 < changes(memory(token_limit=3 * LIMIT)) < changes(original) / 2


# Threads


@pytest.mark.parametrize("together", ["put", "aput"])
def test_messages_put_at_the_same_time_are_all_kept_each_speakers_in_order(together: str) -> None:
    buffer = memory(chat_store=WritingStore(pause=0.001))
    spoken = put_by_speakers(buffer, "abcdef", 12, together)
    kept = texts(buffer.get_all())
    for speaker, said_by_speaker in spoken.items():
        assert [text for text in kept if str(text).startswith(speaker)] == said_by_speaker
    assert buffer.get() == memory(buffer.get_all()).get()


def test_messages_put_together_stay_together() -> None:
    buffer = memory(chat_store=WritingStore(pause=0.0005), token_limit=100_000)
    turns = [tool_turn(n, calls=3) for n in range(12)]
    threads = [threading.Thread(target=buffer.put_messages, args=(turn,)) for turn in turns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = buffer.get_all()
    blocks = [kept[start : start + 6] for start in range(0, len(kept), 6)]
    assert sorted(blocks, key=str) == sorted(turns, key=str)
    assert refused(buffer.get()) == []


# What is missing


def test_without_llama_index_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "llamaindex_lre"]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("llama_index.")]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(lre_core.MissingExtra, match=r"pip install 'lre-memory\[llamaindex\]'"):
        import llamaindex_lre  # noqa: F401
