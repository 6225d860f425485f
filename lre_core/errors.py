"""One tree of errors: catch `LREError` for all of them.

LREError
├── InvalidMessage      a message that cannot be read (also a ValueError)
├── InvalidSetting      an argument outside its range (also a ValueError)
├── LogError            a log file that cannot be read; names file and line
├── TrainingError       nothing to learn from: no labels, or labels of one kind only
├── ScorerError
│   ├── UnknownScorer   no bundled scorer of that name
│   └── InvalidScorer   a scorer file that is not one, or is damaged
└── MissingExtra        a feature whose extra is not installed (also an ImportError)
"""

from __future__ import annotations

__all__ = [
    "InvalidMessage",
    "InvalidScorer",
    "InvalidSetting",
    "LREError",
    "LogError",
    "MissingExtra",
    "ScorerError",
    "TrainingError",
    "UnknownScorer",
]


class LREError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidMessage(LREError, ValueError):
    """A message that cannot be read as a chat message; the text names its index and what was found."""


class InvalidSetting(LREError, ValueError):
    """An argument outside its range, such as a budget of 0 or the name of an encoding that does not exist."""


class LogError(LREError):
    """A log file that cannot be read; the text names the file and, where there is one, the line."""


class TrainingError(LREError):
    """There is nothing to learn from: no histories, or labels of one kind only."""


class ScorerError(LREError):
    """Base of the errors about scorers."""


class UnknownScorer(ScorerError):
    """No bundled scorer has the name asked for; the text lists those there are."""


class InvalidScorer(ScorerError):
    """A scorer file that is not one, is damaged, or was written by a version this one cannot read."""


class MissingExtra(LREError, ImportError):
    """A feature needs a package that is not installed; the text says what to install."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the '{extra}' extra: pip install 'lre-memory[{extra}]'")
