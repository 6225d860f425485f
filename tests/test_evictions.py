"""Each eviction is told once: to the callback and to the log, with what left, what it cost and why."""

import logging
from dataclasses import replace
from typing import Any

import pytest
from histories import SCORER, Chat, Facts, assistant, evictors, growing, histories, human, quarter
from hypothesis import given, settings

from lre_core import Eviction, Evictor


def chat(messages: int) -> list[Chat]:
    return [(human, assistant)[n % 2](f"{n:03} " + "word " * 16) for n in range(messages)]


def watched(budget: int, **more: Any) -> tuple[Evictor, list[Eviction]]:
    told: list[Eviction] = []
    return Evictor(budget, SCORER, token_counter=quarter, on_evict=told.append, **more), told


def test_every_eviction_of_a_session_is_told_once_with_all_that_left() -> None:
    history = chat(300)
    evictor, told = watched(1_000)
    *_, (_, view) = growing(evictor, history)
    left = [message for eviction in told for message in eviction.messages]
    assert len(told) > 10
    assert sorted(map(id, left)) == sorted(id(history[index]) for index in view.evicted)
    for eviction in told:
        assert eviction.messages == [history[n] for unit in eviction.units for n in range(unit.start, unit.stop)]
        assert len(eviction.reasons) == len(eviction.units)
        assert set(eviction.reasons) <= {"scored out", "too large"}
        assert eviction.cause in ("young", "whole")
        cost = sum(quarter(message["content"]) + 3 for message in eviction.messages)
        assert eviction.tokens_before - cost == eviction.tokens_after <= eviction.budget < eviction.tokens_before
    assert {eviction.cause for eviction in told} == {"young", "whole"}


def test_a_view_told_of_once_is_not_told_of_again() -> None:
    history = chat(100)
    evictor, told = watched(1_000)
    session = evictor.session()
    session.append(history)
    view = session.view()
    assert len(told) == 1
    session.view()
    evictor.view(history, view.state)
    restored = evictor.session(session.state)
    restored.append(history)
    assert restored.view().kept == view.kept
    assert len(told) == 1
    evictor.view(history)
    assert (len(told), told[-1].messages) == (2, [history[index] for index in evictor.view(history).evicted])


def test_a_callback_that_raises_loses_no_message_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(eviction: Eviction) -> None:
        raise RuntimeError("the metrics server is away")

    failing = Evictor(1_000, SCORER, token_counter=quarter, on_evict=fail)
    plain = Evictor(1_000, SCORER, token_counter=quarter)
    with caplog.at_level(logging.ERROR, "lre_core"):
        for (_, one), (_, other) in zip(growing(failing, chat(120)), growing(plain, chat(120)), strict=True):
            assert (one.kept, one.state) == (other.kept, other.state)
    assert caplog.records
    assert all("the metrics server is away" in str(record.exc_info) for record in caplog.records)


def test_a_callback_may_use_the_session() -> None:
    seen = []

    def go_on(eviction: Eviction) -> None:
        seen.append(session.view().kept)
        session.append([assistant("noted")])

    session = Evictor(1_000, SCORER, token_counter=quarter, on_evict=go_on).session()
    session.append(chat(61))
    view = session.view()
    assert seen == [view.kept]
    assert session.view().kept == [*view.kept, 61]


def test_the_log_has_a_record_an_eviction_which_carries_it(caplog: pytest.LogCaptureFixture) -> None:
    evictor, told = watched(1_000)
    with caplog.at_level(logging.INFO, "lre_core"):
        assert list(growing(evictor, chat(120)))
    carried = [record.eviction for record in caplog.records if hasattr(record, "eviction")]
    assert [id(eviction) for eviction in carried] == [id(eviction) for eviction in told]
    first = told[0]
    assert caplog.messages[0] == (
        f"{len(first.units)} units left the view ({first.cause}): "
        f"{first.tokens_before} tokens before, {first.tokens_after} after, budget 1000"
    )


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    evictor, told = watched(1_000)
    assert list(growing(evictor, chat(120)))
    assert told
    assert capfd.readouterr() == ("", "")


@settings(max_examples=500)
@given(histories(least=4), evictors(pin=None))
def test_what_is_out_of_view_is_what_was_told_of_and_what_could_not_be_sent(
    history: list[Chat], evictor: Evictor
) -> None:
    told: list[Eviction] = []
    for prefix, view in growing(replace(evictor, on_evict=told.append), history):
        facts = Facts(prefix, evictor)
        said = {n for eviction in told for unit in eviction.units for n in range(unit.start, unit.stop)}
        assert set(view.evicted) & facts.sendable - facts.open <= said <= set(view.evicted)
