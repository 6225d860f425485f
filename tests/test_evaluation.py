"""What replays say of policies: token counts that add up, prompts a provider would take, evidence that is there."""

from typing import Any

import numpy as np
import pytest
from histories import SCORER, Chat, assistant, calling, histories, human, problems, quarter, result, system
from hypothesis import given

from lre_core import Evictor, Scorer, group, labels
from lre_core.comparison import rank
from lre_core.evaluation import Prompt, Replay, Simulation, departures

POLICIES = ["everything", "recency", "lre"]


def evictor(budget: int, **settings: Any) -> Evictor:
    return Evictor(budget, scorer=SCORER, token_counter=quarter, whole_turn=False, **settings)


def costs(history: list[Chat]) -> list[int]:
    chooser = evictor(1)
    from lre_core.messages import as_message

    return [chooser.message_cost(as_message(message)) for message in history]


def run(steps: int) -> list[Chat]:
    """A run whose first step gives a token that the last step takes."""
    history = [system("Be brief."), human("Book the ferry, please.")]
    for n in range(steps):
        arguments = '{"token": "tk-77f1"}' if n == steps - 1 else f'{{"page": {n}}}'
        history += [calling(f"c{n}", arguments=arguments), result(f"c{n}", "token tk-77f1" if not n else "words " * 20)]
    return [*history, assistant("Booked.")]


@given(histories(most=12))
def test_a_prompt_costs_its_messages_and_shares_what_it_begins_with(history: list[Chat]) -> None:
    replay, tokens = Replay(history, evictor(120)), costs(history)
    for policy in POLICIES:
        before: list[int] = []
        for prompt in replay.prompts[policy]:
            now = list(prompt.kept)
            assert now == sorted(set(now))
            assert prompt.tokens == sum(tokens[index] for index in now)
            common = 0
            while common < min(len(before), len(now)) and before[common] == now[common]:
                common += 1
            assert prompt.shared == sum(tokens[index] for index in now[:common])
            before = now


@given(histories(most=12, broken=False))
def test_recency_keeps_the_budget_and_what_a_provider_takes(history: list[Chat]) -> None:
    replay, tokens = Replay(history, evictor(120)), costs(history)
    for prompt in replay.prompts["recency"]:
        shown = [history[index] for index in prompt.kept]
        so_far = history[: prompt.size]
        humans = [index for index, message in enumerate(so_far) if group([message])[0].role == "human"]
        if humans:
            assert problems(shown) == []
            systems = [index for index, message in enumerate(so_far) if message["role"] in ("system", "developer")]
            must = sum(tokens[index] for index in {*systems, humans[-1]})
            assert prompt.tokens <= max(120, must)


def test_recency_shows_the_newest_steps_with_the_words_they_belong_to() -> None:
    history = run(12)
    last = Replay(history, evictor(200)).prompts["recency"][-1]
    assert list(last.kept[:2]) == [0, 1]
    assert list(last.kept[2:]) == list(range(last.kept[2], last.size))
    assert last.kept[2] > 2


def test_a_prompt_before_every_reply_and_one_for_a_reply_still_to_come() -> None:
    history = run(3)
    assert [prompt.size for prompt in Replay(history, evictor(999)).prompts["lre"]] == [2, 4, 6, 8]
    assert [prompt.size for prompt in Replay(history[:-1], evictor(999)).prompts["lre"]] == [2, 4, 6, 8]
    assert Replay([], evictor(999)).prompts["lre"] == []


def test_evidence_is_the_share_of_needed_units_in_view_where_something_had_to_go() -> None:
    history = run(12)
    replay = Replay(history, evictor(200))
    moments = replay.moments(labels.from_log(history))
    assert moments
    step = next(index for index, unit in enumerate(replay.units) if unit.kind == "step")
    for moment in moments:
        size = replay.prompts["everything"][moment.prompt].size
        assert sum(costs(history)[:size]) > 200
        assert (moment.needed, moment.share["everything"], moment.share["hindsight"]) == ((step,), 1.0, 1.0)
        for policy in ("recency", "lre"):
            in_view = replay.units[step].start in replay.prompts[policy][moment.prompt].kept
            assert moment.share[policy] == in_view
    assert moments[-1].share["recency"] == 0.0
    assert Replay(history, evictor(5000)).moments(labels.from_log(history)) == []


def test_hindsight_is_bounded_by_the_budget() -> None:
    history = run(12)
    history[3] = result("c0", "token tk-77f1" + " words" * 100)
    moments = Replay(history, evictor(120)).moments(labels.from_log(history))
    assert {moment.share["hindsight"] for moment in moments} == {0.0}


