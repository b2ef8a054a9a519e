"""
A real PostgreSQL for tests: a private cluster on a socket in a folder of its own, gone with the test run.

The server will not run as root, so root starts it as another user. It ends with the process that started it, also if
that is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from support.wait import until
from taskyard.postgres import schema
from taskyard.postgres.connection import connect

#: The database that has our tables, of which each test gets a copy.
TEMPLATE = "yard"

_PR_SET_PDEATHSIG = 1


class Server:
    """A cluster that runs."""

    def __init__(self, folder: Path, *, listen: str = "", port: int = 5432, fsync: bool = False) -> None:
        """`listen`: an address to listen on beside the socket, where others may come from without a password."""
        self.folder = folder
        self.listen = listen
        self.port = port
        self._fsync = fsync
        self._process: subprocess.Popen[bytes] | None = None
        self._count = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def make(self) -> None:
        """Make the cluster."""
        self._run(
            "initdb", "-D", self._data, "-A", "trust", "-U", "postgres", "--no-sync", "--locale=C.UTF-8", "-E", "UTF8"
        )
        if self.listen:
            with open(f"{self._data}/pg_hba.conf", "a", encoding="ascii") as rules:
                rules.write("host all all 0.0.0.0/0 trust\nhost all all ::/0 trust\n")

    def start(self) -> None:
        """Start the server."""
        settings = {
            "listen_addresses": self.listen,
            "fsync": "on" if self._fsync else "off",
            "max_connections": "200",
            "shared_buffers": "64MB",
        }
        words = [_program("postgres"), "-D", self._data, "-k", str(self.folder), "-p", str(self.port)]
        for name, value in settings.items():
            words += ["-c", f"{name}={value}"]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                words, stdout=log, stderr=log, cwd=self.folder, preexec_fn=_end_with_parent, **_as_somebody()
            )
        until(self._answers, timeout=30)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT cuts its clients off, SIGKILL is a crash."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(30)
        self._process = None

    def close(self) -> None:
        """End it, and remove what it kept."""
        if self._process is not None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, name: str = TEMPLATE) -> str:
        """Of one of its databases, over the socket."""
        return f"postgresql://postgres@/{name}?host={self.folder}&port={self.port}"

    def new_database(self) -> str:
        """The address of a database of its own, with our tables."""
        self._count += 1
        name = f"{TEMPLATE}_{self._count}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as link:
            make = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            link.execute(make.format(sql.Identifier(name), sql.Identifier(TEMPLATE)))
        return self.address(name)

    def make_template(self) -> None:
        """Make the database that others are copied from."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as link:
            link.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        link = connect(self.address(), check=False)
        schema.upgrade(link, "the template")
        link.close()

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _run(self, program: str, *words: str) -> None:
        command = [_program(program), *words]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, **_as_somebody())
        assert done.returncode == 0, done.stderr

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "log").read_text()
        try:
            psycopg.connect(self.address("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


@contextlib.contextmanager
def server(*, listen: str = "", port: int = 5432, below: str = "/tmp") -> Iterator[Server]:
    """A cluster with our tables, for as long as the block; its files are in a folder `below`."""
    folder = Path(tempfile.mkdtemp(prefix="taskyard-pg-", dir=below))
    if os.geteuid() == 0:
        os.chown(folder, *_somebody())
    made = Server(folder, listen=listen, port=port)
    try:
        made.make()
        made.start()
        made.make_template()
        yield made
    finally:
        made.close()


def _as_somebody() -> dict[str, Any]:
    """How to start a program as a user the server runs as."""
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C.UTF-8"}
    if os.geteuid() != 0:
        return {"env": env}
    user, group = _somebody()
    return {"env": env, "user": user, "group": group, "extra_groups": []}


def _somebody() -> tuple[int, int]:
    """Who is not root: the user of Debian's package, else nobody."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return found.pw_uid, found.pw_gid
    raise AssertionError("there is no user but root")


@functools.cache
def _program(name: str) -> str:
    """Where a program of the server is: as pg_config says, or where Debian puts them, the newest first."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        told = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True).stdout.strip()
        if os.access(f"{told}/{name}", os.X_OK):
            return f"{told}/{name}"
    versions = [path for path in Path("/usr/lib/postgresql").glob("*") if path.name.isdigit()]
    for folder in sorted(versions, key=lambda path: int(path.name), reverse=True):
        if os.access(folder / "bin" / name, os.X_OK):
            return str(folder / "bin" / name)
    raise AssertionError("there is no PostgreSQL server here: `make setup` installs one")


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))
