"""What scoring costs beside the paper's pipeline and beside counting tokens, all in one run.

    python -m benchmarks.scoring
    python -m benchmarks.scoring --data FILE

FILE is a gzipped JSON Lines file of histories, each with `messages` in OpenAI chat format; without it the histories are
chats of our own making. The paper's pipeline (arXiv 2606.20954) is rebuilt from its description: TF-IDF of at most
10,000 terms and six standardised statistics, scored by scikit-learn. Measured are whole histories, and one message at
the end of a long one: scored at once, and in a session, which scores new messages together when the budget is hit.
"""

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.scorers import lines
from benchmarks.selection import ENCODING, texts
from lre_core import Evictor, Scorer, Unit
from lre_core.messages import Message, as_messages
from lre_core.tokens import counter
from lre_core.units import group_from

REPEATS = 9
BUDGET = 2048
CHATS, TURNS = 10, 600

app = typer.Typer(add_completion=False)


class Row(NamedTuple):
    """Milliseconds: of all histories the best of `REPEATS` passes, of one message the median, in a session the mean."""

    what: str
    units: int
    lre_ms: float
    paper_ms: float
    count_ms: float

    @property
    def ratio(self) -> float:
        """How many times as long the paper's pipeline takes."""
        return self.paper_ms / self.lre_ms


class Paper:
    """The paper's chat scorer; what it is fitted to does not matter for its speed, so its labels are made up."""

    def __init__(self, histories: list[list[str]]) -> None:
        every = [text for history in histories for text in history]
        self._terms = TfidfVectorizer(max_features=10_000, stop_words="english").fit(every)
        self._scale = StandardScaler().fit(np.vstack([self._statistics(history) for history in histories]))
        design = hstack([self._scale.transform(self._statistics(every)), self._terms.transform(every)]).tocsr()
        self._model = LogisticRegression(max_iter=1000).fit(design, np.arange(len(every)) % 2)

    def score(self, history: list[str]) -> NDArray[np.float64]:
        """(units,) probabilities."""
        numbers = csr_matrix(self._scale.transform(self._statistics(history)))
        scores: NDArray[np.float64] = self._model.predict_proba(hstack([numbers, self._terms.transform(history)]))[:, 1]
        return scores

    @staticmethod
    def _statistics(history: list[str]) -> NDArray[np.float64]:
        """Position, recency, length, digits, a question mark, capitalised words."""
        rows = []
        for index, text in enumerate(history):
            words = text.split()
            capitals = sum(word[0].isupper() for word in words)
            digits = sum(map(str.isdigit, text))
            position, recency = index / len(history), 1 / (len(history) - index)
            rows.append((position, recency, np.log1p(len(words)), digits, float("?" in text), capitals))
        return np.array(rows)


def chats() -> list[list[dict[str, Any]]]:
    """Pseudo-English chats of a person and an assistant."""
    made = []
    for seed in range(CHATS):
        said = enumerate(texts(TURNS, seed))
        made.append([{"role": "assistant" if turn % 2 else "user", "content": text} for turn, text in said])
    return made


def measure(histories: list[list[dict[str, Any]]], scorer: Scorer) -> list[Row]:
    """Times all histories at once, then one message at the end of the longest."""
    read = [as_messages(history) for history in histories]
    unit_texts = [
        [" ".join(map(words_of, messages[unit.start : unit.stop])) for unit in group_from(messages, 0)]
        for messages in read
    ]
    paper, count = Paper(unit_texts), counter(ENCODING)
    whole = Row(
        "whole histories",
        sum(map(len, unit_texts)),
        best(lambda: [scorer.score(history) for history in histories]),
        best(lambda: [paper.score(history) for history in unit_texts]),
        best(lambda: [count(text) for history in unit_texts for text in history]),
    )
    return [whole, *one_message(max(read, key=len), scorer, paper, count)]


def one_message(messages: list[Message], scorer: Scorer, paper: Paper, count: Callable[[str], int]) -> list[Row]:
    """Times the last units of a history as they come, each scored before the next, and appended to a session."""
    units = group_from(messages, 0)
    late = len(units) // 2
    features = scorer.features()
    features.extend(messages, units[:late])
    session = Evictor(BUDGET, scorer, token_counter=ENCODING).session()
    session.append(messages[: units[late].start])
    session.view()
    ours, in_session, theirs, counts = [], [], [], []
    for number, unit in enumerate(units[late:], late):
        text = " ".join(map(words_of, messages[unit.start : unit.stop]))

        def score(number: int = number) -> None:
            features.extend(messages, units[number : number + 1])
            scorer.probabilities(features, np.array([number]))

        def append(unit: Unit = unit) -> None:
            session.append(messages[unit.start : unit.stop])
            session.view()

        ours.append(timed(score))
        in_session.append(timed(append))
        theirs.append(timed(lambda text=text: paper.score([text])))  # type: ignore[misc]
        counts.append(timed(lambda text=text: count(text)))  # type: ignore[misc]
    paper_ms, count_ms = (1e3 * statistics.median(times) for times in (theirs, counts))
    return [
        Row("one message, scored at once", 1, 1e3 * statistics.median(ours), paper_ms, count_ms),
        Row("one message, appended to a session and viewed", 1, 1e3 * statistics.mean(in_session), paper_ms, count_ms),
    ]


def words_of(message: Message) -> str:
    """All that a message says and calls with."""
    return " ".join([message.text, *(f"{call.name} {call.arguments}" for call in message.calls)])


def best(run: Callable[[], object]) -> float:
    """Milliseconds of the quickest of several runs, the machine's noise left out."""
    return 1e3 * min(timed(run) for _ in range(REPEATS))


def timed(run: Callable[[], object]) -> float:
    """Seconds a call takes."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


@app.command()
def main(
    data: Annotated[Path | None, typer.Option(help="Histories, gzipped JSON Lines.", exists=True)] = None,
    scorer: Annotated[str, typer.Option(help="A bundled scorer, or a file.")] = "assistant",
    as_json: Annotated[bool, typer.Option("--json", help="Write a JSON object a line instead of the table.")] = False,
) -> None:
    """Measure what scoring costs."""
    histories = chats()
    if data is not None:
        histories = [row["messages"] for row in lines(data)]
    rows = measure(histories, Scorer.named(scorer))
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row._asdict() | {"ratio": row.ratio}))
        return
    table = Table("", "units", "LRE, ms", "the paper's, ms", "tiktoken, ms", "the paper's / LRE")
    for row in rows:
        times = (f"{value:,.2f}" for value in (row.lre_ms, row.paper_ms, row.count_ms))
        table.add_row(row.what, f"{row.units:,}", *times, f"{row.ratio:.1f}")
    Console().print(table)


if __name__ == "__main__":
    app()
