"""A Japanese conversation must not fall to recency: what English chats teach holds for the same chat in Japanese."""

import numpy as np
import pytest
from histories import Chat, assistant, human
from numpy.typing import NDArray
from scipy.stats import spearmanr

from lre_core import Scorer
from lre_core.comparison import rank

FACTS = [
    (
        "I moved to Lyon on 3 May 2024 and I live at 14 Quay Street.",
        "2024年5月3日にリヨンへ引っ越し、住所は埠頭通り14番地です。",
    ),
    ("My order number is KX-20417, sent to Mara Okafor.", "注文番号は KX-20417 で、送り先はマーラ・オカフォーです。"),
    (
        "I am allergic to peanuts and to two kinds of penicillin.",
        "ピーナッツと二種類のペニシリンにアレルギーがあります。",
    ),
    ("My sister marries on 14 September in Porto.", "妹が9月14日にポルトで結婚します。"),
    ("We planned 1,200 euros for the trip in October.", "10月の旅行に1,200ユーロの予算を組みました。"),
    ("I started as a nurse at Saint Bride hospital last week.", "先週から聖ブライド病院で看護師として働き始めました。"),
    ("Our daughter Ines was born on 2 January 2021.", "娘のイネスは2021年1月2日に生まれました。"),
    ("I bought a second bicycle for 350 euros yesterday.", "昨日、二台目の自転車を350ユーロで買いました。"),
]
TALK = [
    (
        "Yes, of course, that is quite fine with me, as ever.",
        "はい、もちろん、いつものようにそれで全然かまいませんよ。",
    ),
    ("Thanks, that was really kind, and so very helpful too.", "ありがとう、本当にご親切に、とても助かりました。"),
    ("That sounds so nice, and it is good to hear, really.", "それは本当にいいですね、そう聞けてとてもうれしいです。"),
    ("I see, well, of course, it could be like that, yes.", "なるほど、まあ、もちろん、そういうこともありますよね。"),
    ("Hello again, and how are you, are you well as ever?", "こんにちは、またお話しですね、お変わりなくお元気ですか？"),
    (
        "Good, good, and then it goes on like that, as it does.",
        "うん、いいですね、そうやってまた続いていくものですよね。",
    ),
    (
        "Maybe, maybe not, but who can say how it will be?",
        "そうかもしれないし、違うかもしれないし、どうなるのでしょう？",
    ),
    ("Wow, is that so, really, and is it as good as that?", "へえ、そうなんですか、本当にそんなにいいものなのですか？"),
]
ANSWERS = [
    ("Noted, thank you.", "承知しました。ありがとうございます。"),
    ("You are welcome.", "どういたしまして。"),
    ("Is there anything else?", "ほかに何かありますか？"),
]
ENGLISH, JAPANESE = range(2)


def chat(seed: int, language: int) -> tuple[list[Chat], NDArray[np.int64]]:
    """Facts and talk in some order, each answered; the facts are needed later."""
    rng = np.random.default_rng(seed)
    facts = [FACTS[n][language] for n in rng.permutation(len(FACTS))[:4]]
    said = [*facts, *(talk[language] for talk in TALK)]
    turns: list[Chat] = []
    for n in rng.permutation(len(said)):
        turns += [human(said[n]), assistant(ANSWERS[n % len(ANSWERS)][language])]
    return turns, np.array([turn["content"] in facts for turn in turns], np.int64)


@pytest.mark.parametrize(("learned", "asked"), [(ENGLISH, JAPANESE), (JAPANESE, ENGLISH)])
def test_facts_are_found_in_a_language_that_was_not_learned_from(learned: int, asked: int) -> None:
    histories, labels = zip(*(chat(seed, learned) for seed in range(12)), strict=True)
    scorer = Scorer.fit(histories, labels)
    others, needed = zip(*(chat(seed, asked) for seed in range(12, 24)), strict=True)
    auc = rank(scorer.score, others, needed, groups=range(len(others))).auc
    assert auc["lre"].mean > 0.95 > auc["salience"].mean
    assert auc["recency"].mean < 0.7


@pytest.mark.parametrize("scorer", ["agent", "assistant"])
def test_bundled_scorers_rank_the_same_chat_alike_in_both(scorer: str) -> None:
    rate = Scorer.from_pretrained(scorer).score
    alike = [
        spearmanr(*(rate(chat(seed, language)[0]) for language in (ENGLISH, JAPANESE))).statistic for seed in range(12)
    ]
    assert np.mean(alike) > 0.4
