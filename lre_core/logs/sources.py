"""Where logs lie: files, folders, globs, standard input and fsspec URLs; plain, gzip or zstd."""

from __future__ import annotations

import glob
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from lre_core.errors import LogError, MissingExtra

__all__ = ["Source", "find", "opened"]

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
LOG_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson"})
PACKED_SUFFIXES = frozenset({".gz", ".zst"})


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read.

    Attributes:
        name: as an error's text names it.
        path: the path, `-` for standard input, or the path within `filesystem`.
        size: bytes as they lie there; None where that is unknown, as for a pipe.
        filesystem: the fsspec file system it lies in; None for local files.
    """

    name: str
    path: str
    size: int | None
    filesystem: Any = None


def find(path: str | Path) -> list[Source]:
    """The files a path, folder, glob or URL stands for, in the order of their names.

    A folder stands for all files below it that are named as logs are (`.json`, `.jsonl`, `.ndjson`, also with `.gz` or
    `.zst`), hidden ones left out.

    Raises:
        LogError: there is nothing of that name, or no log in the folder.
        MissingExtra: it is a URL and fsspec is not installed.
    """
    text = str(path)
    if text == "-":
        return [Source("standard input", text, None)]
    if "://" in text:
        return _find_remote(text)
    if os.path.isdir(text):
        files = (os.path.join(folder, name) for folder, _, names in os.walk(text) for name in names)
        found = sorted(file for file in files if _named_as_log(os.path.relpath(file, text)))
    elif not os.path.lexists(text) and glob.has_magic(text):
        found = sorted(file for file in glob.glob(text, recursive=True) if os.path.isfile(file))
    else:
        return [Source(text, text, _size(text))]
    if not found:
        raise LogError(f"{text}: no log there; a log's name ends in .json, .jsonl or .ndjson, perhaps with .gz or .zst")
    return [Source(file, file, _size(file)) for file in found]


def _find_remote(url: str) -> list[Source]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"Reading {url.partition('://')[0]}:// addresses", "remote") from None
    try:
        filesystem, path = fsspec.core.url_to_fs(url)
        if glob.has_magic(path):
            found = sorted(filesystem.glob(path))
        elif filesystem.isdir(path):
            found = sorted(file for file in filesystem.find(path) if _named_as_log(file.removeprefix(path)))
        else:
            found = [path]
        if not found:
            raise LogError(f"{url}: no log there")
        return [Source(filesystem.unstrip_protocol(file), file, filesystem.size(file), filesystem) for file in found]
    except ImportError as error:  # a protocol whose own package is not installed
        raise LogError(f"{url}: {error}") from None
    except (OSError, ValueError) as error:
        raise LogError(f"{url}: {getattr(error, 'strerror', None) or error or 'cannot be read'}") from None


def _named_as_log(file: str) -> bool:
    parts = PurePosixPath(Path(file).as_posix().lstrip("/"))
    if any(part.startswith(".") for part in parts.parts):
        return False
    suffixes = parts.suffixes
    while suffixes and suffixes[-1] in PACKED_SUFFIXES:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in LOG_SUFFIXES


def _size(file: str) -> int | None:
    try:
        return os.path.getsize(file) if os.path.isfile(file) else None
    except OSError:
        return None


@contextmanager
def opened(source: Source) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Opens a source: the stream as it lies there, whose `tell` shows progress, and the stream to read, unpacked.

    Raises:
        LogError: it cannot be opened or read, or is damaged; while the context lasts, too.
        MissingExtra: it is zstd and zstandard is not installed.
    """
    damage: tuple[type[Exception], ...] = (gzip.BadGzipFile, EOFError, zlib.error)
    kind = "gzip"
    try:
        with _raw(source) as raw:
            magic = raw.peek(len(ZSTD_MAGIC))
            stream: BinaryIO = cast(BinaryIO, raw)
            if magic.startswith(GZIP_MAGIC):
                stream = cast(BinaryIO, gzip.GzipFile(fileobj=raw))
            elif magic.startswith(ZSTD_MAGIC):
                try:
                    import zstandard
                except ImportError:
                    raise MissingExtra(f"Reading {source.name}, which is zstd,", "zstd") from None
                damage, kind = (zstandard.ZstdError,), "zstd"
                unpacked = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
                stream = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, unpacked), 1 << 16))
            yield cast(BinaryIO, raw), stream
    except damage as error:
        raise LogError(f"{source.name}: damaged {kind} file: {error}") from None
    except OSError as error:
        raise LogError(f"{source.name}: {error.strerror or error}") from None


def _raw(source: Source) -> io.BufferedReader:
    if source.filesystem is not None:
        return io.BufferedReader(source.filesystem.open(source.path, "rb"))
    if source.path == "-":
        return open(0, "rb", closefd=False)
    return open(source.path, "rb")
