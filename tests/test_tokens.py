"""What messages cost: the text, the calls, the names and the overhead, each of them once, and without a network."""

import os
import subprocess
import sys
from pathlib import Path
from unittest import TestCase

import pytest
from histories import Chat, assistant, calling, histories, human, quarter, result
from hypothesis import given

from lre_core import Evictor, InvalidSetting, evict
from lre_core.messages import as_message
from lre_core.tokens import MEDIA_TOKENS, MESSAGE_OVERHEAD, counter, estimate, message_tokens, remembering

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 1_000}}


def cost(message: Chat) -> int:
    """Tokens of a message where a character is a token."""
    return message_tokens(as_message(message), len)


def test_an_empty_message_costs_the_overhead() -> None:
    assert cost(human("")) == cost({"role": "assistant", "content": None}) == MESSAGE_OVERHEAD


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (human("14 books"), ["14 books"]),
        (human("14 books") | {"name": "Mara"}, ["14 books", "Mara"]),
        (calling("a", arguments='{"of": "books"}'), ["look_up", '{"of": "books"}']),
        (calling("a", "b", text="14 books"), ["look_up", "{}", "look_up", "{}", "14 books"]),
        (result("a", "14 books"), ["14 books"]),
        ({"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {"n": 1}}]}, ["f", '{"n": 1}']),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "Count them."}]}, ["Count them."]),
    ],
)
def test_names_calls_and_arguments_are_paid_for(message: Chat, parts: list[str]) -> None:
    least = sum(map(len, parts)) + MESSAGE_OVERHEAD
    assert least <= cost(message) <= least + len(parts) - 1


def test_a_call_carried_twice_is_paid_once() -> None:
    use = {"type": "tool_use", "id": "a", "name": "look_up", "input": {"of": "books"}}
    assert cost(calling("a") | {"content": [use]}) == cost(calling("a"))


@pytest.mark.parametrize(
    "block",
    [
        PICTURE,
        {"type": "image", "source": {"type": "base64", "data": "iVBORw0KGgo" * 1_000}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==" * 1_000}},
        {"type": "document", "source": {"type": "base64", "data": "JVBERi0=" * 1_000}},
        {"type": "tool_result", "content": [{"type": "image", "source": {"data": "iVBORw0KGgo" * 1_000}}]},
    ],
    ids=lambda block: block["type"],
)
def test_media_cost_what_is_billed_and_not_their_base64_text(block: Chat) -> None:
    assert cost({"role": "user", "content": [block]}) == MEDIA_TOKENS + MESSAGE_OVERHEAD


@given(histories())
def test_a_view_costs_the_sum_of_its_messages(history: list[Chat]) -> None:
    evictor = Evictor(10**9, token_counter=len, message_overhead=7, whole_turn=False)
    view = evictor.view(history)
    assert view.tokens == sum(message_tokens(as_message(message), len, 7) for message in view.messages)
    assert view.tokens >= sum(len(as_message(message).text) + 7 for message in view.messages)


def test_the_overhead_can_be_set() -> None:
    history = [human("14"), assistant("15")]
    assert evict(history, 100, token_counter=len, message_overhead=0).tokens == 4
    assert evict(history, 100, token_counter=len, message_overhead=10).tokens == 24


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_an_encoding_counts_as_tiktoken_does(encoding: str) -> None:
    count = counter(encoding)
    assert count("") == 0
    assert count("hello world") == 2
    assert count("<|endoftext|>") > 1
    assert count("注文は明日 🎉 \ud800") > 3


def test_a_long_text_costs_as_much_as_its_pieces_within_a_thousandth() -> None:
    count = counter("o200k_base")
    line = "The order of 14 books for Mara was refunded.\n"
    assert count(line * 20_000) == pytest.approx(20_000 * count(line), rel=1e-3)


def test_a_callable_comes_back_as_it_is() -> None:
    assert counter(quarter) is quarter


def test_an_unknown_encoding_is_named_and_the_known_are_listed() -> None:
    with pytest.raises(InvalidSetting, match=r"no tiktoken encoding 'o200k'; there are 'o200k_base'"):
        Evictor(100, token_counter="o200k")


OFFLINE = """
import logging, socket, sys

def refuse(*args, **kwargs):
    raise AssertionError("a connection was opened")

socket.socket.connect = socket.create_connection = refuse
if sys.argv[1] == "without":
    sys.modules["llama_index.core"] = None
logging.basicConfig(format="%(name)s %(levelname)s %(message)s")
from lre_core.tokens import counter, estimate
counts = [counter(), counter("o200k_base"), counter()]
print(len(set(counts)), counts[0] is estimate, counts[0]("hello world"))
"""


def run_offline(vocabulary: str, cache: Path) -> tuple[list[str], list[str]]:
    """What a fresh interpreter without a network and with an empty cache prints and logs."""
    command = [sys.executable, "-c", OFFLINE, vocabulary]
    environment = {"TIKTOKEN_CACHE_DIR": str(cache), "PATH": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    finished = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return finished.stdout.split(), finished.stderr.splitlines()


def test_without_a_network_the_vocabulary_that_llama_index_ships_is_used(tmp_path: Path) -> None:
    pytest.importorskip("llama_index.core")
    assert run_offline("with", tmp_path) == (["1", "False", "2"], [])


def test_without_any_vocabulary_tokens_are_estimated_and_one_record_says_so(tmp_path: Path) -> None:
    printed, logged = run_offline("without", tmp_path)
    assert printed[:2] == ["1", "True"]
    assert len(logged) == 1
    assert logged[0].startswith("lre_core.tokens WARNING The vocabulary of o200k_base is not on this machine")


ORDINARY = {
    "english": "Mara moved to Lisbon in March and wants the refund of her second order paid to the new account. ",
    "german": "Mara ist im März nach Lissabon gezogen und möchte die Erstattung auf das neue Konto bekommen. ",
    "japanese": "三月に引っ越したので、二回目の注文の返金は新しい口座にお願いします。",
    "chinese": "她三月搬到了里斯本，希望把第二个订单的退款付到新账户。",
    "code": "def refund(order: Order) -> None:\n    if order.total > limit:\n        raise RefundError(order.id)\n",
    "json": '{"order": {"id": "ORD-2291", "total": 42.5, "items": [{"sku": "bk_14", "count": 2}]}}\n',
}


@pytest.mark.parametrize("language", ORDINARY)
def test_the_estimate_is_near_the_encoding(language: str) -> None:
    text = ORDINARY[language] * 20
    assert estimate(text) == pytest.approx(counter("o200k_base")(text), rel=0.35)


def test_the_estimate_is_nothing_for_nothing_and_grows_with_the_text() -> None:
    assert estimate("") == 0
    for text in ORDINARY.values():
        sizes = [estimate(text * n) for n in (1, 2, 4)]
        assert 0 < sizes[0] < sizes[1] < sizes[2]


def test_a_text_lately_seen_is_not_counted_again() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    remembered = remembering(count)
    assert [remembered(text) for text in ("14", "books", "14")] == [2, 5, 2]
    assert counted == ["14", "books"]


def test_ordinary_use_logs_no_warning() -> None:
    session = Evictor(60, token_counter=quarter).session()
    with TestCase().assertNoLogs("lre_core", "WARNING"):
        for n in range(30):
            session.append([human(f"{n} books"), assistant("done " * 9)])
            assert session.view().tokens <= 60
        evict([human("hello")] * 9, 10)
