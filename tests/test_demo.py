import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool
from typer.testing import CliRunner

from benchmarks import week
from benchmarks.browser import CHROMIUM, MISSING, browser
from benchmarks.demo import __main__ as command
from benchmarks.demo import page
from benchmarks.demo.errands import KINDS
from benchmarks.demo.evidence import ALL_DONE
from benchmarks.demo.model import PromptOnlyModel
from benchmarks.demo.policies import EVERYTHING, LRE, POLICIES, RECENCY
from benchmarks.demo.recording import ModelCall
from benchmarks.demo.run import INSTRUCTIONS, Run, play
from benchmarks.demo.services import SERVICES, tools
from benchmarks.demo.task import make_task
from benchmarks.demo.world import TOKEN_LIFETIME, World

BUDGET = 8000
SEEDS = (0, 1, 2, 3)


@cache
def played(policy: str, seed: int) -> Run:
    return play(policy, BUDGET, seed)


def called(tool: BaseTool, **given: Any) -> dict[str, Any]:
    """Call a tool as the agent's loop does, with something for every argument that is not given."""
    something = {"string": "1", "integer": 1}
    arguments = {name: something[schema["type"]] for name, schema in tool.args.items()}
    result = tool.invoke(arguments | given)
    answered: dict[str, Any] = json.loads(result) if isinstance(result, str) else result
    return answered


def signed_in(world: World) -> str:
    person = make_task(world, 0)
    sign_in = next(tool for tool in tools(world) if tool.name == "sign_in")
    return str(sign_in.invoke({"email": person.email, "password": person.password})["token"])


def answer(messages: list[BaseMessage]) -> AIMessage:
    return PromptOnlyModel().invoke(messages)


def call_of(message: BaseMessage) -> tuple[str, dict[str, Any]] | None:
    assert isinstance(message, AIMessage)
    return (message.tool_calls[0]["name"], message.tool_calls[0]["args"]) if message.tool_calls else None


def without(history: list[BaseMessage], *names: str) -> list[BaseMessage]:
    """The history without the steps that call these tools."""
    gone = {
        call["id"]
        for message in history
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] in names
    }
    return [
        message
        for message in history
        if not (isinstance(message, ToolMessage) and message.tool_call_id in gone)
        and not (isinstance(message, AIMessage) and any(call["id"] in gone for call in message.tool_calls))
    ]


def before(run: Run, name: str) -> list[BaseMessage]:
    """The prompt on which the model made its first call of this tool, everything in view."""
    history = [SystemMessage(INSTRUCTIONS), *run.history]
    at = next(i for i, m in enumerate(history) if isinstance(m, AIMessage) and m.tool_calls[0]["name"] == name)
    return history[:at]


def test_six_services_have_some_forty_tools() -> None:
    with World(0) as world:
        assert len(SERVICES) == 6
        assert 38 <= len(tools(world)) <= 46


@pytest.mark.parametrize(("token", "code"), [("", "missing_token"), ("tk_wrong", "invalid_token")])
def test_every_tool_that_takes_a_token_refuses_a_wrong_or_missing_one(token: str, code: str) -> None:
    with World(0) as world:
        signed_in(world)
        guarded = [tool for tool in tools(world) if "token" in tool.args]
        changes = world.changes
        assert {tool.name: called(tool, token=token).get("error") for tool in guarded} == dict.fromkeys(
            (tool.name for tool in guarded), code
        )
        assert world.changes == changes
        assert {tool.name for tool in tools(world)} - {tool.name for tool in guarded} == {
            "sign_in",
            "search_catalog",
            "list_categories",
            "product_details",
            "product_reviews",
            "stock_level",
        }


def test_a_token_expires() -> None:
    with World(0) as world:
        token = signed_in(world)
        profile = next(tool for tool in tools(world) if tool.name == "account_profile")
        assert "email" in called(profile, token=token)
        world.minute += TOKEN_LIFETIME
        assert called(profile, token=token)["error"] == "expired_token"


def test_the_same_seed_gives_the_same_world_and_errands() -> None:
    def told(seed: int) -> tuple[object, ...]:
        with World(seed) as world:
            return world.rows("SELECT * FROM mails"), world.rows("SELECT * FROM orders"), make_task(world, seed)

    assert told(3) == told(3)
    assert told(3) != told(4)


