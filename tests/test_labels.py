"""Labels without annotation: what the rest of a history turned out to need, and nothing else."""

import numpy as np
import pytest
from histories import Chat, assistant, calling, histories, human, result, system
from hypothesis import given

from lre_core import group
from lre_core.labels import answer_overlap, from_log, identifier_reuse, identifiers, matched_turns, moments


def step(n: int, arguments: str, answer: str) -> list[Chat]:
    return [calling(f"call_{n}", arguments=arguments), result(f"call_{n}", answer)]


RUN = [
    system("You work for office_77."),
    human("Cancel the order of Mara, please."),
    *step(1, '{"user": "mara"}', "token tk-77f1, spare zz-9911"),
    *step(2, '{"page": 2}', "page two is empty"),
    assistant("Nothing there yet."),
    *step(3, '{"token": "tk-77f1"}', "cancelled"),
    assistant("Cancelled."),
]


def labelled(run: list[Chat], cuts: int = 100) -> dict[int, list[int]]:
    """The labels of every moment, by how many messages its prefix has."""
    return {len(prefix): labels.tolist() for prefix, labels in moments(run, cuts)}


def test_a_token_taken_by_a_later_call_labels_the_step_that_introduced_it() -> None:
    assert labelled(RUN) == {2: [0, 0], 4: [0, 0, 1], 7: [0, 0, 1, 0, 0]}


def test_what_was_taken_before_the_cut_only_is_not_needed_any_more() -> None:
    run = [*RUN, *step(4, "{}", "bye")]
    assert labelled(run)[10] == [0, 0, 0, 0, 0, 0, 0]


def test_a_prefix_holds_the_callers_own_messages() -> None:
    for prefix, _ in moments(RUN):
        assert all(mine is yours for mine, yours in zip(prefix, RUN, strict=False))


def test_at_most_as_many_cuts_as_asked_for_from_the_first_to_the_last() -> None:
    run = [human("go"), assistant("going")] + [m for n in range(21) for m in step(n, "{}", "fine")]
    assert list(labelled(run, cuts=3)) == [2, 22, 42]
    assert list(labelled(run, cuts=1)) == [2]


def test_a_system_message_introduces_nothing() -> None:
    run = [*RUN, *step(4, '{"office": "office_77"}', "ok")]
    assert labelled(run)[10] == [0] * 7
    told_by_a_person = [human("You work for office_77."), *run[1:]]
    assert labelled(told_by_a_person)[10] == [1, *[0] * 6]


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        ('{"order_id": "x"}', 0),
        ('{"name": "order_id"}', 1),
        ('{"filter": {"order_id": ["y", {"order_id": 2}]}}', 0),
        ('{"filter": {"names": ["y", {"deep": "order_id"}]}}', 1),
        ("order_id is not JSON", 1),
    ],
)
def test_names_of_arguments_do_not_count_but_values_do(arguments: str, needed: int) -> None:
    run = [human("Tell me the order_id."), assistant("Looking."), *step(1, arguments, "ok")]
    assert labelled(run) == {2: [needed, 0]}


def test_a_run_without_calls_gives_no_moments() -> None:
    assert moments([human("token tk-77f1"), assistant("yes"), human("tk-77f1 again"), assistant("yes")]) == []


@given(histories())
def test_every_moment_has_one_label_a_unit_of_its_prefix(history: list[Chat]) -> None:
    for prefix, labels in moments(history):
        assert len(labels) == len(group(prefix)) >= 2
        assert prefix == history[: len(prefix)]
        assert history[len(prefix)]["role"] == "assistant"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("token tk-77f1, then ORD_2291.", {"tk-77f1", "ORD_2291"}),
        ("see a1@b.io on 2026-11-30", {"a1@b.io", "2026-11-30"}),
        ("14 books, 3.5 stars, 999 of 1000", {"1000"}),
        ("plain words, Mara, OK, a_b", set()),
        ("SHOUTED and get_order", {"SHOUTED", "get_order"}),
    ],
)
def test_identifiers_are_what_somebody_may_have_to_repeat(text: str, found: set[str]) -> None:
    assert identifiers(text) == found


