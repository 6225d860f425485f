"""`lre report`: one page that loads nothing, read by pointing and by keyboard, in a real browser."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks import families
from benchmarks.browser import CHROMIUM, MISSING, Page, browser
from lre_core.cli.app import app

FIXTURES = Path(__file__).parent / "fixtures"
RUN = FIXTURES / "agent_run.jsonl"
HOSTILE = (
    "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    "<!-- <script> ${x} $budget & 'quotes' \u2028 \x00 \ud83d"
)

in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


def report(path: Path, log: Path, *arguments: object) -> Path:
    result = CliRunner().invoke(app, ["report", str(log), "-o", str(path), *map(str, arguments)])
    assert result.exit_code == 0, result.stderr
    return path


def write(path: Path, messages: list[dict[str, Any]], name: str = "run") -> Path:
    path.write_text(json.dumps({"id": name, "messages": messages}), "utf-8")
    return path


def steps(count: int, text: str = "the tide table of the harbour") -> list[dict[str, Any]]:
    """A run of so many messages."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": text}, {"role": "user", "content": text}]
    for n in range(count // 2 - 1):
        call = {"id": f"c{n}", "type": "function", "function": {"name": text, "arguments": json.dumps({"at": text})}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"ref-{n} {text}"})
    return messages


class Elements(HTMLParser):
    """Every element of a page with its attributes, as a browser without JavaScript sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(page: Path) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(page.read_text("utf-8"))
    return parser.found


def drawn(page: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="drawn">(.*?)</script>', page.read_text("utf-8"), re.DOTALL)
    assert found is not None
    result: dict[str, Any] = json.loads(found[1])
    return result


def test_the_page_names_nothing_to_load(tmp_path: Path) -> None:
    page = report(tmp_path / "page.html", RUN, "--budget", 600)
    assert re.findall(r"https?://\S*", page.read_text("utf-8")) == []
    for tag, attributes in elements(page):
        assert tag not in ("link", "iframe", "object", "img", "base"), tag
        assert not {"src", "href", "style", "onclick", "onload"} & set(attributes), (tag, attributes)
    (policy,) = [a["content"] for t, a in elements(page) if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_every_unit_is_drawn_with_its_score_its_reason_and_when_it_was_in_view(tmp_path: Path) -> None:
    page = drawn(report(tmp_path / "page.html", RUN, "--budget", 600))
    calls = len(page["prompts"]["lre"])
    assert max(page["prompts"]["lre"]) <= 600 < max(page["prompts"]["everything"])
    assert max(page["prompts"]["recency"]) <= 600
    left = [unit for unit in page["units"] if unit["left"] is not None]
    assert left
    for unit in page["units"]:
        assert all(unit["born"] <= start < stop <= calls for start, stop in unit["seen"])
        assert unit["why"]
        in_view_at_the_end = bool(unit["seen"]) and unit["seen"][-1][1] == calls
        assert in_view_at_the_end == (unit["left"] is None)
        assert unit["left"] is None or unit["why"] in ("scored out", "too large", "invalid")


def test_what_outlived_an_eviction_says_why_it_did(tmp_path: Path) -> None:
    units = drawn(report(tmp_path / "page.html", write(tmp_path / "log.json", steps(120)), "--budget", 500))["units"]
    last = max(unit["left"] for unit in units if unit["left"] is not None)
    outlived = [unit for unit in units if unit["left"] is None and unit["born"] < last - 6]  # no longer recent then
    assert outlived
    assert {unit["why"] for unit in outlived} <= {"pinned", "opens", "scored in", "tenured"}
    assert not {unit["why"] for unit in units if unit["born"] > last} & {"scored in", "tenured"}


def test_what_was_needed_is_marked_and_adds_up_to_the_evidence(tmp_path: Path) -> None:
    (run,) = families.histories("operations", 1)
    log = write(tmp_path / "log.json", run["messages"])
    path = report(tmp_path / "page.html", log, "--budget", 1024)
    units, shares = drawn(path)["units"], {}
    for call in {call for unit in units for call in unit["needed"]}:
        needed = [unit for unit in units if call in unit["needed"]]
        held = [unit for unit in needed if any(start <= call < stop for start, stop in unit["seen"])]
        shares[call] = len(held) / len(needed)
    assert shares
    evidence = re.search(r"evidence in view</th>(.*?)</tr>", path.read_text("utf-8"))
    assert evidence is not None
    assert re.findall(r"<td>(.*?)</td>", evidence[1])[-1] == f"{sum(shares.values()) / len(shares):.0%}"
    fitting = report(tmp_path / "fitting.html", log, "--budget", 60_000)
    assert not any(unit["needed"] for unit in drawn(fitting)["units"])
    assert "evidence in view" not in fitting.read_text("utf-8")


def test_what_a_message_holds_is_no_markup(tmp_path: Path) -> None:
    plain = report(tmp_path / "plain.html", write(tmp_path / "a.json", steps(20)), "--budget", 300)
    hostile = report(
        tmp_path / "hostile.html", write(tmp_path / "b.json", steps(20, HOSTILE), HOSTILE), "--budget", 900
    )
    assert [tag for tag, _ in elements(hostile)] == [tag for tag, _ in elements(plain)]
    assert drawn(hostile)["units"][1]["text"].startswith("</script><script>document.title")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    arguments = ["report", str(RUN), "--budget", "600", "-o", str(tmp_path / "none" / "page.html")]
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (
        2,
        f"lre: {tmp_path / 'none' / 'page.html'}: there is no folder {tmp_path / 'none'}\n",
    )


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browser() as page:
        yield page


def note(tab: Page) -> str:
    return str(
        tab.evaluate("document.getElementById('note').hidden ? '' : document.getElementById('note').textContent")
    )


@in_a_browser
def test_script_in_a_message_is_shown_as_text(tab: Page, tmp_path: Path) -> None:
    tab.open(report(tmp_path / "page.html", write(tmp_path / "log.json", steps(20, HOSTILE), HOSTILE), "--budget", 900))
    tab.point("[data-unit='3']")
    assert "<script>document.title = 'taken'</script>" in note(tab)
    assert tab.evaluate("document.title").startswith("In view: </script><script>")
    assert tab.evaluate("document.querySelectorAll('img').length") == 0
    assert tab.problems == []


@in_a_browser
@pytest.mark.parametrize("messages", [20, 2000])
def test_rows_are_read_by_pointing_and_by_keyboard(tab: Page, tmp_path: Path, messages: int) -> None:
    page = report(tmp_path / "page.html", write(tmp_path / "log.json", steps(messages)), "--budget", messages * 4)
    tab.open(page)
    units = drawn(page)["units"]
    assert tab.evaluate("document.querySelectorAll('.row').length") == len(units) == messages // 2 + 1
    tab.point("[data-unit='4']")
    pointed = note(tab)
    assert pointed.startswith(f"{units[4]['what']} · message {units[4]['start']}–{units[4]['stop'] - 1} · ")
    assert f"score {units[4]['score']:.3f}" in pointed
    tab.press("Escape")
    assert note(tab) == ""
    tab.evaluate("document.getElementById('timeline').focus()")
    at, last = 4, len(units) - 1
    for key, step in {"Home": -last, "ArrowDown": 1, "PageDown": 10, "ArrowUp": -1, "PageUp": -10, "End": last}.items():
        at = min(max(at + step, 0), last)
        tab.press(key)
        assert note(tab).startswith(f"{units[at]['what']} · message {units[at]['start']}")
    assert tab.problems == []


@in_a_browser
def test_a_call_is_read_by_pointing_and_by_keyboard(tab: Page, tmp_path: Path) -> None:
    path = report(tmp_path / "page.html", RUN, "--budget", 600)
    page = drawn(path)
    tab.open(path)
    tab.evaluate("document.getElementById('timeline').focus()")
    for call in range(3):
        tab.press("ArrowRight")
        in_view = sum(any(start <= call < stop for start, stop in unit["seen"]) for unit in page["units"])
        tokens = [f"{page['prompts'][policy][call]:,}" for policy in ("everything", "recency", "lre")]
        told = "Call {}: everything {}, recency {}, LRE {} tokens; {} units in view.".format(call + 1, *tokens, in_view)
        assert tab.evaluate("document.getElementById('at').textContent") == told
    tab.point("#budget")
    assert tab.evaluate("document.getElementById('at').textContent") != told
    places = tab.evaluate("[...document.querySelectorAll('.cross')].map((line) => line.getBoundingClientRect().x)")
    assert len(places) == 2
    assert places[0] == pytest.approx(places[1])


@in_a_browser
def test_the_drawings_fill_a_window_that_changes(tab: Page, tmp_path: Path) -> None:
    tab.open(report(tmp_path / "page.html", RUN, "--budget", 600), width=1100)
    tab.point("[data-unit='2']")
    for width in (360, 900):
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        drawn_to, card = tab.evaluate(
            "[document.getElementById('timeline').viewBox.baseVal.width,"
            "document.getElementById('timeline').getBoundingClientRect().width]"
        )
        assert drawn_to == pytest.approx(card, abs=1)
        assert tab.evaluate("document.querySelector('.on').dataset.unit") == "2"
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


@in_a_browser
@pytest.mark.parametrize("width", [360, 1100])
def test_large_figures_and_long_words_are_not_cut_off(tab: Page, tmp_path: Path, width: int) -> None:
    long = write(tmp_path / "log.json", steps(100, "潮汐表" * 900))
    tab.open(report(tmp_path / "page.html", long, "--budget", 100_000), width=width)
    assert cut_off(tab) == []


@in_a_browser
def test_the_timeline_is_reached_with_the_tab_key(tab: Page, tmp_path: Path) -> None:
    tab.open(report(tmp_path / "page.html", RUN, "--budget", 600))
    reached = []
    for _ in range(3):
        tab.press("Tab")
        reached.append(tab.evaluate("document.activeElement.id"))
    assert "timeline" in reached
    assert note(tab) != ""


@in_a_browser
@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_and_is_readable_by_day_and_night(tab: Page, tmp_path: Path, width: int, dark: bool) -> None:
    tab.open(report(tmp_path / "page.html", RUN, "--budget", 600), width=width, dark=dark)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.point("[data-unit='2']")
    for selector in ("body", ".lead", "#note", "#note p", "#note span", "thead th", "tbody tr:last-child th", ".hint"):
        assert contrast(tab, selector) >= 4.5, selector
    assert cut_off(tab) == []
    letters = tab.evaluate("document.querySelector('#timeline text').getBoundingClientRect().height")
    assert letters >= 9


def cut_off(tab: Page) -> list[str]:
    """Letters of the drawings that stand beyond their edge."""
    found: list[str] = tab.evaluate(
        "[...document.querySelectorAll('svg text')].filter((text) => { const box = text.getBBox();"
        "return box.x < -0.5 || box.x + box.width > text.ownerSVGElement.viewBox.baseVal.width + 0.5; })"
        ".map((text) => text.textContent)"
    )
    return found


def contrast(tab: Page, selector: str) -> float:
    """Of an element's text against what lies behind it, by WCAG 2."""
    colours = tab.evaluate(
        f"(() => {{ let e = document.querySelector({json.dumps(selector)}); const ink = getComputedStyle(e).color;"
        "while (getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;"
        "return [ink, getComputedStyle(e).backgroundColor]; })()"
    )
    light, dark = sorted((luminance(colour) for colour in colours), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