def test_what_must_stay_raises_hindsight_too_where_it_exceeds_the_budget() -> None:
    history = run(12)
    replay = Replay(history, evictor(12))
    moments = replay.moments(labels.from_log(history))
    assert all(replay.prompts["lre"][moment.prompt].tokens > 12 for moment in moments)
    assert {moment.share["hindsight"] for moment in moments} == {1.0}


@given(histories(most=12, broken=False))
def test_no_policy_beats_hindsight(history: list[Chat]) -> None:
    replay = Replay(history, evictor(120))
    for moment in replay.moments(labels.from_log(history)):
        prompts = {policy: replay.prompts[policy][moment.prompt] for policy in ("recency", "lre")}
        for policy, prompt in prompts.items():
            assert moment.share[policy] <= moment.share["hindsight"], (policy, prompt.tokens)


@given(histories(most=12))
def test_a_unit_departs_once_with_the_reason_its_view_gave(history: list[Chat]) -> None:
    replay = Replay(history, evictor(120))
    gone = list(departures(replay))
    assert len({unit for unit, *_ in gone}) == len(gone)
    for unit, number, reason, _ in gone:
        assert replay.units[unit].start not in replay.prompts["lre"][number].kept
        assert reason == replay.views[number].reason(unit)
        if number and replay.prompts["lre"][number - 1].size >= replay.units[unit].stop:
            assert replay.units[unit].start in replay.prompts["lre"][number - 1].kept


def test_a_cached_prefix_costs_a_tenth() -> None:
    assert Prompt(3, [0, 1], tokens=100, shared=80).cost() == pytest.approx(28)
    assert Prompt(3, [0, 1], tokens=100, shared=80).cost(0.5) == pytest.approx(60)


def test_a_simulation_adds_up_its_replays() -> None:
    simulation = Simulation(200)
    replays = [Replay(run(steps), evictor(200)) for steps in (2, 12, 14)]
    for number, (replay, steps) in enumerate(zip(replays, (2, 12, 14), strict=True)):
        simulation.add(replay, replay.moments(labels.from_log(run(steps))), number)
    outcomes = simulation.outcomes()
    assert (simulation.histories, simulation.outgrown) == (3, 2)
    for policy in POLICIES:
        prompts = [prompt for replay in replays for prompt in replay.prompts[policy]]
        assert outcomes[policy].tokens == sum(prompt.tokens for prompt in prompts)
        assert outcomes[policy].cost == pytest.approx(sum(prompt.cost() for prompt in prompts))
        assert outcomes[policy].peak == max(prompt.tokens for prompt in prompts)
        assert outcomes[policy].over == sum(prompt.tokens > 200 for prompt in prompts)
    for policy, outcome in outcomes.items():
        assert outcome.evidence is not None, policy
        mean, low, high = outcome.evidence
        assert 0 <= low <= mean <= high <= 1
    assert outcomes["everything"].evidence == outcomes["hindsight"].evidence == (1.0, 1.0, 1.0)


def test_a_simulation_without_labels_says_nothing_of_evidence() -> None:
    simulation = Simulation(200)
    simulation.add(Replay([human("hi"), assistant("hello")], evictor(200)), [], "a")
    assert {policy: outcome.evidence for policy, outcome in simulation.outcomes().items()} == dict.fromkeys(POLICIES)


def test_rank_compares_any_scores_with_the_simple_rankings() -> None:
    cases = [pair for steps in (8, 9, 10) for pair in labels.from_log(run(steps))]
    prefixes, needed = [prefix for prefix, _ in cases], [label for _, label in cases]
    groups = list(range(len(cases)))
    best = {id(prefix): label.astype(float) for prefix, label in cases}
    comparison = rank(lambda history: best[id(history)], prefixes, needed, groups=groups)
    assert comparison.auc["lre"].mean == 1.0
    assert comparison.auc["recency"].mean < 0.5
    assert comparison.histories == sum(0 < label.sum() < len(label) for label in needed)
    recent = rank(lambda history: np.zeros(len(group(history))), prefixes, needed, groups=groups, keep_recent=99)
    assert recent.histories == 0


def test_a_bundled_scorer_finds_the_token_that_recency_loses() -> None:
    history = run(24)
    chooser = Evictor(400, scorer=Scorer.from_pretrained("agent"), token_counter=quarter, whole_turn=False)
    moments = Replay(history, chooser).moments(labels.from_log(history))
    assert moments[-1].share["lre"] > moments[-1].share["recency"]
