"""What the terminal shows: a bar for each run while it lasts, then the table of figures."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from benchmarks.demo import run
from benchmarks.demo.run import Run

Report = Callable[[run.Progress], None]


@contextmanager
def bars(console: Console, policies: Sequence[str], budget: int, live: bool) -> Iterator[Callable[[str], Report]]:
    """Show how full each run's prompt is.

    Args:
        console: Where to draw.
        policies: One bar for each, in this order.
        budget: Tokens a prompt may take; above it a bar is full and red.
        live: Draw; otherwise nothing is shown.

    Yields:
        A function from a policy's name to the callback that moves its bar.
    """
    progress = Progress(
        TextColumn("[bold]{task.description:<10}"),
        BarColumn(bar_width=20, complete_style="cyan", finished_style="red"),
        TextColumn("{task.fields[tokens]}"),
        TextColumn("[dim]{task.fields[steps]}"),
        console=console,
        disable=not live,
    )
    # A bar counts as finished when it is full, and a prompt of exactly the budget is not yet over it.
    full = budget + 1
    tasks = {policy: progress.add_task(policy, total=full, tokens="", steps="waits") for policy in policies}

    def reporter(policy: str) -> Report:
        def report(now: run.Progress) -> None:
            over = now.tokens > budget
            progress.update(
                tasks[policy],
                completed=min(now.tokens, full),
                tokens=f"[{'red' if over else 'green'}]{now.tokens:>6,}[/] of {budget:,} tokens",
                steps=f"step {now.steps}, {now.errands_done} errands",
            )

        return report

    with progress:
        yield reporter


def table(runs: Sequence[Run], budget: int) -> Table:
    """The figures, one row a run."""
    figures = Table(title=f"Budget: {budget:,} tokens a prompt", title_justify="left", title_style="bold")
    for heading in ("policy", "finished", "steps", "sign-ins", "repeated\ncalls", "peak\ntokens", "prompt\ncost"):
        figures.add_column(heading, justify="left" if heading in ("policy", "finished") else "right")
    for played in runs:
        figures.add_row(
            played.policy,
            "[green]yes[/]" if played.finished else f"[red]no[/], {played.errands_done} of {played.errands}",
            str(played.steps),
            str(len(played.sign_ins)),
            str(len(played.repeats)),
            f"[{'red' if played.peak_tokens > budget else 'default'}]{played.peak_tokens:,}[/]",
            f"{played.prompt_cost:,}",
        )
    figures.caption = "Prompt cost: all prompts' tokens, an unchanged prefix at a tenth."
    figures.caption_justify = "left"
    return figures


def row(played: Run) -> dict[str, str | int | bool]:
    """The figures of a run for `--json`."""
    return {
        "policy": played.policy,
        "finished": played.finished,
        "errands_done": played.errands_done,
        "errands": played.errands,
        "steps": played.steps,
        "sign_ins": len(played.sign_ins),
        "repeated_calls": len(played.repeats),
        "peak_tokens": played.peak_tokens,
        "prompt_cost": played.prompt_cost,
    }
