"""Grouping: messages that stand or fall together, on whole and on broken histories."""

import pytest
from histories import SCORER, Chat, calling, histories, human, problems, result, shape
from hypothesis import given, settings

from lre_core import Evictor, InvalidMessage, Message, ToolCall, Unit, group


def grouped(history: list[Chat], names: list[str]) -> str:
    """Units as `A B | C`, incomplete ones with a question mark before them."""
    spans = [(unit, " ".join(names[unit.start : unit.stop])) for unit in group(history)]
    return " | ".join(span if unit.complete else f"? {span}" for unit, span in spans)


@pytest.mark.parametrize(
    "units",
    [
        pytest.param("S | H | AI | H", id="turns"),
        pytest.param("H | AI*a Ta | AI", id="a step"),
        pytest.param("H | AI*a,b Ta Tb | AI", id="parallel calls"),
        pytest.param("H | AI*a,b Tb Ta | AI", id="results in the order they finish"),
        pytest.param("H | AI*a AI*b Ta Tb | AI", id="all calls before all results (langchain#38352)"),
        pytest.param("H | AI*a AI*b Tb Ta | AI", id="all calls before all results, the last first"),
        pytest.param("AI*a Ta | AI*b Tb", id="steps in a row"),
        pytest.param("AI*, T T | AI* T", id="no ids"),
        pytest.param("AI* T | AI* T", id="no ids, steps in a row"),
        pytest.param("AI*a T | AI* Ta", id="an id on one side only"),
        pytest.param("AI*a Ta | AI*a Ta", id="an id used again"),
        pytest.param("? Ta | AI*b Tb", id="a result without a call"),
        pytest.param("? Ta | ? AI*a | H", id="a result before its call"),
        pytest.param("? AI*a | H | ? Ta", id="a message in between"),
        pytest.param("? AI*a | S | ? Ta", id="a system message in between"),
        pytest.param("? AI*a | H | AI", id="a call that nothing answers"),
        pytest.param("? AI*a,b Ta | H", id="one of two results"),
        pytest.param("? AI*a | AI*b Tb | H", id="a call that nothing answers before one that is answered"),
        pytest.param("? AI*a | AI*a Ta | H", id="a call made again under the same id"),
        pytest.param("AI*a Ta | ? Ta", id="a result twice"),
        pytest.param("? AI*a | ? Tx", id="a result of another call"),
        pytest.param("H | ? AI*a,b Ta", id="a step that waits"),
        pytest.param("H | ? AI*a | ? AI*b", id="two calls that wait"),
        pytest.param("? T | ? T", id="results alone"),
    ],
)
def test_units_are(units: str) -> None:
    notation = units.replace("|", "").replace("?", "")
    assert grouped(shape(notation), notation.split()) == units


def test_ids_decide_before_order_does() -> None:
    # By order alone the first result would take the call without an id, and the second find none.
    history = [calling(None, "b"), result("b", "14"), result("c", "15"), human("thanks")]
    assert group(history)[0] == Unit(0, 3, "step", "assistant", complete=True)


def test_one_message_may_carry_several_results() -> None:
    use = [{"type": "tool_use", "id": id, "name": "look_up", "input": {}} for id in "ab"]
    found = [{"type": "tool_result", "tool_use_id": id, "content": "14"} for id in "ba"]
    history = [
        human("both"),
        {"role": "assistant", "content": use},
        {"role": "user", "content": found},
        human("thanks"),
    ]
    assert group(history) == [
        Unit(0, 1, "turn", "human"),
        Unit(1, 3, "step", "assistant"),
        Unit(3, 4, "turn", "human"),
    ]


def test_a_unit_knows_whose_it_is() -> None:
    roles = [unit.role for unit in group([{"role": "developer", "content": "x"}, *shape("H AI AI*a Ta Tb")])]
    assert roles == ["system", "human", "assistant", "assistant", "tool"]


def test_chat_dicts_and_messages_group_alike() -> None:
    history = shape("H AI*a Ta AI")
    messages = [
        Message("user", history[0]["content"]),
        Message("assistant", None, (ToolCall("look_up", "{}", "a"),)),
        Message("tool", "14", tool_call_id="a"),
        Message("assistant", "14"),
    ]
    assert group(messages) == group(history)


def test_an_unreadable_message_is_named_by_its_place() -> None:
    with pytest.raises(InvalidMessage, match="message 2"):
        group([human("a"), human("b"), {"content": "c"}])


@given(histories())
def test_units_cover_the_history_without_gap_or_overlap(history: list[Chat]) -> None:
    units = group(history)
    assert [index for unit in units for index in range(unit.start, unit.stop)] == list(range(len(history)))


@settings(max_examples=500)
@given(histories())
def test_a_unit_is_complete_if_a_provider_takes_it_alone(history: list[Chat]) -> None:
    for unit in group(history):
        # Something said after it, so that nothing waits.
        closed = [*history[unit.start : unit.stop], human("and then?")]
        assert unit.complete == (not problems(closed, human_first=False))
        assert (unit.kind == "turn") <= (unit.stop - unit.start == 1)


@settings(max_examples=500)
@given(histories())
def test_of_a_history_a_provider_takes_every_unit_is_complete(history: list[Chat]) -> None:
    if not problems([*history, human("and then?")], human_first=False):
        assert all(unit.complete for unit in group(history))


@settings(max_examples=200)
@given(histories(most=7))
def test_a_growing_history_is_grouped_as_at_once(history: list[Chat]) -> None:
    session = Evictor(1, SCORER, token_counter=len).session()
    for stop, message in enumerate(history, 1):
        session.append([message])
        assert list(session.view().units) == group(history[:stop])
