"""Runs of the function-calling benchmark: valid, complete and the same every time."""

import gzip
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.bfcl import Call, app, compressed, histories, named_arguments, parse_call

installed = pytest.mark.skipif(
    not (find_spec("bfcl_eval") and find_spec("mpmath")),
    reason="bfcl-eval is not installed: pip install --no-deps bfcl-eval==2026.3.23 mpmath",
)
both = pytest.mark.parametrize("variant", ["base", "long-context"])


def diff(file_name1: str, file_name2: str, context: int = 3) -> str:
    return f"{file_name1} {file_name2} {context}"


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("pwd()", Call("pwd", [], {})),
        ("cd(folder='document')", Call("cd", [], {"folder": "document"})),
        ("sort('final_report.pdf')", Call("sort", ["final_report.pdf"], {})),
        ("  tail('a.txt', lines=20)", Call("tail", ["a.txt"], {"lines": 20})),
        (
            "post(text='f(x) = \"y\", \\'z\\'', tags=['#a', '#b'], meta={'n': -1.5, 'ok': True, 'no': None})",
            Call(
                "post",
                [],
                {"text": "f(x) = \"y\", 'z'", "tags": ["#a", "#b"], "meta": {"n": -1.5, "ok": True, "no": None}},
            ),
        ),
    ],
)
def test_a_call_string_is_parsed(source: str, call: Call) -> None:
    assert parse_call(source) == call


@pytest.mark.parametrize(
    "source",
    [
        "",
        "pwd",
        "cd(folder=",
        "a.b()",
        "mean(numbers=load())",
        "cd(*parts)",
        "cd(**kept)",
        "cd(folder=HOME)",
        "f(); g()",
    ],
)
def test_what_is_not_a_call_with_literal_arguments_is_refused_by_name(source: str) -> None:
    with pytest.raises(ValueError, match="expected a call with literal arguments") as refusal:
        parse_call(source)
    assert repr(source) in str(refusal.value)


def test_positional_arguments_take_their_parameters_names_in_declared_order() -> None:
    assert named_arguments(parse_call("diff('a', 'b')"), diff) == {"file_name1": "a", "file_name2": "b"}
    mixed = named_arguments(parse_call("diff('a', context=1, file_name2='b')"), diff)
    assert list(mixed.items()) == [("file_name1", "a"), ("file_name2", "b"), ("context", 1)]


@pytest.mark.parametrize("source", ["diff('a')", "diff('a', 'b', 3, 4)", "diff('a', 'b', file_name1='c')", "diff(x=1)"])
def test_arguments_that_the_function_does_not_take_are_refused(source: str) -> None:
    with pytest.raises(TypeError):
        named_arguments(parse_call(source), diff)


def test_equal_rows_give_equal_bytes_that_hold_no_time() -> None:
    rows = [{"id": "ü"}, {"id": "two"}]
    packed = compressed(rows)
    assert packed == compressed(iter(rows))
    assert packed[4:8] == bytes(4)
    assert [json.loads(line) for line in gzip.decompress(packed).splitlines()] == rows


def test_without_the_benchmark_one_line_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "bfcl_eval", None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps bfcl-eval"):
        histories()
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "runs.jsonl.gz")])
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "pip install --no-deps bfcl-eval" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown variant 'short'; there are 'base', 'long-context'"):
        histories("short")


@pytest.fixture(scope="module")
def runs() -> dict[str, list[dict[str, Any]]]:
    return {variant: histories(variant) for variant in ("base", "long-context")}


@installed
@both
def test_every_call_has_its_result_directly_after_it(runs: dict[str, list[dict[str, Any]]], variant: str) -> None:
    for run in runs[variant]:
        asked = None
        used = set()
        for message in run["messages"]:
            if asked:
                assert (message["role"], message["tool_call_id"], message["name"]) == ("tool", *asked)
                json.loads(message["content"])
                asked = None
                continue
            assert message["role"] in ("user", "assistant")
            if message["role"] == "assistant":
                (call,) = message["tool_calls"]
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                assert call["id"] not in used
                used.add(call["id"])
                asked = call["id"], call["function"]["name"]
        assert asked is None


@installed
@both
def test_turns_are_whole_and_in_the_order_of_the_task(runs: dict[str, list[dict[str, Any]]], variant: str) -> None:
    package = pytest.importorskip("bfcl_eval")
    name = f"BFCL_v4_multi_turn_{variant.replace('-', '_')}.json"
    folder = Path(package.__file__).parent / "data"
    scenarios, answers = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        for path in (folder / name, folder / "possible_answer" / name)
    )
    assert [run["task"] for run in runs[variant]] == [f"bfcl-{k}" for k in range(200)]
    for run, scenario, answer in zip(runs[variant], scenarios, answers, strict=True):
        told = [["user", turn[0]["content"]] for turn in scenario["question"]]
        expected = [
            step
            for said, calls in zip(told, answer["ground_truth"], strict=True)
            for step in (said, *(["call", source.partition("(")[0]] for source in calls))
        ]
        found = [
            ["call", message["tool_calls"][0]["function"]["name"]]
            if message["role"] == "assistant"
            else ["user", message["content"]]
            for message in run["messages"]
            if message["role"] != "tool"
        ]
        assert (run["id"], run["classes"], found) == (scenario["id"], scenario["involved_classes"], expected)


@installed
@both
def test_the_services_accept_the_calls(runs: dict[str, list[dict[str, Any]]], variant: str) -> None:
    results = [json.loads(m["content"]) for run in runs[variant] for m in run["messages"] if m["role"] == "tool"]
    refused = [result for result in results if isinstance(result, dict) and "error" in result]
    assert len(results) > 1_000
    assert refused == []


@installed
@both
def test_a_second_run_in_the_same_process_gives_the_same_bytes(
    runs: dict[str, list[dict[str, Any]]], variant: str, tmp_path: Path
) -> None:
    out = tmp_path / "runs.jsonl.gz"
    result = CliRunner().invoke(app, ["--out", str(out), "--variant", variant])
    assert (result.exit_code, result.stdout) == (0, "")
    assert out.read_bytes() == compressed(runs[variant])


@installed
def test_a_folder_that_is_not_there_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--out", str(tmp_path / "nowhere" / "runs.jsonl.gz")])
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
    assert "Traceback" not in result.output
