"""What a message costs: tiktoken's encodings without a network, an estimate where they are missing, or a callable."""

from __future__ import annotations

import functools
import importlib.util
import logging
import math
import os
import re
import tempfile
import threading
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lre_core.errors import InvalidSetting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lre_core.messages import Message

__all__ = ["MEDIA_TOKENS", "MESSAGE_OVERHEAD", "TokenCounter", "counter", "estimate", "message_tokens", "remembering"]

logger = logging.getLogger(__name__)

TokenCounter = Callable[[str], int]

MESSAGE_OVERHEAD = 3
"""Tokens a chat message costs beside its text: the role and two delimiters (OpenAI cookbook, token counting)."""
MEDIA_TOKENS = 765
"""Tokens of an image, recording or file: what OpenAI bills for 1024 by 1024 pixels in high detail."""

# tiktoken names a cached vocabulary by the SHA-1 of its address; with the file there, it opens no connection.
CACHED_AS = {
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "o200k_harmony": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "p50k_base": "ec7223a39ce59f226a68acc30dc1af2788490e15",
    "p50k_edit": "ec7223a39ce59f226a68acc30dc1af2788490e15",
    "r50k_base": "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4",
}
# A byte-pair merge over one run without a space is superlinear, so long texts are counted in pieces.
PIECE = 50_000

PATTERN = re.compile(
    r"(?P<word>[^\W\d_\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff]+)"
    r"|(?P<number>\d+)|(?P<space>\s+)|(?P<mark>[\x21-\x7e]+)|(?P<other>.)",
    re.DOTALL,
)


def counter(encoding: str | TokenCounter = "o200k_base") -> TokenCounter:
    """A token counter that never touches the network.

    Args:
        encoding: the name of a tiktoken encoding, or a callable from text to tokens, which comes back as it is.

    Returns:
        A callable from text to tokens. Where the encoding's vocabulary lies neither in tiktoken's cache nor in
        llama-index-core (which ships copies), it is `estimate`, and one log record says so.

    Raises:
        InvalidSetting: tiktoken has no encoding of that name.
    """
    return encoding if callable(encoding) else _tiktoken_counter(encoding)


@functools.cache
def _tiktoken_counter(name: str) -> TokenCounter:
    if name not in CACHED_AS:
        raise InvalidSetting(f"no tiktoken encoding {name!r}; there are {', '.join(map(repr, CACHED_AS))}")
    folder = _vocabulary_folder(CACHED_AS[name])
    if folder is None:
        logger.warning(
            "The vocabulary of %s is not on this machine, so tokens are estimated. Install llama-index-core, which "
            "ships it, or let tiktoken download it once: python -c \"import tiktoken; tiktoken.get_encoding('%s')\"",
            name,
            name,
        )
        return estimate

    import tiktoken

    with _cache_folder(folder):
        encode = tiktoken.get_encoding(name).encode_ordinary

    def count(text: str) -> int:
        if len(text) <= PIECE:
            return len(encode(text))
        return sum(len(encode(text[at : at + PIECE])) for at in range(0, len(text), PIECE))

    return count


def _vocabulary_folder(file: str) -> Path | None:
    configured = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    folders = [Path(configured or Path(tempfile.gettempdir(), "data-gym-cache"))]
    try:
        llama_index = importlib.util.find_spec("llama_index.core")
    except ImportError:
        llama_index = None
    if llama_index is not None and llama_index.submodule_search_locations:
        folders.append(Path(llama_index.submodule_search_locations[0], "_static", "tiktoken_cache"))
    return next((folder for folder in folders if (folder / file).is_file()), None)


_environment = threading.Lock()


@contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    with _environment:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        try:
            yield
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before


def estimate(text: str) -> int:
    """Tokens of a text without a vocabulary, in any script; within about a tenth of o200k_base on ordinary text.

    The rates are a least-squares fit to o200k_base on English, code and JSON. Words cost by their length, more in
    scripts the vocabularies know less well; Chinese, Japanese, Korean and Thai nearly a token a character.
    """
    tokens = 0.0
    for match in PATTERN.finditer(text):
        length = match.end() - match.start()
        if match.lastgroup == "word":
            tokens += 0.9 + 0.02 * length if match[0].isascii() else 0.6 + 0.22 * length
        elif match.lastgroup == "number":
            tokens += 1.8 * ((length + 2) // 3)
        elif match.lastgroup == "space":
            tokens += 0.8 * (length > 1)
        elif match.lastgroup == "mark":
            tokens += 0.9 + 0.3 * length
        else:
            tokens += 0.8
    return math.ceil(tokens)


def message_tokens(message: Message, count: TokenCounter, overhead: int = MESSAGE_OVERHEAD) -> int:
    """Tokens a message costs: its name, text and calls with their arguments, its images, and the overhead.

    Args:
        message: the message.
        count: a callable from text to tokens, called once.
        overhead: tokens for the role and the delimiters.
    """
    parts = [message.name or "", message.text]
    for call in message.calls:
        parts += (call.name, call.arguments)
    text = "\n".join(filter(None, parts))
    return (count(text) if text else 0) + MEDIA_TOKENS * message.media + overhead


REMEMBERED = 1 << 16


def remembering(count: TokenCounter) -> TokenCounter:
    """The same counter, which counts a text it has lately seen once; it keeps no text."""
    known: dict[tuple[int, int], int] = {}

    def remembered(text: str) -> int:
        key = hash(text), len(text)
        tokens = known.get(key)
        if tokens is None:
            if len(known) >= REMEMBERED:
                known.clear()
            tokens = known[key] = count(text)
        return tokens

    return remembered
