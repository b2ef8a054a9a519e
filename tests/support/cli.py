"""The command line, in this process for breadth, and as a real process where streams and signals matter."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from typing import Any, NamedTuple

from taskyard.cli.main import main

LONGEST = 30.0


class Ran(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What `--json` answered with."""
        body = json.loads(self.out)
        assert body["schema_version"] == 1
        return body["data"]

    @property
    def error(self) -> dict[str, Any]:
        """What `--json` failed with."""
        body = json.loads(self.out)
        assert body["schema_version"] == 1
        found: dict[str, Any] = body["error"]
        return found

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class _Captured(io.StringIO):
    """A plain StringIO has no encoding, and then no glyphs."""

    encoding = "utf-8"


def taskyard(*words: str, stdin: bytes | None = None) -> Ran:
    """Run a command line in this process."""
    out, err = _Captured(), _Captured()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin or b""), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    finally:
        sys.stdin = before
    return Ran(code, out.getvalue(), err.getvalue())


def start(*words: str, stdout: int | None = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start a command line as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "taskyard", *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def process(*words: str, timeout: float = LONGEST) -> Ran:
    """Run a command line as a process of its own; one that is not over in time is killed, and fails the test."""
    with start(*words) as child:
        try:
            out, err = child.communicate(timeout=timeout)
        except BaseException:
            child.kill()
            raise
    return Ran(child.returncode, out, err)
