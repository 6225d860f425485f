"""Features: the fast arrays against a slow, obvious reading; causal at every cut; in any script."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple
from unicodedata import category
from unittest import mock

import numpy as np
import pytest
from histories import Chat, assistant, histories, human, result
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lre_core import text
from lre_core.features import FEATURES, NEXT, OWN, PREVIOUS, SINCE, Features
from lre_core.grams import PADDING, SPREAD, WORD_BUCKETS, WordMatrix
from lre_core.messages import as_messages
from lre_core.scripts import PAGES, SCRIPTS, learned_scripts
from lre_core.text import BASE, COUNTS, UNSPACED_RANGES, hash_word, scan
from lre_core.units import group_from

FRAGMENTS = [
    *(
        "the order",
        "I paid 14 books, Mara said",
        "ORD_2291",
        "tk-77f1",
        "KX93J",
        "a1@b.io",
        "https://x.io/a-1",
        "PAYED",
    ),
    *(
        "明日の午前に注文した",
        "カタカナ",
        "ﾊﾝｶｸ",
        "我的订单在哪里？",
        "나는 어제 주문했다",
        "ผมสั่งเมื่อวาน",
        "๑๒ ເລກ",
        "မြန်မာ၁၂",
    ),
    *(
        "أين طلبي رقم ٤٢؟",
        "Straße über Ärger",
        "İstanbul Ǆ",
        "é e\u0301",
        "ＫＸ９３Ｊ！",
        "ＯＲＤ＿１２．３",
        "𠀀𠀁 𠮷野家",
        "\ud83d\ude00",
    ),
    *(
        "def f(x): return {'a': [1, 2]}",
        '{"id": "o_1", "n": 3.5}',
        "😀👍🏽",
        "Ⅷ Ⓐ",
        "",
        " ",
        "\n",
        "\n\n",
        "\x00",
        "--",
        "a--b",
    ),
    *(
        ", Mara",
        " Mara",
        "Tell Mara",
        "ok,",
        "a.",
        "/b/",
        "12",
        "_",
        "ABCDE",
        "OKAY",
        "AB-CD",
        "ինչ՞",
        "日",
        "x日y",
        "𠀀日",
    ),
]
TEXTS = st.lists(
    st.sampled_from(FRAGMENTS) | st.text(st.characters(exclude_categories=()), max_size=4), max_size=8
).map("".join)


class SlowText(NamedTuple):
    words: list[str]
    identifiers: list[str]
    counts: list[int]


def slow_scan(whole: str) -> SlowText:
    """What `scan` finds in one text, character by character and with words kept as they are."""
    narrow = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in whole)
    scripts = "".join(map(script, narrow))
    words: list[tuple[int, str]] = []
    for kind, run in groupby(range(len(narrow)), key=scripts.__getitem__):
        places = list(run)
        if kind == "u" and len(places) > 1:
            words += [(at, narrow[at : at + 2]) for at in places[:-1]]
        elif kind != " ":
            words.append((places[0], narrow[places[0] : places[-1] + 1]))
    joined = "".join("-" if c in "-.@:/" else kind for c, kind in zip(narrow, scripts, strict=True))
    spans = [narrow[slice(*match.span())] for match in re.finditer("w+(-w+)*", joined)]
    counts = {
        "digits": sum(map(is_digit, narrow)),
        "capitals": sum(map(is_upper, narrow)),
        "unspaced": sum(script(c) == "u" for c in narrow),
        "questions": sum(c in "?؟՞" for c in narrow),
        "exclamations": narrow.count("!"),
        "marks": sum(c in "{}[]()<>=;|`\"'\\*#" for c in narrow),
        "numbers": sum(all(map(is_digit, word)) for _, word in words),
        "names": sum(
            at >= 2
            and is_upper(word[0])
            and narrow[at - 1] == " "
            and (scripts[at - 2] != " " or narrow[at - 2] == ",")
            for at, word in words
        ),
    }
    return SlowText([word for _, word in words], list(filter(is_code, spans)), [counts[name] for name in COUNTS])


def is_digit(c: str) -> bool:
    return c <= "\uffff" and c.isdecimal()


def is_upper(c: str) -> bool:
    return c <= "\uffff" and c.isupper() and c.isalpha()


def is_unspaced(c: str) -> bool:
    return any(low <= ord(c) <= high for low, high in UNSPACED_RANGES)


def script(c: str) -> str:
    """`u` for a character of a script without spaces, `w` for any other that makes words, else a space."""
    if is_unspaced(c) or 0x20000 <= ord(c) < 0x40000:
        return "u"
    makes_words = c == "_" or c.isalpha() or c.isdecimal() or category(c).startswith("M")
    return "w" if c <= "\uffff" and makes_words else " "


def is_code(span: str) -> bool:
    return len(span) >= 4 and (
        any(is_digit(c) or c == "_" for c in span) or (len(span) >= 5 and all(map(is_upper, span)))
    )


def slow_hash(word: str) -> int:
    """The polynomial of the characters in lower case, lowest power first."""
    value: int = sum((ord(c) & 0xFFFF) * BASE**power for power, c in enumerate(folded(word), 1)) % 2**64
    return value


def folded(word: str) -> str:
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in word)


def slow_mix(value: int) -> int:
    """The finaliser of splitmix64."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return value ^ value >> 31


