"""Real PostgreSQL and Redis servers on free loopback ports, started for the tests that need them and stopped after."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30
"""Seconds a server has to answer."""


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The address of a PostgreSQL server for all tests, without a database's name."""
    with postgresql() as address:
        yield address


@pytest.fixture
def postgresql_url(postgresql_server: str, databases: Iterator[int]) -> str:
    """The address of an empty PostgreSQL database of the test's own."""
    name = f"test_{next(databases)}"
    subprocess.run([binary("createdb"), f"--maintenance-db={postgresql_server}/postgres", name], check=True)
    return f"{postgresql_server}/{name}"


@pytest.fixture(scope="session")
def databases() -> Iterator[int]:
    return count()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[int]:
    """The port of a Redis server for all tests."""
    with redis() as port:
        yield port


@pytest.fixture
def redis_url(redis_server: int) -> str:
    """The address of an empty Redis."""
    assert ask_redis(redis_server, "FLUSHALL") == "+OK"
    return f"redis://127.0.0.1:{redis_server}/0"


@contextmanager
def postgresql() -> Iterator[str]:
    """Runs a PostgreSQL server of its own, which trusts everyone on this machine; yields `postgresql://...:port`."""
    initdb, pg_ctl, port = binary("initdb"), binary("pg_ctl"), free_port()
    with tempfile.TemporaryDirectory(prefix="postgresql-", ignore_cleanup_errors=True) as folder:
        cluster, log = f"{folder}/cluster", Path(folder, "log")
        owner = unprivileged(folder)
        subprocess.run(
            [initdb, f"--pgdata={cluster}", *"--username=postgres --auth=trust --encoding=UTF8 --locale=C".split()],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            **owner,
        )
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        control = [pg_ctl, f"--pgdata={cluster}", "--wait", f"--timeout={PATIENCE}", "--silent"]
        started = subprocess.run([*control, f"--log={log}", f"--options={options}", "start"], cwd=folder, **owner)
        assert started.returncode == 0, log.read_text()
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}"
        finally:
            subprocess.run([*control, "--mode=immediate", "stop"], check=True, cwd=folder, **owner)


@contextmanager
def redis() -> Iterator[int]:
    """Runs a Redis server of its own, in memory; yields its port."""
    server, port = binary("redis-server"), free_port()
    settings = f"--port {port} --bind 127.0.0.1 --appendonly no --loglevel warning".split()
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        process = subprocess.Popen([server, *settings, "--save", ""], stdout=subprocess.DEVNULL, cwd=folder)
        try:
            latest = time.monotonic() + PATIENCE
            while not listens(port):
                assert process.poll() is None, f"redis-server stopped with code {process.returncode}"
                assert time.monotonic() < latest, f"redis-server did not answer within {PATIENCE} s"
                time.sleep(0.02)
            yield port
        finally:
            process.terminate()
            process.wait()


def ask_redis(port: int, command: str) -> str:
    """What the server answers to an inline command; needs no client."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(f"{command}\r\n".encode())
        return connection.recv(1024).decode().strip()


def listens(port: int) -> bool:
    try:
        return ask_redis(port, "PING") == "+PONG"
    except ConnectionRefusedError:
        return False


def binary(name: str) -> str:
    """Path of a server's program; skips the test where it is not installed."""
    # Debian keeps PostgreSQL's server programs off the PATH.
    debian = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")))
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(debian))
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install postgresql redis-server)")
    return found


def unprivileged(folder: str) -> dict[str, Any]:
    """Whom to run PostgreSQL as, for `subprocess`: it refuses root. The folder becomes theirs."""
    if os.geteuid() != 0:
        return {}
    user = next(entry for name in ("postgres", "nobody") for entry in pwd.getpwall() if entry.pw_name == name)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    """A port nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
