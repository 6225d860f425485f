"""The scorer: what is saved is what scores; equal to scikit-learn's; damaged files are refused with the reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import SCORER, VOCABULARY, Chat, histories, human, shape
from hypothesis import given, settings
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from lre_core import InvalidScorer, Scorer, UnknownScorer, group
from lre_core.features import FEATURES, Features
from lre_core.grams import WORD_BUCKETS, WordMatrix
from lre_core.messages import as_messages
from lre_core.scorer import CLIP, bundled_scorers
from lre_core.training import CARRIES_OVER, STATISTIC_PRIOR, USUAL, WORD_PRIOR

RUNS = [
    shape("S H AI*a Ta AI H AI*b Tb AI H AI", 9),
    shape("H AI H AI*a,b Ta Tb AI*c Tc AI H", 14),
    shape("S H AI*a Ta AI*b Tb AI*c Tc AI H AI*d Td", 6),
    shape("H AI H AI H AI H AI H", 11),
]


def needed(run: list[Chat]) -> NDArray[np.int64]:
    """Units that name Mara or ask a question, and every seventh, so that no weights are perfect."""
    units = group(run)
    texts = [" ".join(str(message["content"]) for message in run[unit.start : unit.stop]) for unit in units]
    return np.array([("Mara" in text and "?" in text) or not n % 7 for n, text in enumerate(texts)], np.int64)


@pytest.fixture(scope="module")
def fitted() -> Scorer:
    return Scorer.fit(RUNS, [needed(run) for run in RUNS], groups=["all"] * len(RUNS))


def parts_of(scorer: Scorer) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(scorer.to_json())
    return parts


def features_of(run: list[Chat]) -> Features:
    messages = as_messages(run)
    features = Features()
    features.extend(messages, group(messages))
    return features


def design_of(runs: list[list[Chat]], salt: int) -> csr_matrix:
    """What scikit-learn is given: statistics as standard deviations from the mean, clipped, and words."""
    rows = [features_of(run) for run in runs]
    statistics = np.vstack([row.matrix() for row in rows])
    varies = statistics.std(axis=0) > 1e-9
    standardised = np.zeros_like(statistics)
    standardised[:, varies] = (statistics - statistics.mean(axis=0))[:, varies] / statistics.std(axis=0)[varies]
    words = WordMatrix([row.said for row in rows]).hashed(salt)
    return hstack([csr_matrix(np.clip(standardised, -CLIP, CLIP)), words]).tocsr()


def test_probabilities_equal_those_of_scikit_learn_with_the_same_weights(fitted: Scorer) -> None:
    model = LogisticRegression()
    model.classes_, model.intercept_ = np.array([0, 1]), np.array([fitted.bias])
    model.coef_ = np.concatenate([fitted.weights, fitted.words * fitted.word_scale])[np.newaxis]
    expected = model.predict_proba(design_of(RUNS, fitted.salt))[:, 1]
    assert np.ptp(expected) > 0.2
    np.testing.assert_allclose(np.concatenate([fitted.score(run) for run in RUNS]), expected, rtol=0, atol=1e-3)


def test_six_bits_a_weight_move_a_fitted_probability_by_less_than_a_hundredth(fitted: Scorer) -> None:
    prior = np.ones(len(FEATURES) + WORD_BUCKETS)
    prior[[name not in CARRIES_OVER for name in FEATURES] + [False] * WORD_BUCKETS] = STATISTIC_PRIOR
    prior[len(FEATURES) :] = WORD_PRIOR
    design = design_of(RUNS, 0).multiply(prior).tocsr()
    # All runs are one group, so nothing could be held out to choose another strength or salt by.
    model = LogisticRegression(C=USUAL, max_iter=2000).fit(design, np.concatenate([needed(r) for r in RUNS]))
    moved = np.abs(np.concatenate([fitted.score(run) for run in RUNS]) - model.predict_proba(design)[:, 1])
    assert moved.max() < 1e-2
    assert moved.mean() < 2e-3


def test_a_saved_scorer_scores_the_same_and_saves_to_the_same_bytes(fitted: Scorer, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    for scorer in (fitted, SCORER):
        scorer.save(first)
        loaded = Scorer.load(first)
        loaded.save(second)
        assert first.read_bytes() == second.read_bytes()
        for run in RUNS:
            assert loaded.score(run).tolist() == scorer.score(run).tolist()


def test_a_saved_scorer_is_at_most_four_kilobytes(fitted: Scorer) -> None:
    size = len(FEATURES)
    longest = np.full(size, -0.1234)
    wide = Scorer.quantised(-1.234e-5, longest, longest, longest, np.linspace(-1e-5, 1e-5, WORD_BUCKETS), 99)
    assert "-0.1234,-0.1234" in wide.to_json()
    for scorer in (fitted, wide):
        assert len(scorer.to_json().encode()) <= 4096


def test_a_saved_scorer_contains_no_word_of_its_training_text(fitted: Scorer) -> None:
    weights = fitted.to_json().lower()
    long_words = [word.lower() for word in VOCABULARY if len(word) >= 4]
    assert len(long_words) > 10
    assert [word for word in long_words if word in weights] == []


@given(histories())
@settings(max_examples=50)
def test_scores_are_probabilities_one_a_unit(history: list[Chat]) -> None:
    scores = SCORER.score(history)
    assert scores.shape == (len(group(history)),)
    assert ((scores > 0) & (scores < 1)).all()


@given(histories())
@settings(max_examples=50)
def test_explain_adds_up_to_the_log_odds_less_the_bias(history: list[Chat]) -> None:
    scores, reasons = SCORER.score(history), SCORER.explain(history)
    assert len(reasons) == len(scores)
    for score, reason in zip(scores, reasons, strict=True):
        assert np.isclose(sum(reason.values()), np.log(score / (1 - score)) - SCORER.bias, atol=1e-9)
        assert set(reason) <= {*FEATURES, "words"}
        effects = [abs(effect) for effect in reason.values()]
        assert effects == sorted(effects, reverse=True)
        assert all(effects)


def test_words_of_a_script_that_was_not_learned_from_add_nothing(fitted: Scorer) -> None:
    assert set(fitted.scripts) == {"latin", "kana", "han"}
    explain = replace(fitted, scripts=("latin",)).explain
    latin, kana, both = (
        explain([human(text)])[0] for text in ("Mara paid", "まらがはらった", "Mara まらがはらった paid")
    )
    assert "words" not in kana
    assert 0 < both["words"] / latin["words"] < 1


def test_no_single_feature_decides_however_far_from_training_a_history_lies() -> None:
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("log_words")] = 1.0
    ones, zeros = np.ones(len(FEATURES)), np.zeros(len(FEATURES))
    scorer = Scorer.quantised(0.0, zeros, ones * 100, weights, np.zeros(WORD_BUCKETS))
    (score,) = scorer.score([{"role": "user", "content": "word " * 5_000}])
    assert np.isclose(score, 1 / (1 + np.exp(-CLIP)))


def test_scores_of_no_messages_are_none() -> None:
    assert SCORER.score([]).shape == (0,)
    assert SCORER.explain([]) == []


def without(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda parts: {name: value for name, value in parts.items() if name != key}


def but(**changes: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda parts: parts | changes


def words_of(count: int) -> str:
    return "g" * count


ONES = [1] * len(FEATURES)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without("bias"), "not a scorer: it lacks bias"),
        (without("words"), "not a scorer: it lacks words"),
        (but(format=99), "format version 99; this package reads version 2"),
        (but(format=None), "format version None"),
        (but(features=0), "features version 0; this package reads version"),
        (but(mean=ONES[1:]), rf"mean has shape \({len(FEATURES) - 1},\), expected \({len(FEATURES)},\)"),
        (but(scale=[*ONES, 1]), rf"scale has shape \({len(FEATURES) + 1},\)"),
        (but(weights=[]), r"weights has shape \(0,\)"),
        (but(weights=[ONES]), r"weights has shape \(1, "),
        (but(weights=1), r"weights has shape \(\)"),
        (but(words=words_of(WORD_BUCKETS - 1)), rf"words has shape \({WORD_BUCKETS - 1},\), expected"),
        (but(words="not base64!"), "weights that are not numbers"),
        (but(words="!" + words_of(WORD_BUCKETS)), "weights that are not numbers"),
        (but(words="A" * WORD_BUCKETS), "weights that are not numbers"),
        (but(words="é" * WORD_BUCKETS), "weights that are not numbers"),
        (but(words=ONES), "weights that are not numbers"),
        (but(salt=0.5), "weights that are not numbers"),
        (but(scripts=["latin", "klingon"]), r"scripts are \['latin', 'klingon'\]; expected some of latin, greek, "),
        (but(scripts="latin"), "scripts are 'latin'; expected some of"),
        (but(bias=float("nan")), "a weight is not a finite number"),
        (but(mean=[*ONES[1:], float("nan")]), "a weight is not a finite number"),
        (but(scale=[*ONES[1:], float("inf")]), "a weight is not a finite number"),
        (but(weights=[*ONES[1:], None]), "a weight is not a finite number"),
        (but(word_scale=float("-inf")), "a weight is not a finite number"),
        (but(bias=10**400), "weights that are not numbers"),
        (but(weights=[*ONES[1:], 10**400]), "weights that are not numbers"),
        (but(weights=[*ONES[1:], [1]]), "weights that are not numbers"),
        (but(mean="ten"), "weights that are not numbers"),
        (but(bias=[1]), "weights that are not numbers"),
        (lambda parts: [parts], "not a scorer"),
        (lambda parts: [], "not a scorer"),
        (lambda parts: list(parts), "not a scorer"),
        (lambda parts: "scorer", "not a scorer"),
        (lambda parts: None, "not a scorer"),
        (lambda parts: 5, "not a scorer"),
        (lambda parts: True, "not a scorer"),
    ],
)
def test_a_damaged_scorer_is_refused_with_the_reason(
    damage: Callable[[dict[str, Any]], Any], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(damage(parts_of(SCORER))), encoding="utf-8")
    with pytest.raises(InvalidScorer, match=rf"damaged\.json: .*{reason}"):
        Scorer.load(path)


WHOLE = SCORER.to_json().encode()


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02", b"\xff\xfe\xfd", b"weights: 3", WHOLE[:-2], WHOLE[:100], WHOLE * 2, b"[" * 100_000],
    ids=["empty", "binary", "no text", "not json", "cut by a byte", "cut short", "twice", "deep"],
)
def test_a_file_that_is_not_json_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(InvalidScorer, match=r"broken\.json: not JSON, or cut short \("):
        Scorer.load(path)


def test_a_number_beyond_double_precision_is_refused(tmp_path: Path) -> None:
    text = WHOLE.decode().replace(f'"bias":{SCORER.bias}', '"bias":1e999')
    assert "1e999" in text
    with pytest.raises(InvalidScorer, match="scorer: a weight is not a finite number"):
        Scorer.from_json(text)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Scorer.load(tmp_path / "nowhere.json")


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    assert {"agent", "assistant"} <= set(bundled_scorers())
    for ask in (Scorer.from_pretrained, Scorer.named):
        with pytest.raises(UnknownScorer, match=r"'agnet'.* are 'agent', 'assistant'"):
            ask("agnet")


def test_named_reads_a_file_of_that_path(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    SCORER.save(path)
    assert Scorer.named(str(path)).to_json() == SCORER.to_json()


def test_quantised_weights_are_those_a_file_holds() -> None:
    size = len(FEATURES)
    scorer = Scorer.quantised(
        1 / 3, np.full(size, 2 / 3), np.ones(size), np.full(size, -1e-3 / 3), np.array([1.0, -0.5, 0])
    )
    assert (scorer.bias, scorer.mean[0], scorer.weights[0]) == (0.3333, 0.6667, -0.0003)
    assert scorer.words.tolist() == [31, -15, 0]
    np.testing.assert_allclose(scorer.words * scorer.word_scale, [1, -0.5, 0], atol=scorer.word_scale / 2 + 1e-6)


def test_words_of_no_weight_stay_without_weight() -> None:
    none = np.zeros(len(FEATURES))
    scorer = Scorer.quantised(0.0, none, none, none, np.zeros(WORD_BUCKETS))
    assert scorer.score(RUNS[0]).tolist() == [0.5] * len(group(RUNS[0]))