def check_scan(texts: Sequence[str]) -> None:
    fast, slow = scan(texts), [slow_scan(one) for one in texts]
    for tokens, found in ((fast.words, [s.words for s in slow]), (fast.identifiers, [s.identifiers for s in slow])):
        assert tokens.hashes.tolist() == [slow_hash(word) for words in found for word in words]
        assert tokens.text.tolist() == [index for index, words in enumerate(found) for _ in words]
    assert fast.characters.tolist() == list(map(len, texts))
    assert fast.counts.tolist() == [s.counts for s in slow]


def test_scan_of_each_fragment_alone_equals_a_slow_reading() -> None:
    check_scan(FRAGMENTS)


@given(st.lists(TEXTS, min_size=1, max_size=5))
@settings(max_examples=250)
def test_scan_equals_a_slow_reading_in_any_script(texts: list[str]) -> None:
    check_scan(texts)


@given(st.lists(TEXTS, min_size=1, max_size=12))
def test_scan_of_a_batch_of_many_blocks(texts: list[str]) -> None:
    with mock.patch.object(text, "BLOCK", max(map(len, texts)) or 1):
        check_scan(texts)


@pytest.mark.parametrize("count", [999, 1_000, 1_001, 2_100])
def test_scan_of_a_text_longer_than_a_block(count: int) -> None:
    line = "Mara paid ORD_2291, tk-77f1 明日の注文！ 14 {books}? ".ljust(59) + "\n"
    assert text.BLOCK % len(line) == 0, "the lines must not be cut"
    check_scan(["before", line * count, "after ORD_2291"])


@pytest.mark.parametrize(
    ("wide", "narrow"), [("ＫＸ９３Ｊ", "KX93J"), ("１２", "12"), ("ＯＲＤ＿１２", "ord_12"), ("Ｍａｒａ", "mara")]
)
def test_full_width_forms_count_as_what_they_are(wide: str, narrow: str) -> None:
    assert hash_word(wide) == hash_word(narrow)
    assert scan([wide]).identifiers.hashes.tolist() == scan([narrow]).identifiers.hashes.tolist()


@pytest.mark.parametrize("question", ["どこですか？", "where?", "أين؟", "去哪里?"])
def test_a_question_mark_of_any_script_makes_a_question(question: str) -> None:
    asked, told = column([human(question), human(question[:-1])], "question")
    assert (asked, told) == (1, 0)


def test_digits_of_any_script_are_digits() -> None:
    shares = column([human(n) for n in ("2026", "２０２６", "٢٠٢٦", "๒๐๒๖", "年年年年")], "digit_share")
    assert shares.tolist() == [1, 1, 1, 1, 0]


def read(history: Sequence[Chat], steps: int | None = None) -> Features:
    """Features of a history, extended `steps` units at a time."""
    messages = as_messages(history)
    units = group_from(messages, 0)
    features = Features()
    for at in range(0, len(units), steps or len(units)):
        features.extend(messages, units[at : at + (steps or len(units))])
    return features


def column(history: Sequence[Chat], name: str) -> NDArray[np.float64]:
    return read(history).matrix()[:, FEATURES.index(name)]


def hashed(features: Features, salt: int = 0, scripts: Collection[str] = SCRIPTS) -> NDArray[np.float64]:
    rows: NDArray[np.float64] = WordMatrix([features.said], scripts).hashed(salt).toarray()
    return rows


def close(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    # Sums in another order differ in their last bits.
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=1e-12)


