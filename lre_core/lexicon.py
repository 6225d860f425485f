"""Closed classes of words that mark what kind of thing a unit says, in several languages.

A word of a spaced script stands as it is; of an unspaced one, as a pair of characters (what `text.scan` cuts).
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from lre_core.text import hash_word
from lre_core.vocabulary import POSITION_BITS

__all__ = ["LEXICON", "lexicon_flags"]

LAST_BITS = np.uint64((1 << 14) - 1)

LEXICON: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "first_person": """
            i me my mine myself we us our ours m ve ich mir mich mein meine wir uns unser je moi mon ma mes nous notre
            yo mi mis nosotros nuestro eu meu minha nós io mio mia я мне мой мы наш أنا نحن لي 나는 저는 내가 제가 우리
            私は 私の 私が 僕は 僕の 俺は 我的 我们 我在 我是 ผม ฉั""",
        "second_person": """
            you your yours yourself u du dich dir dein deine sie ihr vous tu ton ta tes votre usted tú você
            あな なた 你的 你们 您的 คุ""",
        "time": """
            today yesterday tomorrow tonight morning afternoon evening night week weekend month year ago last next since
            until monday tuesday wednesday thursday friday saturday sunday january february march april may june july
            august september october november december summer winter spring autumn fall recently soon am pm
            gestern heute morgen woche monat jahr montag dienstag mittwoch donnerstag freitag samstag sonntag hier
            demain semaine mois année lundi mardi mercredi jeudi vendredi ayer hoy mañana semana mes año lunes martes
            miércoles jueves viernes вчера сегодня завтра неделя месяц год أمس اليوم غدا 어제 오늘 내일 다음 지난
            昨日 今日 明日 来週 先週 今週 来月 先月 今年 去年 来年 午前 午後 曜日 昨天 今天 明天 下周 上周 下午 上午
            星期""",
        "quantity": """
            one two three four five six seven eight nine ten first second third many few several dozen hundred thousand
            million percent half double total dollars euros price cost eins zwei drei vier fünf deux trois quatre cinq
            dos tres cuatro cinco 一つ 二つ 三つ 一個 人分 一个 两个 三个""",
        "question_word": """
            what when where who whom whose which why how wo wann wer warum wie welche quand où qui pourquoi comment
            quel cuándo dónde quién cómo qué 何時 何が どこ いつ なぜ どう 什么 怎么 哪里 为什""",
        "acknowledgement": """
            thanks thank ok okay wow great nice cool awesome sure yes yeah yep glad congrats congratulations sorry
            welcome bye hi hello hey danke bitte gut hallo merci bonjour gracias hola спасибо привет شكرا 감사합니다 네
            有難 あり りが がと はい 谢谢 好的 你好""",
        "error": """
            error errors failed failure exception traceback invalid denied missing unauthorized forbidden timeout
            refused fatal unable cannot fehler erreur fallo ошибка خطأ 오류 失敗 错误 失败 エラ ラー""",
        "preference": """
            love like enjoy favorite favourite prefer want hope plan planning decided dream goal always never need
            bought started joined moved visited went got made married born works working live lives named called
            liebe mag möchte lieber plane aime préfère quiero prefiero 好き 欲し 予定 喜欢 打算""",
    }.items()
}


def lexicon_flags(token: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Which tokens the lexicon lists, and for each of them a bit for every class of words it belongs to.

    Args:
        token: (n,) high bits of hashes, as in `Pairs.token`.
    """
    keys, flags, ends = _lexicon()
    # Few tokens are listed: most are ruled out by their last bits alone.
    maybe = np.flatnonzero(ends.take((token & LAST_BITS).astype(np.intp)))
    found = np.minimum(np.searchsorted(keys, token[maybe]), len(keys) - 1)
    is_listed = keys[found] == token[maybe]
    return maybe[is_listed], flags[found[is_listed]]


@functools.cache
def _lexicon() -> tuple[NDArray[np.uint64], NDArray[np.uint8], NDArray[np.bool_]]:
    """The listed tokens in order, the classes of each, and for every combination of last bits whether one has them."""
    classes: dict[int, int] = {}
    for k, members in enumerate(LEXICON.values()):
        for word in members:
            key = hash_word(word) >> int(POSITION_BITS)
            classes[key] = classes.get(key, 0) | 1 << k
    keys = np.array(sorted(classes), np.uint64)
    ends = np.zeros(int(LAST_BITS) + 1, np.bool_)
    ends[keys & LAST_BITS] = True
    return keys, np.array([classes[int(key)] for key in keys], np.uint8), ends