@pytest.mark.parametrize(
    ("least", "needed"), [(1, [1, 1, 0, 0, 0]), (2, [1, 0, 0, 0, 0]), (3, [1, 0, 0, 0, 0]), (4, [0] * 5)]
)
def test_identifier_reuse_counts_the_later_steps(least: int, needed: list[int]) -> None:
    run = [
        *step(1, "{}", "token tk-77f1"),
        *step(2, '{"token": "tk-77f1"}', "order ORD_2291"),
        *step(3, '{"token": "tk-77f1"}', "nothing"),
        *step(4, '{"token": "tk-77f1"}', "tk-77f1 tk-77f1"),
        assistant("ORD_2291 it is."),
    ]
    assert identifier_reuse(run, least).tolist() == needed


def test_identifier_reuse_asks_for_three_later_steps_of_one_identifier() -> None:
    texts = ["aa-11 and bb-22", "aa-11", "bb-22", "aa-11 bb-22"]
    assert identifier_reuse([human(text) for text in texts]).sum() == 0
    assert identifier_reuse([human(text) for text in [*texts, "bb-22"]]).tolist() == [1, 0, 0, 0, 0]


CHAT = [
    human("My sister Mara lives in Lisbon and paints boats."),
    assistant("Lovely! What else shall we talk about?"),
    human("The weather has been awful for days now."),
    assistant("I am sorry to hear about the weather."),
    human("My dentist is doctor Okafor, on Hill Street."),
    assistant("Noted, let me know if you need anything about it."),
]
CHAT_JA = [
    human("妹のマラはリスボンに住んでいて、船の絵を描いています。"),
    assistant("素敵ですね！ほかに何を話しましょうか？"),
    human("最近ずっと天気が悪いです。"),
    assistant("天気が悪いのは残念ですね。"),
    human("歯医者は丘通りの大川先生です。"),
    assistant("わかりました。何かあれば言ってください。"),
]
QUESTIONS = [
    {"question": "Where does Mara live?", "answer": "In Lisbon."},
    {"question": "Who is the dentist?", "answer": "Okafor."},
]
QUESTIONS_JA = [
    {"question": "マラはどこに住んでいますか？", "answer": "リスボンです。"},
    {"question": "歯医者は誰ですか？", "answer": "大川先生です。"},
]


@pytest.mark.parametrize(("chat", "questions"), [(CHAT, QUESTIONS), (CHAT_JA, QUESTIONS_JA)], ids=["en", "ja"])
def test_answers_are_matched_to_the_turns_that_hold_them(chat: list[Chat], questions: list[dict[str, str]]) -> None:
    matches = [match for match in matched_turns(chat, questions) if match]
    assert [match.unit for match in matches] == [0, 4]
    assert all(0.2 < match.share <= 1 for match in matches)
    assert answer_overlap(chat, questions).tolist() == [1, 0, 0, 0, 1, 0]
    assert answer_overlap(chat, questions[1:]).tolist() == [0, 0, 0, 0, 1, 0]


def test_a_question_that_shares_no_word_matches_nothing() -> None:
    stranger = {"question": "Qué comió Zoltán?", "answer": "Gulasch"}
    assert matched_turns(CHAT, [stranger, QUESTIONS[0]])[0] is None
    assert answer_overlap(CHAT, [stranger]).sum() == 0


def test_the_first_letters_of_a_word_are_no_other_word() -> None:
    chat = [human("Evil things, all of them."), human("She lives in Lisbon.")]
    (match,) = matched_turns(chat, [{"question": "live", "answer": ""}])
    assert match is None
    (match,) = matched_turns(chat, [{"question": "livestock", "answer": "lives"}])
    assert match is not None
    assert match.unit == 1