@given(histories(), st.integers(1, 3))
def test_extended_a_few_units_at_a_time_equals_all_at_once(history: list[Chat], steps: int) -> None:
    grown, whole = read(history, steps), read(history)
    assert close(grown.matrix(), whole.matrix())
    assert close(hashed(grown), hashed(whole))
    assert all(close(whole.matrix(start), whole.matrix()[start:]) for start in range(whole.size + 1))


@given(histories())
@settings(max_examples=50)
def test_promise_4_a_row_depends_only_on_what_is_there_by_now(history: list[Chat]) -> None:
    messages = as_messages(history)
    units = group_from(messages, 0)
    grown = Features()
    final = read(history).matrix()
    known = len(OWN) + len(PREVIOUS)
    for count, unit in enumerate(units, 1):
        grown.extend(messages, [unit])
        prefix = Features()
        prefix.extend(messages[: unit.stop], units[:count])
        now = grown.matrix()
        assert close(now, prefix.matrix())
        # What a unit says is settled when it arrives, what came next once it has; only the rest may still change.
        assert close(now[:, :known], final[:count, :known])
        settled = slice(known, known + len(NEXT))
        assert close(now[:-1, settled], final[: count - 1, settled])


@given(st.lists(histories(), max_size=4))
@settings(max_examples=50)
def test_words_of_several_histories_are_hashed_as_each_alone(several: list[list[Chat]]) -> None:
    together = WordMatrix([read(history).said for history in several]).hashed(1).toarray()
    assert close(together, np.concatenate([np.empty((0, WORD_BUCKETS)), *(hashed(read(h), 1) for h in several)]))


@given(histories())
@settings(max_examples=50)
def test_word_scores_equal_the_words_times_their_weights(history: list[Chat]) -> None:
    whole = read(history)
    weights = np.sin(np.arange(hashed(whole).shape[1]))
    folded = Features(weights)
    messages = as_messages(history)
    folded.extend(messages, group_from(messages, 0))
    assert close(folded.word_scores, hashed(whole) @ weights)


def slow_words(history: Sequence[Chat], salt: int, scripts: Collection[str]) -> NDArray[np.float64]:
    """Every word of every unit cut afresh into runs of four characters, each put into its bucket."""
    messages = as_messages(history)
    seen: Counter[str] = Counter()
    units = group_from(messages, 0)
    rows = np.zeros((len(units), WORD_BUCKETS))
    for number, unit in enumerate(units):
        members = messages[unit.start : unit.stop]
        said = [message.text for message in members]
        said += [text for message in members for call in message.calls for text in (call.name, call.values)]
        total = PADDING
        distinct = {folded(word) for text in said for word in slow_scan(text).words}
        for word in distinct:
            weight = 1 + np.log((number + 1) / (seen[word] + 1))
            ends = f"\0{word}\0"
            for run in [ends[at : at + 4] for at in range(max(1, len(ends) - 3))]:
                bits = slow_mix(sum(ord(c) % 2**16 << 16 * k for k, c in enumerate(run)) ^ salt * SPREAD % 2**64)
                bits >>= 0 if unit.kind == "turn" and unit.role == "human" else 32
                total += weight
                page = ord(run[1]) % 2**16 >> 8
                if next(name for first, name in reversed(PAGES) if first <= page) in scripts:
                    rows[number, (bits >> 1) % WORD_BUCKETS] += weight if bits % 2 else -weight
        rows[number] /= total
        seen.update(distinct)
    return rows


@given(histories(), st.integers(0, 7), st.sets(st.sampled_from(SCRIPTS)))
@settings(max_examples=50)
def test_hashed_words_equal_a_slow_reading(history: list[Chat], salt: int, scripts: set[str]) -> None:
    assert close(hashed(read(history), salt, scripts), slow_words(history, salt, scripts))


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_hashed_words_of_each_fragment_equal_a_slow_reading(fragment: str) -> None:
    history = [human(fragment), assistant(f"{fragment} and {fragment}"), human("x y")]
    assert close(hashed(read(history)), slow_words(history, 0, SCRIPTS))
    assert close(hashed(read(history), 3, {"kana"}), slow_words(history, 3, {"kana"}))


def test_a_script_is_learned_from_a_hundredth_of_the_text_on() -> None:
    read_most = np.array([990, *[0] * (len(SCRIPTS) - 2), 9])
    assert learned_scripts(read_most) == ("latin",)
    assert learned_scripts(read_most + np.eye(len(SCRIPTS), dtype=int)[-1]) == ("latin", SCRIPTS[-1])
    assert learned_scripts(np.zeros(len(SCRIPTS), int)) == ()


