"""What has left can be found again, by a query; the view is not touched by it."""

import logging
import subprocess
import sys

import pytest
from histories import SCORER, Chat, assistant, calling, growing, human, quarter, result, same

from lre_core import Evictor, InvalidSetting, MissingExtra, Recalled, View

HISTORY: list[Chat] = [
    human("Sign me in as Ines, pin 4471."),
    calling("a", arguments='{"user": "ines.quay4"}'),
    result("a", '{"session": "dpt_7Q2mX9vLr4"}'),
    assistant("Signed in. " * 20),
    human("The ferry to Horta leaves when?"),
    assistant("At nine, if the wind allows. " * 20),
    human("来週の会議は大阪で開きます"),
    assistant("わかりました。" * 20),
    human("การประชุมครั้งหน้าจัดที่เชียงใหม่"),
    assistant("ok " * 30),
    human("And now?"),
]


def evictor(budget: int = 6) -> Evictor:
    return Evictor(budget, SCORER, 0, token_counter=quarter)


def found(recalled: list[Recalled]) -> list[int]:
    return [unit.start for unit in recalled]


@pytest.fixture(params=["alone", "session"])
def view(request: pytest.FixtureRequest) -> View:
    shown = evictor().view(HISTORY, None if request.param == "alone" else {})
    assert shown.kept == [10]
    return shown


@pytest.mark.parametrize(
    ("query", "start"),
    [
        ("When does the FERRY to Horta leave?", 4),
        ("dpt_7Q2mX9vLr4", 1),
        ("what is the session of ines.quay4", 1),
        ("大阪の会議", 6),
        ("เชียงใหม่", 8),
        ("wind", 5),
    ],
)
def test_what_left_is_found_by_its_words_in_any_script(view: View, query: str, start: int) -> None:
    best = view.recall(query)[0]
    assert best.start == start
    assert best.score > 0
    assert all(message is HISTORY[n] for message, n in zip(best.messages, range(best.start, best.stop), strict=True))


def test_a_step_is_found_whole(view: View) -> None:
    step = view.recall("dpt_7Q2mX9vLr4")[0]
    assert (step.start, step.stop, step.messages) == (1, 3, HISTORY[1:3])


def test_the_best_come_first_at_most_k_and_only_what_shares_a_word(view: View) -> None:
    recalled = view.recall("in ferry wind Horta")
    scores = [unit.score for unit in recalled]
    assert scores == sorted(scores, reverse=True)
    assert 1 < len(recalled) <= 5
    assert view.recall("in ferry wind Horta", k=1) == recalled[:1]
    assert view.recall("submarine") == view.recall("") == view.recall("?!") == []


def test_of_equals_the_newer_comes_first() -> None:
    history = [human("the code is 14"), assistant("x " * 60), human("the code is 14"), assistant("y " * 60), human("?")]
    assert found(evictor(4).view(history).recall("code")) == [2, 0]


def test_what_is_in_view_is_not_found() -> None:
    history = [*HISTORY, human("The ferry again: Horta, when?")]
    view = evictor().view(history)
    assert 11 in view.kept
    assert 11 not in found(view.recall("ferry to Horta"))
    assert evictor(10_000).view(history).recall("ferry to Horta") == []


def test_a_session_finds_what_left_it_without_deciding_anything() -> None:
    session = evictor(200).session()
    session.append(HISTORY)
    assert session.recall("ferry Horta") == []
    view = session.view()
    assert found(session.recall("ferry Horta dpt_7Q2mX9vLr4 大阪")) == found(
        view.recall("ferry Horta dpt_7Q2mX9vLr4 大阪")
    )
    left = set(view.evicted)
    assert left
    state = session.state
    session.append([assistant("The ferry to Horta left. " * 30), human("ferry?")])
    assert set(found(session.recall("ferry Horta in", k=20))) <= left
    assert session.state == state
    session.view()
    assert 11 in found(session.recall("ferry Horta", k=20))


def test_a_restored_session_finds_what_left_before() -> None:
    session = evictor().session()
    session.append(HISTORY)
    session.view()
    restored = evictor().session(session.state)
    restored.append(HISTORY[:5])
    assert restored.recall("ferry to Horta") == []
    restored.append(HISTORY[5:])
    assert restored.recall("ferry to Horta") == session.recall("ferry to Horta") != []


def test_a_spent_step_of_an_excluded_tool_is_found() -> None:
    session = Evictor(10_000, SCORER, token_counter=quarter, exclude_tools=["look_up"]).session()
    session.append(HISTORY)
    assert session.view().evicted == [1, 2]
    assert found(session.recall("dpt_7Q2mX9vLr4")) == [1]


