"""Training: deterministic, folds by run, and a verdict that says when the scorer does not win."""

from collections.abc import Sequence

import numpy as np
import pytest
from histories import Chat, assistant, calling, human, result, system
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from lre_core import Scorer, TrainingError
from lre_core.comparison import Comparison, _baselines, roc_auc
from lre_core.intervals import Interval
from lre_core.labels import moments
from lre_core.messages import as_messages
from lre_core.training import _judged, _up_to, compare, consecutive_runs, fit

Labels = NDArray[np.int64]
TOPICS = "boats bread paint rain trains music gardens winter chess maps soup lamps stairs bees".split()


def chat(seed: int, size: int = 9) -> tuple[list[Chat], Labels]:
    """A chat of `size` human turns, of which those that give a code are needed."""
    rng = np.random.default_rng(seed)
    needed = rng.permutation(np.arange(size) < size // 3).astype(np.int64)
    turns = []
    for flag in needed:
        said = list(rng.choice(TOPICS, 6))
        turns.append(human(" ".join([*said, f"KX-{rng.integers(10_000, 99_999)}" if flag else "nothing"])))
    return turns, needed


def chats(count: int) -> tuple[list[list[Chat]], list[Labels]]:
    drawn = [chat(seed) for seed in range(count)]
    return [turns for turns, _ in drawn], [labels for _, labels in drawn]


def shuffled(labels: Sequence[Labels]) -> list[Labels]:
    rng = np.random.default_rng(0)
    return [rng.permutation(one) for one in labels]


def run(name: str, opening: Sequence[Chat]) -> list[Chat]:
    """An agent's run in which every step's code is taken by the next."""
    steps = []
    for n in range(6):
        steps += [calling(f"{n}", arguments=f'{{"code": "{name}-{n}"}}'), result(f"{n}", f"next code {name}-{n + 1}")]
    return [*opening, *steps]


HISTORIES, LABELS = chats(20)


def test_fit_ranks_the_needed_units_of_chats_it_has_not_seen_first() -> None:
    scorer = fit(HISTORIES[:8], LABELS[:8])
    for turns, labels in zip(HISTORIES[8:], LABELS[8:], strict=True):
        scores = scorer.score(turns)
        assert scores[labels == 1].min() > scores[labels == 0].max()


def test_fit_twice_gives_the_same_bytes() -> None:
    histories, labels = HISTORIES[:3], LABELS[:3]
    assert fit(histories, labels).to_json() == Scorer.fit(histories, labels).to_json()


def test_fit_takes_labels_as_any_sequence_of_numbers() -> None:
    histories, labels = HISTORIES[:2], LABELS[:2]
    plain, groups = [one.tolist() for one in labels], ["all", "all"]
    flags = [one.astype(bool) for one in labels]
    assert fit(histories, plain, groups=groups).to_json() == fit(histories, flags, groups=groups).to_json()


HELLO = [human("hello"), assistant("hi")]


@pytest.mark.parametrize(
    ("histories", "labels", "reason"),
    [
        ([], [], "nothing to tell apart: 0 of 0 units are labelled as needed"),
        ([[]], [[]], "nothing to tell apart: 0 of 0 units"),
        ([HELLO, HELLO], [[0, 0], [0, 0]], "nothing to tell apart: 0 of 4 units"),
        ([HELLO, HELLO], [[1, 1], [1, 1]], "nothing to tell apart: 4 of 4 units"),
        ([HELLO, HELLO], [[0, 1]], "2 histories but 1 sequences of labels"),
        ([HELLO, HELLO], [[0, 1], [0, 1, 1]], "history 1 has 2 units but 3 labels"),
        ([HELLO, HELLO], [[0], [0, 1]], "history 0 has 2 units but 1 labels"),
        ([HELLO, HELLO], [[0, 1], [0, 2]], "history 1 has a label 2; expected 0 or 1 a unit"),
        ([HELLO, HELLO], [[0, 1], [float("nan"), 1]], "history 1 has a label nan; expected 0 or 1"),
        ([HELLO, HELLO], [[0.5, 1], [0, 1]], "history 0 has a label 0.5; expected 0 or 1"),
    ],
)
def test_fit_says_why_there_is_nothing_to_learn_from(
    histories: list[list[Chat]], labels: list[ArrayLike], reason: str
) -> None:
    with pytest.raises(TrainingError, match=reason):
        Scorer.fit(histories, labels)


OPENINGS = [
    pytest.param([system("Be brief."), human("go on"), assistant("ok")], id="long opening"),
    pytest.param([system("Be brief."), human("go on")], id="two messages before the first cut"),
]


@pytest.mark.parametrize("opening", OPENINGS)
def test_moments_of_one_run_are_one_group(opening: list[Chat]) -> None:
    keys = []
    for name in ("red", "green", "blue"):
        own = [*opening[:-1], opening[-1] | {"content": f"{opening[-1]['content']} {name}"}]
        keys.append([prefix for prefix, _ in moments(run(name, own))])
    assert all(len(prefixes) == 4 for prefixes in keys)
    prefixes = [as_messages(prefix) for part in keys for prefix in part]
    assert consecutive_runs(prefixes) == [0] * 4 + [1] * 4 + [2] * 4


def test_one_run_is_too_little_to_compare_on() -> None:
    prefixes, labels = zip(*moments(run("red", HELLO)), strict=True)
    with pytest.raises(TrainingError, match="have 1, want at least 2"):
        compare(prefixes, labels, groups=["red"] * len(prefixes))


def test_compare_says_better_than_on_a_separable_set() -> None:
    comparison = compare(HISTORIES, LABELS, folds=2)
    name = comparison.best_baseline
    assert comparison.auc["lre"].mean > 0.99
    assert set(comparison.lead) == {"recency", "random", "length", "salience"}
    assert comparison.lead[name].low > 0
    assert comparison.verdict().startswith(f"better than {name} by 0.")
    assert comparison.verdict().endswith("AUC on 20 held-out histories")


def test_compare_ranks_rivals_on_the_same_held_out_units() -> None:
    needed = {id(history): labels.astype(np.float64) for history, labels in zip(HISTORIES, LABELS, strict=True)}
    comparison = compare(HISTORIES, LABELS, folds=2, rivals={"seer": lambda history: needed[id(history)]})
    assert comparison.auc["seer"] == Interval(1, 1, 1)
    assert comparison.best_baseline == "seer"
    assert comparison.verdict().startswith("not better than seer (")
    assert comparison.verdict({"seer": "a seer"}).endswith("): keep a seer")


@pytest.mark.parametrize("name", ["lre", "recency"])
def test_a_rival_does_not_take_the_name_of_what_it_is_compared_with(name: str) -> None:
    with pytest.raises(TrainingError, match=f"a rival is named '{name}'"):
        compare(HISTORIES, LABELS, folds=2, rivals={name: lambda history: np.zeros(len(history))})


def test_groups_are_one_a_history() -> None:
    for call in (fit, compare):
        with pytest.raises(TrainingError, match="20 histories but 19 groups"):
            call(HISTORIES, LABELS, groups=range(19))


def test_compare_says_not_better_than_on_random_labels() -> None:
    comparison = compare(HISTORIES, shuffled(LABELS), folds=2)
    name = comparison.best_baseline
    assert comparison.lead[name].low <= 0
    assert comparison.verdict().startswith(f"not better than {name} (")
    assert comparison.verdict().endswith(f"AUC on 20 held-out histories): keep {name}")


@pytest.mark.parametrize(
    ("low", "verdict"), [(0.02, "better than recency by 0.10 ± 0.08"), (0.0, "not better than recency")]
)
def test_a_lead_whose_interval_reaches_zero_is_not_better(low: float, verdict: str) -> None:
    auc = {"lre": Interval(0.7, 0.6, 0.8), "random": Interval(0.5, 0.4, 0.6), "recency": Interval(0.6, 0.5, 0.7)}
    lead = {"random": Interval(0.2, 0.1, 0.3), "recency": Interval(0.1, low, 0.15)}
    assert Comparison(auc, lead, 20).verdict().startswith(verdict)
    assert Comparison(auc, lead, 19).verdict() == "too few histories to tell: have 19, want about 20"


def test_compare_says_when_there_are_too_few_histories_to_tell() -> None:
    comparison = compare(HISTORIES[:3], LABELS[:3], folds=2)
    assert comparison.verdict() == "too few histories to tell: have 3, want about 20"
    for interval in (*comparison.auc.values(), *comparison.lead.values()):
        assert interval.low <= interval.mean <= interval.high


def test_compare_counts_groups_and_leaves_out_what_cannot_be_ranked() -> None:
    histories, labels = HISTORIES[:6], LABELS[:6]
    nothing = [*labels[:4], np.zeros_like(labels[4]), np.zeros_like(labels[5])]
    groups = ["red", "red", "green", "green", "blue", "blue"]
    assert compare(histories, nothing, groups=groups, folds=2).histories == 2


def test_compare_ranks_only_units_older_than_the_recent_ones() -> None:
    histories = HISTORIES[:2]
    newest = [np.arange(len(history)) >= len(history) - 2 for history in histories]
    assert compare(histories, newest).auc["recency"].mean == 1
    assert compare(histories, newest, keep_recent=2).histories == 0
    oldest = [one | (np.arange(len(one)) < 2) for one in newest]
    assert compare(histories, oldest, keep_recent=2).auc["recency"].mean == 0


def test_strength_is_judged_by_old_units_where_there_are_any() -> None:
    long, short = np.array([1, 0, 0, 0, 0, 0, 1.0]), np.array([1, 0, 1.0])
    assert _judged([long, short]) == {0: 2}
    assert _judged([short, short]) == {0: 3, 1: 3}
    assert _judged([np.ones(3)]) == {}


def test_a_long_log_is_judged_on_whole_groups_of_a_sample() -> None:
    groups, sizes = ["a", "a", "b", "c", "c"], [3, 3, 4, 2, 2]
    assert _up_to(14, groups, sizes) == [0, 1, 2, 3, 4]
    part = _up_to(10, groups, sizes)
    assert 0 < sum(sizes[index] for index in part) <= 10
    assert {groups[index] for index in part}.isdisjoint(groups[index] for index in range(5) if index not in part)
    # Something has to be held out.
    assert len({groups[index] for index in _up_to(0, groups, sizes)}) == 2
    assert _up_to(0, ["a"], [3]) == [0]


def test_a_fit_that_judges_on_a_sample_still_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lre_core.training.SAMPLE", 30)
    scorer = fit(HISTORIES[:8], LABELS[:8])
    for turns, labels in zip(HISTORIES[8:], LABELS[8:], strict=True):
        scores = scorer.score(turns)
        assert scores[labels == 1].min() > scores[labels == 0].max()


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2))
def test_auc_is_the_share_of_pairs_in_the_right_order(units: list[tuple[bool, int]]) -> None:
    needed, rest = [s for y, s in units if y], [s for y, s in units if not y]
    assume(needed and rest)
    right = sum((a > b) + (a == b) / 2 for a in needed for b in rest)
    found = roc_auc(np.array([y for y, _ in units]), np.array([s for _, s in units]))
    assert np.isclose(found, right / (len(needed) * len(rest)))


def test_the_random_ranking_is_another_for_each_history() -> None:
    aucs = [compare(HISTORIES[at : at + 10], LABELS[at : at + 10], folds=2).auc["random"].mean for at in (0, 10)]
    assert aucs[0] != aucs[1]
    orders = {tuple(np.argsort(_baselines(as_messages(turns))["random"])) for turns in HISTORIES}
    assert len(orders) == len(HISTORIES)