def test_a_system_message_is_in_view_anyway_and_never_needed() -> None:
    rules = system("Mara lives in Lisbon; the dentist is Okafor.")
    assert answer_overlap([rules, *CHAT], QUESTIONS).tolist() == [0, 1, 0, 0, 0, 1, 0]


def test_a_match_below_the_least_share_labels_nothing() -> None:
    (match,) = matched_turns(CHAT, QUESTIONS[:1])
    assert match is not None
    assert answer_overlap(CHAT, QUESTIONS[:1], min_share=match.share).sum() == 1
    assert answer_overlap(CHAT, QUESTIONS[:1], min_share=np.nextafter(match.share, 1)).sum() == 0


def test_no_history_matches_nothing() -> None:
    assert matched_turns([], QUESTIONS) == [None, None]
    assert answer_overlap([], QUESTIONS).shape == (0,)


def test_from_log_labels_a_chat_by_what_its_later_turns_take_up() -> None:
    log = [
        *CHAT,
        human("Suggest a film?"),
        assistant("Try Stalker tonight."),
        human("Remind me where my sister Mara lives?"),
        assistant("Mara lives in Lisbon, where she paints boats."),
        human("And who is my dentist on Hill Street?"),
        assistant("Doctor Okafor."),
    ]
    pairs = from_log(log)
    assert [prefix for prefix, _ in pairs] == [log[:6], log[:8], log[:10]]
    assert pairs[0][1].tolist() == [1, 0, 0, 0, 1, 0]
    assert pairs[1][1].tolist() == [1, 0, 0, 0, 1, 0, 0, 0]
    # By the third cut Mara has been asked for; only the dentist is still to come.
    assert pairs[2][1].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]


def test_from_log_needs_nothing_that_the_units_right_before_say_too() -> None:
    answer = assistant("Doctor Okafor, on Hill Street.")
    talk = [human("Suggest a film?"), assistant("Try Stalker tonight.")]
    asked = [*CHAT, *talk, *talk, human("Who is my dentist?"), answer, *talk, human("Which dentist again?"), answer]
    # Before the second question the first answer says all of it, and is near.
    assert [labels[4] for _, labels in from_log(asked)] == [1, 1, 0, 0]


def test_from_log_takes_no_chance_match_for_a_need() -> None:
    rng = np.random.default_rng(0)
    words = [f"{a}{b}{c}" for a in ("ka", "lo", "mi", "ru") for b in ("ben", "dor", "sil", "tam") for c in "aeiou"]
    said = [" ".join(rng.choice(words, 25)) for _ in range(300)]
    chat = [(human if n % 2 == 0 else assistant)(text) for n, text in enumerate(said)]
    assert sum(labels.sum() for _, labels in from_log(chat)) == 0
    told = "Mara keeps the spare key under the third flowerpot by the shed."
    recalled = [*chat[:10], human(told), *chat[11:200], human("Where is it?"), assistant(f"As you said: {told}")]
    needed = [labels for _, labels in from_log(recalled)]
    assert [labels[10] for labels in needed] == [1] * 4
    assert sum(labels.sum() for labels in needed) <= 5


def test_from_log_prefers_the_turn_that_said_it_to_a_reply_that_echoes_it() -> None:
    echo = (
        "Your sister Mara lives in Lisbon and paints boats: here is how to ship boats from Lisbon, "
        + "step by step " * 90
    )
    filler = [human("Suggest a film?"), assistant("Try Stalker tonight.")] * 3
    log = [CHAT[0], assistant(echo), *filler, human("What does Mara paint?"), assistant("Boats, in Lisbon.")]
    assert all(labels[0] and not labels[1] for _, labels in from_log(log))


def test_from_log_cuts_a_run_with_calls_at_its_moments() -> None:
    found, expected = from_log(RUN, cuts=3), moments(RUN, cuts=3)
    assert [(prefix, labels.tolist()) for prefix, labels in found] == [(p, labels.tolist()) for p, labels in expected]


def test_from_log_of_a_chat_too_short_to_cut_gives_nothing() -> None:
    assert from_log(CHAT) == []
