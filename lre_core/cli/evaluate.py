"""`lre eval`: how well a scorer as it is ranks the units of given logs."""

from __future__ import annotations

from lre_core.cli.options import Json, KeepRecent, Logs, Quiet, ScorerName, SkipBad, scores_by
from lre_core.cli.terminal import console, write_json
from lre_core.cli.train import Most, comparison_json, labelled, ranking_table, sampled

__all__ = ["evaluate"]


def evaluate(
    paths: Logs,
    scorer: ScorerName = "auto",
    most: Most = 500,
    keep_recent: KeepRecent = 5,
    skip_bad: SkipBad = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Rank the units of logs with a scorer and with simpler means, and say which finds what was needed later.

    Nothing is trained: give it logs the scorer has not been trained on.

    Example: lre eval logs/sunday.jsonl --scorer scorer.json
    """
    # Needs scikit-learn, which the other commands do without.
    from lre_core.comparison import rank

    scores = scores_by(scorer)
    sample, read = sampled(paths, most, skip_bad, quiet)
    cases = labelled(sample, quiet)
    comparison = rank(scores, cases.histories, cases.labels, groups=cases.groups, keep_recent=keep_recent)
    verdict = comparison.verdict()
    if not quiet:
        screen = console()
        if comparison.auc:
            screen.print(ranking_table(comparison))
        screen.print(f"Verdict on {scorer}: {verdict}.", soft_wrap=True)
    if as_json:
        counts = {"histories": read.count, "used": len(sample), "skipped": read.skipped, "formats": read.formats}
        write_json(counts | {"scorer": scorer, "verdict": verdict} | comparison_json(comparison))
