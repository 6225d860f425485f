"""The same chat told in two languages ranks alike, whichever bundled scorer reads it."""

import numpy as np
import pytest
from histories import Chat, assistant, human
from scipy.stats import spearmanr

from lre_core import Scorer

TOLD = [
    ("Hello!", "こんにちは！", "안녕하세요!"),
    ("Hello! How can I help you today?", "こんにちは！今日はどうしましたか？", "안녕하세요! 무엇을 도와드릴까요?"),
    (
        "I moved to Lyon on 3 May 2024 and I am allergic to peanuts. My order number is KX-20417.",
        "2024年5月3日にリヨンへ引っ越しました。ピーナッツのアレルギーがあります。注文番号は KX-20417 です。",
        "저는 2024년 5월 3일에 리옹으로 이사했고 땅콩 알레르기가 있습니다. 주문 번호는 KX-20417 입니다.",
    ),
    ("Noted, thank you.", "承知しました。ありがとうございます。", "알겠습니다. 감사합니다."),
    ("Thanks!", "ありがとう！", "감사합니다!"),
    (
        "You are welcome. Is there anything else?",
        "どういたしまして。ほかに何かありますか？",
        "천만에요. 더 필요하신 것이 있나요?",
    ),
    (
        "My sister Mara marries on 14 September, and I budget 1,200 euros for the trip to Porto.",
        "妹のマーラが9月14日に結婚します。ポルトへの旅行の予算は1,200ユーロです。",
        "제 여동생 마라가 9월 14일에 결혼하고, 포르투 여행 예산은 1,200유로입니다.",
    ),
    ("How lovely, congratulations!", "それは素敵ですね。おめでとうございます！", "정말 멋지네요, 축하합니다!"),
    ("Yes, I think so too.", "はい、私もそう思います。", "네, 저도 그렇게 생각해요."),
    ("What is the weather like there?", "そちらの天気はどうですか？", "그곳 날씨는 어떤가요?"),
    ("Sunny, I hope.", "晴れるといいですね。", "맑았으면 좋겠어요."),
    ("Good.", "いいですね。", "좋네요."),
]
FACTS = {2, 6}


def chat(language: int) -> list[Chat]:
    return [(assistant if turn % 2 else human)(told[language]) for turn, told in enumerate(TOLD)]


@pytest.mark.parametrize("scorer", ["agent", "assistant"])
@pytest.mark.parametrize("language", [1, 2], ids=["Japanese", "Korean"])
def test_the_same_facts_rank_alike_in_english_and_in(language: int, scorer: str) -> None:
    rate = Scorer.from_pretrained(scorer).score
    english, other = rate(chat(0)), rate(chat(language))
    assert spearmanr(english, other).statistic > 0.7
    # Of what the person said, the facts come first in both.
    said = np.arange(0, len(TOLD), 2)
    for scores in (english, other):
        assert set(said[np.argsort(-scores[said])][: len(FACTS)]) == FACTS
