"""Scripts of the world, as far as a scorer needs to know which of them it has learned from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["SCRIPTS", "learned_scripts", "script_of"]

PAGES = (
    *((0x00, "latin"), (0x03, "greek"), (0x04, "cyrillic"), (0x05, "hebrew"), (0x06, "arabic"), (0x09, "indic")),
    *((0x0E, "thai"), (0x10, "burmese"), (0x11, "hangul"), (0x12, "other"), (0x1E, "latin"), (0x1F, "greek")),
    *((0x20, "other"), (0x30, "kana"), (0x32, "other"), (0x34, "han"), (0xA0, "other"), (0xAC, "hangul")),
    *((0xD8, "other"), (0xF9, "han"), (0xFB, "other"), (0xFF, "kana")),
)
"""Where in the basic plane, in pages of 256 characters, a script begins; small neighbours share a name."""
SCRIPTS = tuple(dict.fromkeys(name for _, name in PAGES))
SCRIPT_OF_PAGE: NDArray[np.intp] = np.repeat(
    [SCRIPTS.index(name) for _, name in PAGES], np.diff([page for page, _ in PAGES], append=256)
)
LEAST_SHARE = 0.01
"""Share of what is read in training that a script needs to be learned."""


def script_of(codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """Index in `SCRIPTS` of each code point of the basic plane."""
    return SCRIPT_OF_PAGE.take(codes >> 8)


def learned_scripts(counts: NDArray[np.intp]) -> tuple[str, ...]:
    """The scripts there is enough of to learn from.

    Args:
        counts: (len(SCRIPTS),) how much of each was read.
    """
    least = max(1.0, LEAST_SHARE * counts.sum())
    return tuple(name for name, count in zip(SCRIPTS, counts, strict=True) if count >= least)