def test_every_kind_of_errand_is_drawn_read_back_from_its_sentence_and_at_first_not_done() -> None:
    drawn = set()
    for seed in range(12):
        with World(seed) as world:
            for errand in make_task(world, seed).errands:
                drawn.add(errand.kind)
                readings = {name: kind.read(str(errand)) for name, kind in KINDS.items()}
                assert {name: read for name, read in readings.items() if read} == {errand.kind: errand.parameters}
                assert not errand.done(world)
    assert drawn == set(KINDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_everything_in_view_the_agent_finishes_and_makes_no_call_twice(seed: int) -> None:
    run = played(EVERYTHING, seed)
    assert run.finished
    assert (run.errands_done, len(run.sign_ins), run.repeats) == (20, 1, ())
    assert run.peak_tokens >= 3 * BUDGET


def test_the_same_prompt_gives_the_same_answer() -> None:
    history = [SystemMessage(INSTRUCTIONS), *played(EVERYTHING, 0).history]
    for at, message in enumerate(history):
        if isinstance(message, AIMessage):
            again = answer(history[:at])
            assert (again.text, call_of(again)) == (message.text, call_of(message))
            assert again.tool_calls == answer(history[:at]).tool_calls


@pytest.mark.parametrize(
    ("act", "source"),
    [
        ("place_order", "sign_in"),
        ("place_order", "list_addresses"),
        ("place_order", "list_payment_methods"),
        ("place_order", "search_catalog"),
    ],
)
def test_the_model_fetches_again_what_it_does_not_see(act: str, source: str) -> None:
    prompt = before(played(EVERYTHING, 0), act)
    seen, unseen = call_of(answer(prompt)), call_of(answer(without(prompt, source)))
    assert seen is not None
    assert seen[0] == act
    assert unseen is not None
    assert unseen[0] == source


def test_the_model_signs_in_again_when_its_token_was_refused() -> None:
    prompt = before(played(EVERYTHING, 0), "place_order")
    attempt = answer(prompt)
    refusal = ToolMessage(json.dumps({"error": "expired_token"}), tool_call_id=attempt.tool_calls[0]["id"] or "")
    after = call_of(answer([*prompt, attempt, refusal]))
    assert after is not None
    assert after[0] == "sign_in"


def test_the_model_looks_in_the_world_when_it_does_not_see_whether_an_errand_is_done() -> None:
    history = [*played(EVERYTHING, 0).history]
    first_day = history[: next(i for i, m in enumerate(history) if isinstance(m, AIMessage) and not m.tool_calls)]
    assert answer(first_day).text == ALL_DONE
    receipt = next(m for m in first_day if isinstance(m, ToolMessage) and m.name == "place_order")
    unsure = without(first_day, "place_order", "list_orders", "search_orders")
    look = answer(unsure)
    assert look.tool_calls[0]["name"] == "recent_activity"
    log = json.dumps({"activity": [json.loads(receipt.text)]})
    assert answer([*unsure, look, ToolMessage(log, tool_call_id=look.tool_calls[0]["id"] or "")]).text == ALL_DONE


def test_the_model_asks_when_email_and_password_are_gone() -> None:
    history = [HumanMessage("Please do this:\n1. Redeem the gift card that the choir mailed me.")]
    reply = answer([*history])
    assert not reply.tool_calls
    assert "email" in reply.text


@pytest.mark.parametrize("policy", [RECENCY, LRE])
@pytest.mark.parametrize("seed", SEEDS)
def test_prompts_keep_the_budget_and_are_what_providers_accept(policy: str, seed: int) -> None:
    run = played(policy, seed)
    assert run.peak_tokens <= BUDGET
    for call in run.calls:
        view = [run.history[at] for at in call.view]
        assert isinstance(view[0], HumanMessage)
        assert all(message in view for message in run.history[: call.view[-1]] if isinstance(message, HumanMessage))
        waiting: set[str | None] = set()
        for message in view:
            if isinstance(message, ToolMessage):
                assert message.tool_call_id in waiting
                waiting.remove(message.tool_call_id)
            else:
                assert not waiting
                waiting = {made["id"] for made in message.tool_calls} if isinstance(message, AIMessage) else set()
        assert not waiting


@pytest.mark.parametrize("seed", SEEDS)
def test_lre_finishes_with_fewer_sign_ins_and_at_a_lower_prompt_cost_than_recency(seed: int) -> None:
    lre, recency = played(LRE, seed), played(RECENCY, seed)
    assert lre.finished
    assert len(lre.sign_ins) < len(recency.sign_ins)
    assert lre.prompt_cost < 0.8 * recency.prompt_cost


def test_lre_finishes_in_fewer_steps_than_recency() -> None:
    steps = {policy: [played(policy, seed).steps for seed in SEEDS] for policy in (LRE, RECENCY)}
    assert sum(steps[LRE]) < sum(steps[RECENCY])
    assert all(lre <= recency for lre, recency in zip(steps[LRE], steps[RECENCY], strict=True))


def test_a_prompt_costs_a_tenth_for_the_prefix_it_shares_with_the_prompt_before() -> None:
    assert ModelCall(view=(0, 1), tokens=100, shared=80).cost == pytest.approx(28)
    first, second, *_ = played(EVERYTHING, 0).calls
    assert first.shared == 0
    assert second.shared == first.tokens
    changed = [call for call in played(RECENCY, 0).calls if call.shared < call.tokens - 1000]
    assert len(changed) > 10


def test_a_call_answered_before_is_a_repeat_by_whatever_token() -> None:
    def step(number: int, name: str, **arguments: object) -> list[BaseMessage]:
        call = {"name": name, "args": arguments, "id": str(number)}
        return [AIMessage("", tool_calls=[call]), ToolMessage("{}", tool_call_id=str(number))]

    history = [
        *step(0, "list_orders", page=1, token="a"),
        *step(1, "list_orders", page=2, token="a"),
        *step(2, "sign_in", email="e"),
        *step(3, "sign_in", email="e"),
        *step(4, "list_orders", page=1, token="b"),
    ]
    run = Run("recency", False, 0, 1, tuple(history), (1,) * len(history), ())
    assert (run.sign_ins, run.repeats) == ((4, 6), (8,))


HOSTILE = '</script><script>alert("1")</script><img src=x onerror=alert(2)>'


def test_a_run_is_logged_the_same_on_every_machine() -> None:
    logged = [json.dumps(week.messages(week.FIRST_SEED)) for _ in range(2)]
    assert logged[0] == logged[1]


def test_the_page_shows_script_text_as_text() -> None:
    history: list[AnyMessage] = [HumanMessage(HOSTILE), AIMessage(HOSTILE)]
    run = Run(HOSTILE, True, 1, 1, tuple(history), (5, 5), (ModelCall((0,), 9, 0),))
    html = page.render([run], 100)
    assert html.count("<script") == page.TEMPLATE.read_text(encoding="utf-8").count("<script")
    assert html.count("</script") == page.TEMPLATE.read_text(encoding="utf-8").count("</script")
    assert "<img" not in html
    drawn = re.search(r'<script type="application/json" id="drawn">(.*?)</script>', html, re.DOTALL)
    assert drawn is not None
    assert [unit["text"] for unit in json.loads(drawn[1])["runs"][0]["units"]] == [HOSTILE, HOSTILE]


def test_the_page_references_no_network_and_draws_every_unit() -> None:
    runs = [played(policy, 0) for policy in POLICIES]
    html = page.render(runs, BUDGET)
    assert not re.search(r"https?:|//[a-z]|\ssrc=|\shref=|url\(|@import", html)
    drawn = re.search(r'<script type="application/json" id="drawn">(.*?)</script>', html, re.DOTALL)
    assert drawn is not None
    for run, shown in zip(runs, json.loads(drawn[1])["runs"], strict=True):
        units = [at for at, message in enumerate(run.history) if not isinstance(message, ToolMessage)]
        assert [unit["kind"] for unit in shown["units"]].count("repeat") == len(run.repeats)
        for start, unit in zip(units, shown["units"], strict=True):
            in_view = {number for number, call in enumerate(run.calls) if start in call.view}
            assert {number for begin, end in unit["seen"] for number in range(begin, end)} == in_view
            assert min(in_view, default=unit["born"]) == unit["born"]


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_a_phone_and_is_read_by_pointing_and_by_keyboard(tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    path.write_text(page.render([played(policy, 0) for policy in POLICIES], BUDGET), encoding="utf-8")
    with browser() as tab:
        tab.open(path, width=width)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        tab.point("article:last-child [data-unit='1']")
        told = tab.evaluate("document.getElementById('note').textContent")
        assert told.startswith(f"{POLICIES[-1]}, row 2: sign_in · ")
        tab.evaluate("document.querySelector('article:last-child svg').focus()")
        tab.press("ArrowDown")
        assert tab.evaluate("document.getElementById('note').textContent").startswith(f"{POLICIES[-1]}, row 3: ")
        assert tab.problems == []


def test_the_command_writes_the_page_and_prints_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "play", lambda policy, budget, seed, model, report: played(policy, seed))
    result = CliRunner().invoke(command.app, ["--json", "--out", str(tmp_path / "page.html")])
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert [row["policy"] for row in rows] == list(POLICIES)
    assert rows[0] == {
        "policy": EVERYTHING,
        "finished": True,
        "errands_done": 20,
        "errands": 20,
        "steps": played(EVERYTHING, 0).steps,
        "sign_ins": 1,
        "repeated_calls": 0,
        "peak_tokens": played(EVERYTHING, 0).peak_tokens,
        "prompt_cost": played(EVERYTHING, 0).prompt_cost,
    }
    assert str(tmp_path / "page.html") in result.stderr
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


class Broken(PromptOnlyModel):
    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no key for this provider\nand a long story")


def test_a_model_that_cannot_be_used_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "page.html")
    unknown = CliRunner().invoke(command.app, ["--model", "nobody:nothing", "--out", out])
    monkeypatch.setattr(command, "init_chat_model", lambda name: Broken())
    keyless = CliRunner().invoke(command.app, ["--model", "openai:any", "--out", out])
    for result, said in ((unknown, "--model nobody:nothing: "), (keyless, "--model openai:any: no key")):
        assert result.exit_code == 2
        assert [said in line for line in result.stderr.splitlines()] == [True]
    assert not Path(out).exists()


def test_a_folder_that_is_not_there_is_said_before_the_run(tmp_path: Path) -> None:
    result = CliRunner().invoke(command.app, ["--out", str(tmp_path / "nowhere" / "page.html")])
    assert result.exit_code == 2
    assert "nowhere" in result.stderr
    assert len(result.stderr.splitlines()) == 1
