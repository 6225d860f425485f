"""`lre train`, `eval`, `simulate` and `explain`: from a folder of logs to a scorer one can trust or refuse."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cli import COMMANDS, RUN, RUN_MESSAGES, lre, refusal

import lre_core
from lre_core import Scorer

FIXTURES = Path(__file__).parent / "logs"
THREADS, STEPS = 21, 9


def thread(n: int) -> list[dict[str, Any]]:
    """A run whose first result holds what its last call takes, and in between a few that nothing takes."""

    def step(at: int, arguments: dict[str, Any], found: str) -> list[dict[str, Any]]:
        call = {"id": f"c{at}", "type": "function", "function": {"name": "desk", "arguments": json.dumps(arguments)}}
        answer = {"role": "tool", "tool_call_id": f"c{at}", "content": found}
        return [{"role": "assistant", "content": None, "tool_calls": [call]}, answer]

    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Please see to crate {n} at the quay."}]
    messages += step(0, {"who": "ines"}, f'{{"session": "dpt-{n:04}-{n * 7919 % 10007:05}"}}')
    for at in range(1, STEPS - 1):
        messages += step(at, {"page": at}, f"bay {at}: rope, cloth, stove, {'paint ' * (8 + n % 3)}all in order")
    messages += step(STEPS - 1, {"session": f"dpt-{n:04}-{n * 7919 % 10007:05}"}, "sent")
    return [*messages, {"role": "assistant", "content": "It is on its way."}]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: Any) -> Path:
    """A folder of two files, a thread a line."""
    folder: Path = tmp_path_factory.mktemp("logs")
    lines = [json.dumps({"thread_id": f"t{n}", "messages": thread(n)}) + "\n" for n in range(THREADS)]
    (folder / "one.jsonl").write_text("".join(lines[::2]))
    (folder / "two.jsonl").write_text("".join(lines[1::2]))
    return folder


@pytest.fixture(scope="module")
def trained(logs: Path, tmp_path_factory: Any) -> tuple[Path, Any]:
    """The scorer those logs give, and what the command said."""
    out = tmp_path_factory.mktemp("scorer") / "own.json"
    return out, lre("train", logs, "-o", out, "--folds", 2, "--json")


def test_train_gives_a_scorer_a_card_and_a_verdict(trained: tuple[Path, Any]) -> None:
    path, result = trained
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    assert (said["histories"], said["used"], said["skipped"], said["held_out"]) == (THREADS, THREADS, 0, THREADS)
    assert said["formats"] == {"openai": THREADS}
    assert 0 < said["needed"] < said["units"]
    best = max(said["lead"], key=lambda name: said["auc"][name]["mean"])
    better = said["lead"][best]["low"] > 0
    title = {"bundled": "the bundled scorer"}.get(best, best)
    assert said["verdict"].startswith(f"better than {title} by 0." if better else f"not better than {title} (")
    assert "AUC on 21 held-out histories" in said["verdict"]
    assert set(said["auc"]) == {"lre", "bundled", "recency", "random", "length", "salience"}
    assert all(row["low"] <= row["mean"] <= row["high"] for row in said["auc"].values())
    assert f"Verdict: {said['verdict']}." in result.stderr
    card = path.with_suffix(".md").read_text("utf-8")
    assert said["verdict"][1:] in card
    assert f"{THREADS} threads of {THREADS} logged histories (openai {THREADS})" in card


def test_train_shows_the_bundled_scorer_beside_the_new_one(trained: tuple[Path, Any], logs: Path) -> None:
    path, result = trained
    said = json.loads(result.stdout)
    bundled, lead = said["auc"]["bundled"], said["lead"]["bundled"]
    assert bundled == json.loads(lre("eval", logs, "--json", "-q").stdout)["auc"]["lre"]
    assert lead["mean"] == pytest.approx(said["auc"]["lre"]["mean"] - bundled["mean"])
    assert lead["low"] <= lead["mean"] <= lead["high"]
    row = "the bundled scorer" + "".join(
        " {mean:.3f} [{low:.3f}, {high:.3f}]".format(**found) for found in (bundled, lead)
    )
    assert row in [" ".join(line.split()) for line in result.stderr.splitlines()]
    assert row in [" ".join(line.replace("|", "").split()) for line in path.with_suffix(".md").read_text().splitlines()]


def test_a_trained_scorer_ranks_what_a_new_thread_needs_first(trained: tuple[Path, Any]) -> None:
    scores = Scorer.load(trained[0]).score(thread(THREADS)[:-3])
    assert scores.argmax() == 1


def test_nothing_of_the_logs_is_in_the_scorer(trained: tuple[Path, Any]) -> None:
    for path in (trained[0], trained[0].with_suffix(".md")):
        text = path.read_text("utf-8")
        assert not [word for word in ("dpt-", "crate", "quay", "ines", "rope", "desk") if word in text]


def test_training_twice_gives_the_same_bytes(logs: Path, trained: tuple[Path, Any], tmp_path: Path) -> None:
    again = tmp_path / "own.json"
    lre("train", logs, "-o", again, "--folds", 2, "--quiet")
    for suffix in (".json", ".md"):
        assert again.with_suffix(suffix).read_bytes() == trained[0].with_suffix(suffix).read_bytes()


def test_too_few_histories_are_said_to_be_too_few(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for count in (1, 3):
        log.write_text("".join(json.dumps({"messages": thread(n)}) + "\n" for n in range(count)))
        result = lre("train", log, "-o", tmp_path / "own.json")
        assert result.exit_code == 0
        assert f"Verdict: too few histories to tell: have {count}, want about 20." in result.stderr


def test_an_even_sample_is_used_and_said_to_be(logs: Path, tmp_path: Path) -> None:
    result = lre("train", logs, "-o", tmp_path / "own.json", "--most", 4, "--folds", 2, "--json")
    assert json.loads(result.stdout)["used"] == 4
    assert "Using an even sample of 4 of them; --most changes that." in result.stderr


def test_every_history_is_as_likely_to_be_sampled_as_any_other() -> None:
    from collections import Counter

    from lre_core.logs import History, Sample

    drawn: Counter[int] = Counter()
    for start in range(300):
        sample = Sample(5)
        sample._chance.seed(start)
        sample.add_all(
            History(str(n), [{"role": "user", "content": "x" * 10}], [], "openai", "jsonl", str(n)) for n in range(20)
        )
        kept = [int(history.id) for history in sample.histories()]
        assert kept == sorted(kept)
        assert (len(kept), sample.seen) == (5, 20)
        drawn.update(kept)
    # 75 expected, a standard deviation of 7.5.
    assert all(45 <= drawn[n] <= 105 for n in range(20))


def test_a_sample_holds_so_much_text_at_most() -> None:
    from lre_core.logs import History, Sample

    sample = Sample(50, most_characters=1000)
    sample.add_all(
        History(str(n), [{"role": "user", "content": "x" * 300}], [], "openai", "jsonl", str(n)) for n in range(20)
    )
    assert len(sample.histories()) == 3


def test_what_cannot_be_read_stops_training_unless_it_may_be_skipped(logs: Path, tmp_path: Path) -> None:
    for file in logs.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"messages": [{"role": "user"}]}\n{"messages": \n')
    out = tmp_path / "own.json"
    assert refusal("train", tmp_path, "-o", out, code=1).startswith(
        f"lre: {tmp_path / 'bad.jsonl'}, line 2: broken JSON"
    )
    assert not out.exists()
    result = lre("train", tmp_path, "-o", out, "--skip-bad", "--folds", 2, "--json")
    assert json.loads(result.stdout)["skipped"] == 1
    assert "Skipped 1 that could not be read:\n" in result.stderr
    assert f"{tmp_path / 'bad.jsonl'}, line 2: broken JSON" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--folds", 1], "--folds is 1; it must be 2 or more"),
        (["--most", 0], "--most is 0; it must be 1 or more histories"),
        (["-o", "none/own.json"], "none/own.json: there is no folder none"),
    ],
)
def test_a_setting_of_train_out_of_range_is_refused(arguments: list[object], problem: str) -> None:
    assert refusal("train", RUN, *arguments) == f"lre: {problem}"


def test_logs_without_anything_taken_up_are_refused_and_why(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text('[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]')
    assert "nothing to learn from: in 1 history " in refusal("train", log, "-o", tmp_path / "own.json", "-q", code=1)


def test_eval_ranks_with_a_scorer_as_it_is(logs: Path, trained: tuple[Path, Any]) -> None:
    result = lre("eval", logs, "--scorer", trained[0], "--json")
    said = json.loads(result.stdout)
    assert (result.exit_code, said["held_out"]) == (0, THREADS)
    assert said["auc"]["lre"]["mean"] > said["auc"]["recency"]["mean"]
    assert "this scorer" in result.stderr
    assert f"Verdict on {trained[0]}: better than " in result.stderr


def test_simulate_shows_what_each_policy_kept_and_cost(logs: Path, trained: tuple[Path, Any]) -> None:
    result = lre("simulate", logs, "--budget", 250, "--keep-recent", 2, "--scorer", trained[0], "--json")
    said = json.loads(result.stdout)
    assert (said["used"], said["outgrown"], said["prompts"]) == (THREADS, THREADS, (STEPS + 1) * THREADS)
    policies = said["policies"]
    assert list(policies) == ["everything", "recency", "lre", "hindsight"]
    assert policies["everything"]["evidence"]["mean"] == policies["hindsight"]["evidence"]["mean"] == 1
    assert policies["recency"]["evidence"]["mean"] == 0
    assert policies["lre"]["evidence"]["mean"] > 0.5
    assert policies["everything"]["over"] > 0 == policies["recency"]["over"] == policies["lre"]["over"]
    assert max(policies[name]["peak"] for name in ("recency", "lre")) <= 250 < policies["everything"]["peak"]
    for name, policy in policies.items():
        assert name == "hindsight" or policy["tokens"] > policy["cost"] > 0
    assert "LRE session" in result.stderr


def test_simulate_prices_what_is_cached_as_asked(logs: Path) -> None:
    whole = [
        json.loads(lre("simulate", logs, "--budget", 250, "--cached-price", p, "--json", "-q").stdout) for p in (0, 1)
    ]
    assert whole[1]["policies"]["everything"]["cost"] == whole[1]["policies"]["everything"]["tokens"]
    assert whole[0]["policies"]["everything"]["cost"] < whole[1]["policies"]["everything"]["cost"] / 3
    assert refusal("simulate", logs, "--budget", 250, "--cached-price", 2).startswith("lre: --cached-price is 2.0")


def test_explain_says_for_every_unit_what_evict_did_and_what_drove_it() -> None:
    result = lre("explain", RUN, "--budget", 600, "--json", "--top", 3)
    said = json.loads(result.stdout)
    view = lre_core.evict(RUN_MESSAGES, 600)
    assert said["tokens"] == view.tokens
    for row, expected in zip(said["units"], view.explain(), strict=True):
        assert {key: row[key] for key in expected} == expected
        assert len(row["drivers"]) == 3
        assert list(map(abs, row["drivers"].values())) == sorted(map(abs, row["drivers"].values()), reverse=True)
    assert sum(row["tokens"] for row in said["units"] if row["kept"]) == view.tokens
    lines = result.stderr.splitlines()
    assert lines[0].split() == ["unit", "what", "tokens", "score", "view", "why", "driven", "by", "text"]
    assert sum(bool(re.match(r" *\d+ ", line)) for line in lines) == len(said["units"])


@pytest.mark.parametrize(
    "file", ["langchain.json", "anthropic_calls.jsonl", "llamaindex.json", "atif.json", "langsmith.json"]
)
def test_every_command_on_one_history_takes_every_format(file: str, tmp_path: Path) -> None:
    evicted = lre("evict", FIXTURES / file, "--budget", 150, "--jsonl")
    kept = [json.loads(line) for line in evicted.stdout.splitlines()]
    assert kept[0]["role"] == "system"
    assert lre_core.evict(kept, 150).tokens <= 150
    said = json.loads(lre("explain", FIXTURES / file, "--budget", 150, "--json").stdout)
    assert len(said["units"]) == 8
    page = tmp_path / "page.html"
    assert lre("report", FIXTURES / file, "--budget", 150, "-o", page).exit_code == 0
    assert "find_booking" in page.read_text("utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_of_every_help_runs_as_it_stands(
    command: str, logs: Path, trained: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(logs, tmp_path / "logs")
    shutil.copy(tmp_path / "logs" / "one.jsonl", tmp_path / "logs" / "sunday.jsonl")
    shutil.copy(trained[0], tmp_path / "scorer.json")
    shutil.copy(RUN, tmp_path / "run.jsonl")
    monkeypatch.chdir(tmp_path)
    example = re.search(rf"Example: lre ({command}.*?)( > \S+)? *$", lre(command, "--help").stdout, re.MULTILINE)
    assert example is not None
    result = lre(*example[1].split())
    assert (result.exit_code, example[1].split()[0]) == (0, command), result.stderr


@pytest.mark.parametrize("command", ["eval", "simulate", "explain", "train"])
def test_quiet_writes_nothing_on_stderr(command: str, logs: Path, tmp_path: Path) -> None:
    budget = ["--budget", 250] if command in ("simulate", "explain") else []
    log = RUN if command == "explain" else logs
    extra = ["-o", tmp_path / "own.json", "--folds", 2, "--most", 3] if command == "train" else []
    result = lre(command, log, *budget, *extra, "--quiet", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    json.loads(result.stdout)


def test_a_log_cannot_write_to_the_terminal_through_any_command(tmp_path: Path) -> None:
    log = tmp_path / "odd.jsonl"
    messages = [{"role": "user", "content": "\x1b[2J\x07 wipe\n\rthis"}, {"role": "assistant", "content": "[red]no"}]
    log.write_text(json.dumps({"id": "\x1b[31m", "messages": messages}) + "\n{\x1b]0;title\x07\n")
    for result in (
        lre("explain", log, "--history", 1, "--budget", 99),
        lre("simulate", log, "--budget", 99, "--skip-bad"),
    ):
        assert result.exit_code == 0
        assert "\x1b" not in result.stderr + result.stdout
        assert "\x07" not in result.stderr + result.stdout


def on_a_terminal(*arguments: object, **variables: str) -> tuple[str, str]:
    """What the installed command writes on stdout, a pipe, and on stderr, a terminal."""
    terminal, ours = os.openpty()
    command = [sys.executable, "-c", "from lre_core.cli import main; main()", *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "120"} | variables
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=ours, env=environment)
    os.close(ours)
    seen = bytearray()
    with contextlib.suppress(OSError):  # how Linux says that the other end is closed
        while part := os.read(terminal, 4096):
            seen += part
    os.close(terminal)
    assert process.stdout is not None
    with process.stdout:
        out = process.stdout.read()
    assert process.wait() == 0
    return out.decode(), seen.decode()


def test_progress_is_for_terminals_and_for_those_who_want_it(logs: Path) -> None:
    command = ["simulate", logs, "--budget", 250, "--json"]
    out, seen = on_a_terminal(*command)
    json.loads(out)
    assert "reading, 21 histories" in seen
    assert "replaying" in seen
    assert "LRE session" in seen
    assert on_a_terminal(*command, "--quiet")[1] == ""
    assert "replaying" not in lre(*command).stderr


def test_no_color_leaves_colours_out(logs: Path) -> None:
    colour = re.compile(r"\x1b\[[\d;]*3[0-7][\d;]*m")
    command = ["simulate", logs, "--budget", 250]
    assert colour.search(on_a_terminal(*command)[1])
    assert not colour.search(on_a_terminal(*command, NO_COLOR="1")[1])


def test_a_shell_completes_commands_and_bundled_scorers() -> None:
    def completed(line: str) -> list[str]:
        variables = {"_LRE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        code = "import sys; sys.argv = ['lre']; from lre_core.cli import main; main()"
        finished = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True, check=False
        )
        return finished.stdout.split()

    assert completed("lre e") == ["eval", "evict", "explain"]
    assert completed("lre evict x.json --scorer a") == ["auto", *lre_core.bundled_scorers()]
