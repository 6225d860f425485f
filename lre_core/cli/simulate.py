"""`lre simulate`: what a budget would have kept and cost on given logs, by policy."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

import typer
from rich.table import Table

from lre_core import labels
from lre_core.cli.options import Budget, Encoding, Json, KeepRecent, Logs, Quiet, ScorerName, SkipBad, evictor_of
from lre_core.cli.terminal import console, counted, write_json
from lre_core.cli.train import Most, sampled
from lre_core.errors import InvalidSetting
from lre_core.evaluation import CACHED_PRICE, Outcome, Replay, Simulation

__all__ = ["simulate"]

SHOWN = {"lre": "LRE session", "recency": "recency, every turn", "hindsight": "hindsight (a bound)"}


def simulate(
    paths: Logs,
    budget: Budget,
    scorer: ScorerName = "auto",
    keep_recent: KeepRecent = 5,
    encoding: Encoding = "o200k_base",
    cached_price: Annotated[
        float, typer.Option(help="Price of a token of an unchanged prefix, as a share of a fresh one's.")
    ] = CACHED_PRICE,
    most: Most = 200,
    skip_bad: SkipBad = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Replay logs prompt by prompt under a budget, and show what each policy kept in view and what its prompts cost.

    Evidence is what the rest of a history turned out to need of its older units, at moments where something had to go.
    Tokens and cost are of all prompts; output and tool definitions are not counted. Give it logs the scorer has not
    been trained on.

    Example: lre simulate logs/sunday.jsonl --budget 2048 --scorer scorer.json
    """
    if not 0 <= cached_price <= 1:
        raise InvalidSetting(f"--cached-price is {cached_price}; it must be from 0 to 1")
    # An agent's run is often one long turn, whose finished steps must be able to go.
    evictor = replace(evictor_of(budget, scorer, keep_recent, encoding), whole_turn=False)
    sample, read = sampled(paths, most, skip_bad, quiet)
    simulation = Simulation(budget, cached_price)
    for history in counted(sample, len(sample), "replaying", quiet):
        replay = Replay(history.messages, evictor)
        simulation.add(replay, replay.moments(labels.from_log(history.messages)), history.group)
    outcomes = simulation.outcomes()
    if not quiet:
        screen = console()
        screen.print(_table(outcomes))
        screen.print(_sentence(simulation), soft_wrap=True)
    if as_json:
        counts = {"histories": read.count, "used": len(sample), "skipped": read.skipped, "formats": read.formats}
        counted_up = {key: getattr(simulation, key) for key in ("budget", "outgrown", "prompts", "moments")}
        write_json(counts | counted_up | {"policies": {name: _plain(name, each) for name, each in outcomes.items()}})


def _plain(policy: str, outcome: Outcome) -> dict[str, Any]:
    fields = asdict(outcome)
    if outcome.evidence is not None:
        fields["evidence"] = dict(zip(("mean", "low", "high"), outcome.evidence, strict=True))
    return {"evidence": fields["evidence"]} if policy == "hindsight" else fields


def _table(outcomes: dict[str, Outcome]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in (
        "policy",
        "evidence in view",
        "tokens",
        "prompt cost",
        "of everything",
        "largest prompt",
        "over budget",
    ):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    whole = outcomes["everything"].cost
    for policy, outcome in outcomes.items():
        evidence = "-"
        if outcome.evidence is not None:
            mean, low, high = outcome.evidence
            evidence = f"{mean:.2f} [{low:.2f}, {high:.2f}]"
        figures = [f"{outcome.tokens:,}", f"{outcome.cost:,.0f}", f"{outcome.cost / whole:.2f}" if whole else "-"]
        figures += [f"{outcome.peak:,}", f"{outcome.over:,}"]
        table.add_row(SHOWN.get(policy, policy), evidence, *(["-"] * 5 if policy == "hindsight" else figures))
    return table


def _sentence(simulation: Simulation) -> str:
    return (
        f"{simulation.histories:,} histories, {simulation.prompts:,} prompts; {simulation.outgrown:,} histories "
        f"outgrow {simulation.budget:,} tokens. Evidence is from {simulation.moments:,} moments. A prefix that "
        f"did not change costs {simulation.cached_price:g} of its tokens."
    )
