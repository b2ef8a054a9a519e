"""
Many processes at one start line.

A measured process makes itself ready, says so with a line on stdout, waits for the line "go" on stdin, and answers with
one line of JSON. Its times are taken inside, on CLOCK_MONOTONIC, which all processes share: starting an
interpreter is not part of any figure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NODE_FOLDER = os.path.join(ROOT, "tests", "node")

Answer = Mapping[str, Any]


class NotReady(Exception):
    """The bench cannot run here, and why."""


class Failed(Exception):
    """A measured process ended without an answer."""


def ours(*args: str) -> list[str]:
    """The command that measures Taskyard: by its file, as `-m` would load modules that a cold start must pay for."""
    return [sys.executable, "-P", os.path.join(ROOT, "bench", "worker.py"), *args]


def reference(*args: str) -> list[str]:
    """The command that measures the Node reference."""
    node = shutil.which("node")
    if node is None:
        raise NotReady("The yardstick needs Node 18 or later: no `node` on the PATH.")
    if not os.path.isdir(os.path.join(NODE_FOLDER, "node_modules", "proper-lockfile")):
        raise NotReady("The yardstick needs proper-lockfile: run `npm ci --prefix tests/node`.")
    return [node, os.path.join(NODE_FOLDER, "reference.mjs"), *args]


def environment(home: str) -> dict[str, str]:
    """What measured processes see: nothing of the caller's settings, and a home of their own."""
    kept = {name: os.environ[name] for name in ("PATH", "VIRTUAL_ENV") if name in os.environ}
    paths = [os.path.join(ROOT, "src"), ROOT]
    return {
        **kept,
        "HOME": home,
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(paths),
        "TASKYARD_HOME": os.path.join(home, "taskyard"),
        "CLAUDE_CONFIG_DIR": os.path.join(home, "claude"),
    }


def race(commands: Iterable[Sequence[str]], *, home: str, limit: float = 300.0) -> list[Answer]:
    """Start all commands, wait until all are ready, let them go at once, and bring their answers.

    Raises:
        Failed: one of them ended without an answer, or not within `limit` seconds.
    """
    env = environment(home)
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=ROOT)
        for command in commands
    ]
    overdue = threading.Timer(limit, _end, [racers])
    overdue.start()
    try:
        for racer in racers:
            _line(racer)
        for racer in racers:
            _pipe(racer.stdin).write(b"go\n")
            _pipe(racer.stdin).flush()
        return [_line(racer) for racer in racers]
    finally:
        overdue.cancel()
        _end(racers)


def run(command: Sequence[str], *, home: str, limit: float = 300.0) -> Answer:
    """A race with one racer."""
    return race([command], home=home, limit=limit)[0]


def wall(answers: Iterable[Answer]) -> float:
    """Seconds from the first start to the last end."""
    answers = list(answers)
    elapsed: int = max(answer["t1"] for answer in answers) - min(answer["t0"] for answer in answers)
    return elapsed / 1e9


def _line(racer: subprocess.Popen[bytes]) -> Answer:
    line = _pipe(racer.stdout).readline()
    if not line.endswith(b"\n"):
        raise Failed(f"no answer from `{_shown(racer)}` (exit code {racer.wait()})")
    answer: Answer = json.loads(line)
    return answer


def _end(racers: Iterable[subprocess.Popen[bytes]]) -> None:
    for racer in racers:
        racer.kill()  # it has answered or never will; what it holds is in a folder that goes away
    for racer in racers:
        racer.wait()
        for pipe in (racer.stdin, racer.stdout):
            _close(pipe)


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except BrokenPipeError:
        pass  # "go" for one that had ended already


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # both were asked for
    return pipe


def _shown(racer: subprocess.Popen[bytes]) -> str:
    args = racer.args
    return " ".join(map(str, args)) if isinstance(args, list) else str(args)
