"""`lre report`: one self-contained page that shows what of a history was in view, when, and why."""

from lre_core.cli.report.command import report

__all__ = ["report"]