def test_forms_of_a_word_share_most_of_their_buckets_and_voices_none() -> None:
    said = [human("cancelling"), human("cancelled"), human("bread"), assistant("cancelling")]
    rows = np.abs(hashed(read(said))) > 0
    assert (rows[0] & rows[1]).sum() >= 4
    assert (rows[0] & rows[2]).sum() == (rows[0] & rows[3]).sum() == 0


def slow_columns(history: Sequence[Chat]) -> dict[str, list[float]]:
    """A few of the columns that count words and identifiers across units, with sets of the words themselves."""
    messages = as_messages(history)
    words: list[set[str]] = []
    ids: list[set[str]] = []
    taken: list[set[str]] = []
    for unit in group_from(messages, 0):
        members = messages[unit.start : unit.stop]
        said = [slow_scan(message.text.lower()) for message in members]
        calls = [call for message in members for call in message.calls]
        named = [slow_scan(call.name.lower()) for call in calls]
        called = [slow_scan(call.values.lower()) for call in calls]
        words.append({word for one in said + named + called for word in one.words})
        ids.append({word for one in said + called for word in one.identifiers})
        taken.append({word for one in called for word in one.identifiers})
    found: dict[str, list[float]] = {}

    def put(name: str, value: float) -> None:
        found.setdefault(name, []).append(value)

    for now in range(len(words)):
        before = Counter(word for unit in words[:now] for word in unit)
        idf = [np.log((now + 1) / (before[word] + 1)) for word in words[now]]
        put("unseen_words", np.log1p(sum(word not in before for word in words[now])))
        put("idf_sum", np.log1p(sum(idf)))
        put("idf_max", max(idf, default=0.0))
        new = ids[now].difference(*ids[:now])
        put("identifiers_introduced", np.log1p(len(new)))
        put("identifiers_in_calls", np.log1p(len(taken[now])))
        put("reuse_identifiers", np.log1p(sum(bool(new & later) for later in ids[now + 1 :])))
        put("reuse_in_calls", np.log1p(sum(bool(new & later) for later in taken[now + 1 :])))
    return found


@given(histories())
def test_counts_across_units_equal_a_slow_count(history: list[Chat]) -> None:
    matrix = read(history).matrix()
    for name, values in slow_columns(history).items():
        assert close(matrix[:, FEATURES.index(name)], np.array(values)), name


def search(arguments: str, answer: str) -> list[Chat]:
    function = {"name": "search", "arguments": arguments}
    return [{"role": "assistant", "content": None, "tool_calls": [{"function": function}]}, result(None, answer)]


def test_a_token_taken_by_later_calls_is_reuse() -> None:
    run = [
        human("sign in, then list"),
        *search("{}", "token tk-77f1 and spare zz-9911"),
        *search('{"token": "tk-77f1"}', "empty"),
        *search('{"token": "tk-77f1"}', "empty"),
        assistant("done with tk-77f1"),
    ]
    expected = {
        "identifiers_introduced": [0, 2, 0, 0, 0],
        "reuse_identifiers": [0, 3, 0, 0, 0],
        "reuse_in_calls": [0, 2, 0, 0, 0],
        "calls_again": [0, 1, 0, 0, 0],
        "identifiers_unused": [0, 1, 0, 0, 0],
    }
    assert {name: np.expm1(column(run, name)).round().tolist() for name in expected} == expected
    assert close(column(run, "reuse_share"), np.array([0, 0.5, 0, 0, 0]))


def test_time_between_messages_opens_sessions() -> None:
    times = [1_000, 1_060, 9_000, 9_001]
    history = [human("hello") | {"timestamp": time} for time in times]
    assert column(history, "opens_session").tolist() == [1, 0, 1, 0]
    assert np.expm1(column(history, "session_index")).round().tolist() == [0, 1, 0, 1]
    assert np.expm1(column(history, "log_gap")).round().tolist() == [0, 60, 7_940, 1]


def test_every_column_has_a_name_of_its_own() -> None:
    assert len(set(FEATURES)) == len(FEATURES) == len(OWN) + len(PREVIOUS) + len(NEXT) + len(SINCE)


def test_no_units_have_no_rows() -> None:
    assert Features().matrix().shape == (0, len(FEATURES))
