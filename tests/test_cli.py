"""The `lre` command: what stands on stdout and stderr, and how it fails."""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import lre_core
from lre_core.cli.app import app
from lre_core.features import FEATURES
from lre_core.grams import WORD_BUCKETS

FIXTURES = Path(__file__).parent / "fixtures"
RUN, CHAT = FIXTURES / "agent_run.jsonl", FIXTURES / "chat.json"
RUN_MESSAGES: list[dict[str, Any]] = [json.loads(line) for line in RUN.read_text("utf-8").splitlines()]
CHAT_MESSAGES: list[dict[str, Any]] = json.loads(CHAT.read_text("utf-8"))["messages"]
NO_ROLE = "a message without 'role': found an object with 'content'"
ENTRY_POINT = "from lre_core.cli import main; main()"


def lre(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def is_part_of(part: list[dict[str, Any]], whole: list[dict[str, Any]]) -> bool:
    """Whether these are messages of the whole, in its order."""
    rest = iter(whole)
    return all(any(message == other for other in rest) for message in part)


def write(path: Path, *histories: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps({"messages": history}) + "\n" for history in histories), "utf-8")
    return path


def refusal(*arguments: object, code: int = 2) -> str:
    """The one line on stderr of a command that is refused: 2 for how it was asked, 1 for what it was given."""
    result = lre(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("lre: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


@pytest.mark.parametrize("budget", [200, 600, 1200, 2400])
@pytest.mark.parametrize("scorer", ["auto", "agent", "assistant"])
def test_json_lines_come_out_as_json_lines_within_the_budget(budget: int, scorer: str) -> None:
    result = lre("evict", RUN, "--budget", budget, "--scorer", scorer)
    kept = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert is_part_of(kept, RUN_MESSAGES)
    assert (kept[0], kept[-1]) == (RUN_MESSAGES[0], RUN_MESSAGES[-1])
    assert lre_core.evict(kept, budget).tokens <= budget
    assert kept == lre_core.evict(RUN_MESSAGES, budget, scorer=scorer).messages


def test_json_comes_out_as_an_array() -> None:
    result = lre("evict", CHAT, "--budget", 150)
    kept = json.loads(result.stdout)
    assert is_part_of(kept, CHAT_MESSAGES)
    assert 0 < len(kept) < len(CHAT_MESSAGES)
    assert lre_core.evict(kept, 150).tokens <= 150


def test_what_fits_comes_out_whole_and_readable() -> None:
    result = lre("evict", CHAT, "--budget", 4000)
    assert json.loads(result.stdout) == CHAT_MESSAGES
    assert "澪" in result.stdout


def test_the_form_of_the_output_can_be_chosen() -> None:
    array, lines = lre("evict", RUN, "--budget", 600, "--json"), lre("evict", RUN, "--budget", 600)
    assert json.loads(array.stdout) == [json.loads(line) for line in lines.stdout.splitlines()]
    assert len(lre("evict", CHAT, "--budget", 4000, "--jsonl").stdout.splitlines()) == len(CHAT_MESSAGES)


def test_half_a_surrogate_pair_comes_out_as_it_came_in(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text(r'[{"role": "user", "content": "cut in the middle of \ud83d"}]')
    assert json.loads(lre("evict", path, "--budget", 100).stdout) == json.loads(path.read_text())


def test_the_summary_names_every_unit_and_why() -> None:
    result = lre("evict", RUN, "--budget", 1200)
    header, *rows, totals = result.stderr.splitlines()
    view = lre_core.evict(RUN_MESSAGES, 1200)
    units = view.explain()
    assert header.split() == ["unit", "messages", "what", "tokens", "score", "view", "why"]
    assert rows[2].split()[:4] == ["2", "2-3", "step:", "sign_in"]
    assert "step: customs_status, sea_forecast" in rows[6]
    shown = [re.search(r"([\d,]+) +(0\.\d{3}|-) +(kept|evicted) +(.+?) *$", row) for row in rows]
    assert [row.groups()[1:] for row in shown if row] == [
        (f"{unit['score']:.3f}", "kept" if unit["kept"] else "evicted", unit["reason"]) for unit in units
    ]
    costs = [int(row[1].replace(",", "")) for row in shown if row]
    kept = sum(unit["kept"] for unit in units)
    assert sum(costs) == lre_core.evict(RUN_MESSAGES, 10**6).tokens
    assert sum(cost for cost, unit in zip(costs, units, strict=True) if unit["kept"]) == view.tokens
    assert totals == (
        f"{len(rows)} units: {kept} kept, {len(rows) - kept} evicted. "
        f"{sum(costs):,} tokens before, {view.tokens:,} after, budget 1,200. Scorer: agent (auto)."
    )


def test_a_long_history_is_shown_by_its_ends(tmp_path: Path) -> None:
    turns = [{"role": ("user", "assistant")[i % 2], "content": f"Line {i} of the long ballad."} for i in range(161)]
    result = lre("evict", write(tmp_path / "long.jsonl", turns), "--budget", 300)
    _, *rows, totals = result.stderr.splitlines()
    assert [row.split()[0] for row in rows] == [*map(str, range(15)), "...", *map(str, range(146, 161))]
    assert "131 more" in rows[15]
    assert totals.startswith("161 units")
    assert "assistant (auto)" in totals


def test_quiet_leaves_the_summary_out() -> None:
    loud, quiet = (lre("evict", RUN, "--budget", 600, *flags) for flags in ([], ["--quiet"]))
    assert (quiet.stderr, quiet.stdout) == ("", loud.stdout)


def test_a_log_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    call = {"id": "1", "function": {"name": "[red]\x1b[2Jwipe\ud83d", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    result = lre("evict", write(tmp_path / "odd.jsonl", messages), "--budget", 100)
    assert "step: [red]?[2Jwipe?" in result.stderr
    assert "\x1b" not in result.stderr + result.stdout


def test_a_turn_over_the_budget_gives_up_finished_steps(tmp_path: Path) -> None:
    turn = [RUN_MESSAGES[1], *(message for message in RUN_MESSAGES if message["role"] in ("assistant", "tool"))]
    assert lre_core.evict(turn, 700).over_budget
    result = lre("evict", write(tmp_path / "one_turn.jsonl", turn), "--budget", 700)
    kept = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert is_part_of(kept, turn)
    assert kept[0] == turn[0]
    assert lre_core.Evictor(700, whole_turn=False).view(kept).tokens <= 700
    assert result.stderr.splitlines()[-1] == (
        "The current turn does not fit the budget whole, so its finished steps competed too."
    )


def test_what_must_stay_may_exceed_the_budget_and_that_is_said_even_when_quiet() -> None:
    result = lre("evict", RUN, "--budget", 50, "--quiet")
    kept = [json.loads(line) for line in result.stdout.splitlines()]
    tokens = lre_core.evict(kept, 50).tokens
    assert result.exit_code == 0
    assert kept == [RUN_MESSAGES[0], RUN_MESSAGES[-1]]
    assert result.stderr == f"lre: over the budget of 50: what must stay takes {tokens} tokens by itself\n"
    assert "turn" not in lre("evict", RUN, "--budget", 50).stderr


def test_the_budget_may_cover_only_what_is_old() -> None:
    result = lre("evict", RUN, "--budget", 300, "--keep-recent", 9, "--scope", "history")
    kept = [json.loads(line) for line in result.stdout.splitlines()]
    recent = lre_core.group(RUN_MESSAGES)[-9].start
    assert kept[recent - len(RUN_MESSAGES) :] == RUN_MESSAGES[recent:]
    assert "budget 300 for what is older than the last 9 units" in result.stderr


def test_a_scorer_from_a_file(tmp_path: Path) -> None:
    undecided = tmp_path / "undecided.json"
    none = np.zeros(len(FEATURES))
    lre_core.Scorer.quantised(0.0, none, none, none, np.zeros(WORD_BUCKETS)).save(undecided)
    result = lre("evict", RUN, "--budget", 600, "--scorer", undecided)
    *rows, totals = result.stderr.splitlines()[1:]
    assert all(" 0.500 " in row for row in rows)
    assert totals.endswith(f"Scorer: {undecided}.")


def test_one_history_of_several_is_chosen(tmp_path: Path) -> None:
    several = write(tmp_path / "several.jsonl", CHAT_MESSAGES, RUN_MESSAGES, CHAT_MESSAGES)
    second = lre("evict", several, "--budget", 4000, "--history", 2)
    assert [json.loads(line) for line in second.stdout.splitlines()] == RUN_MESSAGES
    assert refusal("evict", several, "--budget", 4000) == (
        f"lre: {several}: holds 3 histories; choose one with --history 1 to --history 3"
    )
    for number in (0, -1, 4):
        assert refusal("evict", several, "--budget", 9, "--history", number) == (
            f"lre: {several}: there is no history {number}; it holds 3"
        )
    assert lre("evict", CHAT, "--budget", 4000, "--history", 1).stdout == lre("evict", CHAT, "--budget", 4000).stdout


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (None, ": No such file or directory"),
        ("", ": the file is empty"),
        ("[]", ", line 1: a history without messages"),
        ('{"messages": []}', ", line 1: a history without messages"),
        (RUN.read_bytes().replace(b'"role": "assistant"', b'"role" "assistant"', 3), ", line 3: broken JSON: "),
        ('{"role": "user"}\n' * 6 + '{"role": "user", "content"}\n', ", line 7: broken JSON: "),
        (CHAT.read_bytes().replace(b"},\n", b"}\n", 3), ", line 5: broken JSON: expecting ',' delimiter"),
        ('{"role": "user"}\n{"content": "mine?"}\n', f", line 2: {NO_ROLE}"),
        ('[{"role": "user"}, {"content": "mine?"}]', f", line 1, message 1: {NO_ROLE}"),
        ('{"role": "wizard"}', ", line 1: role 'wizard' is none of "),
        (b"\x89" + bytes(range(256)) * 40, ", line 1: not UTF-8 text"),
        (bytes(4096), ", line 1: broken JSON: "),
        (gzip.compress(RUN.read_bytes())[:200], ": damaged gzip file"),
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_read_is_refused_in_one_line(
    tmp_path: Path, log: str | bytes | None, problem: str
) -> None:
    path = tmp_path / "log.jsonl.gz"
    if log is not None:
        path.write_bytes(log.encode() if isinstance(log, str) else log)
    assert refusal("evict", path, "--budget", 100, code=1).startswith(f"lre: {path}{problem}")


def test_a_folder_without_logs_is_refused(tmp_path: Path) -> None:
    assert (
        refusal("evict", tmp_path, "--budget", 100, code=1)
        == f"lre: {tmp_path}: no log there; a log's name ends in .json, .jsonl or .ndjson, perhaps with .gz or .zst"
    )


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["--budget", 0], "budget is 0; it must be "),
        (["--budget", -5], "budget is -5; it must be "),
        (["--budget", 9, "--keep-recent", -1], "keep_recent is -1; it must be "),
        (["--budget", 9, "--encoding", "rot13"], "no tiktoken encoding 'rot13'; there are "),
        (
            ["--budget", 9, "--scorer", "agnet"],
            "no bundled scorer and no file 'agnet'; bundled are 'agent', 'assistant'",
        ),
        (["--budget", 9, "--scorer", CHAT], f"{CHAT}: "),
        (["--budget", 9, "--scorer", RUN], f"{RUN}: not JSON"),
        (["--budget", 9, "--scorer", sys.executable], f"{sys.executable}: "),
        (["--budget", 9, "--scorer", "x" * 5000], "x" * 5000),
    ],
)
def test_a_setting_out_of_range_is_refused_in_one_line(settings: list[object], problem: str) -> None:
    code = 1 if "--scorer" in settings and "agnet" not in settings else 2
    assert refusal("evict", RUN, *settings, code=code).startswith(f"lre: {problem}")


@pytest.mark.parametrize(
    "arguments", [["evict", RUN], ["evict", "--budget", 9], ["evict", RUN, "--scope", "all"], ["evit"]]
)
def test_a_command_line_that_is_wrong_says_how_it_goes(arguments: list[object]) -> None:
    result = lre(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: lre" in result.stderr


def test_scorers_lists_what_is_bundled_with_its_size() -> None:
    rows = [line.split() for line in lre("scorers").stdout.splitlines()]
    assert [row[0] for row in rows] == lre_core.bundled_scorers()
    for name, size, unit in rows:
        assert (int(size.replace(",", "")), unit) == (len(lre_core.Scorer.from_pretrained(name).to_json()), "bytes")


def test_version() -> None:
    assert lre("--version").stdout == f"lre {version('lre-memory')}\n"


COMMANDS = ["train", "eval", "simulate", "evict", "explain", "report", "scorers"]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_every_help_has_an_example(command: list[str]) -> None:
    assert "Example: lre " in lre(*command, "--help").stdout


def run(command: list[str], *arguments: object, **settings: Any) -> subprocess.CompletedProcess[Any]:
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings
    return subprocess.run([*command, *map(str, arguments)], check=False, **settings)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_installed_command_reads_standard_input_and_writes_utf_8_in_any_locale() -> None:
    command = shutil.which("lre", path=str(Path(sys.executable).parent))
    assert command is not None
    with CHAT.open("rb") as chat:
        result = run(
            [command], "evict", "-", "--budget", 4000, stdin=chat, env=os.environ | {"PYTHONIOENCODING": "ascii"}
        )
    assert json.loads(result.stdout.decode("utf-8")) == CHAT_MESSAGES
    assert b"14 units" in result.stderr
    with RUN.open("rb") as log:
        log.readline()
        broken = run([command], "evict", "-", "--budget", 100, input=b'[{"role": "user"}\n' + log.read())
    assert (broken.returncode, broken.stdout) == (1, b"")
    assert broken.stderr.startswith(b"lre: standard input, line 2: broken JSON: ")


def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = run(python(ENTRY_POINT), "evict", RUN, "--budget", 1000, stdout=writer)
    os.close(writer)
    assert result.stderr == b""
    assert result.returncode != 0


def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    # A runner in the background hands an ignored SIGINT down to its children.
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {ENTRY_POINT}"
    command = [*python(code), "evict", str(pipe), "--budget", "100"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with pipe.open("wb"):  # opens once the command has opened it to read
        process.send_signal(signal.SIGINT)
        output = process.communicate()
    assert (output, process.returncode) == ((b"", b""), 130)


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_extra_says_what_to_install(package: str) -> None:
    result = run(python(f"import sys; sys.modules[{package!r}] = None; {ENTRY_POINT}"), "scorers")
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == b"lre: the lre command needs the 'cli' extra: pip install 'lre-memory[cli]'\n"