def test_asking_changes_no_view_and_no_state() -> None:
    plain, asking = evictor(120).session(), evictor(120).session()
    for message in HISTORY * 3:
        plain.append([message])
        asking.append([message])
        asking.recall("ferry to Horta")
        asking.view().recall("ferry to Horta")
        assert same(plain.view(), asking.view())
    assert plain.state == asking.state


def test_the_index_follows_what_leaves() -> None:
    texts = [f"word{n} " + "filler " * 20 for n in range(60)]
    session = evictor(300).session()
    for n, text in enumerate(texts):
        session.append([human(text)])
        view = session.view()
        for index in range(n + 1):
            assert found(session.recall(f"word{index}")) == ([index] if index in view.evicted else [])


@pytest.mark.parametrize(("query", "k"), [(None, 5), (14, 5), ("ferry", 0), ("ferry", 2.5), ("ferry", True)])
def test_a_wrong_query_or_number_is_refused(query: str, k: int) -> None:
    session = evictor().session()
    session.append(HISTORY)
    for ask in (session.recall, session.view().recall):
        with pytest.raises(InvalidSetting, match=r"expected text|whole number of units, 1 or more"):
            ask(query, k)


def test_without_the_extra_recall_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    view = evictor().view(HISTORY)
    with pytest.raises(MissingExtra, match=r"pip install 'lre-memory\[recall\]'"):
        view.recall("ferry")


def test_recall_is_silent(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert evictor().view(HISTORY).recall("ferry")
    assert [record for record in caplog.records if record.name.startswith("bm25s")] == []
    assert capfd.readouterr() == ("", "")


def test_a_session_that_is_not_asked_loads_no_index() -> None:
    script = (
        "import sys, lre_core\n"
        "session = lre_core.Evictor(40, token_counter=len).session()\n"
        "session.append([{'role': 'user', 'content': 'hello ' * 9}] * 9)\n"
        "assert session.view().evicted and session.view().explain()\n"
        "assert 'bm25s' not in sys.modules\n"
        "assert session.recall('hello') and 'bm25s' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_in_a_notebook_nothing_warns() -> None:
    script = (
        "import warnings, IPython, ipykernel.zmqshell, lre_core\n"
        "view = lre_core.Evictor(40, token_counter=len).view([{'role': 'user', 'content': 'hello ' * 9}] * 9)\n"
        "with warnings.catch_warnings(record=True) as shown:\n"
        "    warnings.simplefilter('always')\n"
        "    assert view.recall('hello')\n"
        "assert not shown, shown[0]\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_recall_finds_the_one_message_among_many_views() -> None:
    history = [(human, assistant)[n % 2](f"{n} filler text about books " * 6) for n in range(200)]
    history[31] = assistant("The locker code is 7741-QX. " + "It is on the second floor. " * 8)
    *_, (_, view) = growing(evictor(400), history)
    assert 31 in view.evicted
    assert found(view.recall("which code has the locker?", k=1)) == [31]


def test_a_whole_history_is_searched_whether_or_not_it_is_in_view() -> None:
    roomy = evictor(10_000)
    assert roomy.view(HISTORY, {}).recall("ferry") == []
    for query, start in (("ferry to Horta", 4), ("dpt_7Q2mX9vLr4", 1), ("now", 10)):
        best = roomy.search(HISTORY, query, 1)
        assert found(best) == [start]
        assert best[0].messages[0] is HISTORY[start]
    assert roomy.search([], "ferry") == []
    with pytest.raises(InvalidSetting, match="k is 0"):
        roomy.search(HISTORY, "ferry", 0)


def test_what_was_found_is_quoted_with_its_place_its_speaker_and_its_calls() -> None:
    recalled = evictor().search(HISTORY, "dpt_7Q2mX9vLr4 Horta")
    assert evictor().quote(recalled, 1_000).split("\n\n")[0] in (
        '[messages 2-3]\nassistant: \nlook_up({"user": "ines.quay4"})\ntool: {"session": "dpt_7Q2mX9vLr4"}',
        "[message 5]\nuser: The ferry to Horta leaves when?",
    )


def test_a_quote_that_does_not_fit_is_cut_and_says_so() -> None:
    recalled = evictor().search(HISTORY, "wind", 1)
    whole = evictor().quote(recalled, 1_000)
    cut = evictor().quote(recalled, 20)
    shown, _, note = cut.partition("\n[cut here: ")
    assert whole.startswith(shown)
    assert 70 <= len(shown) <= 80
    assert note == f"{len(whole) - len(shown):,} more characters]"
    assert evictor().quote(recalled, 0) == evictor().quote([], 20) == ""
