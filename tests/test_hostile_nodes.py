"""
Something that is no plain file in every place of a list: pipes, sockets, devices, folders, links, huge sparse files.

Every command answers within its time, in words: it works, or says what is in the way. None hangs, none breaks.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import product
from pathlib import Path

import pytest

from support.cli import taskyard
from support.scale import FULL
from taskyard.cli.main import main

#: Every path that is opened in a list's folder.
PLACES = (
    "1.json",
    "9.json",
    ".lock",
    ".lock.lock",
    "1.json.lock",
    ".highwatermark",
    "tasks.json",
    ".taskyard",
    ".taskyard/lock",
    ".taskyard/ledger",
    ".taskyard/log",
    ".taskyard/log/0.jsonl",
    ".taskyard/log/134217728.jsonl",
    ".taskyard/leases",
    ".taskyard/leases/1.json",
    ".taskyard/leases/2.json",
    ".taskyard/tmp",
    ".taskyard/tmp/1.json",
    ".taskyard/tmp/3.json",
)

#: The commands of a day on a list, and those that look after it.
COMMANDS = (
    "task list",
    "task list --all --json",
    "task show 1",
    "task log",
    "task log 1",
    "task events",
    "task export",
    "doctor",
    "task add three",
    "task next --by bob",
    "task claim 2 --by bob",
    "task edit 1 --priority 2",
    "task done 1 --by ada",
    "task block 2 --on 1",
    "task rm 1 --yes --force",
    "task restore 1",
    "doctor --fix",
    "task list",
)

#: Seconds for all commands in one place; each takes some milliseconds, a wait for a lock at most one second.
LONGEST = 20


def a_device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero
    except PermissionError:
        pytest.skip("only root makes devices")


def a_socket(path: Path) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(path.parent)  # the name of a socket is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def a_huge_file(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


NODES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a socket": a_socket,
    "a device": a_device,
    "a folder": lambda path: (path / "inner").mkdir(parents=True),
    "a huge file": a_huge_file,
    "a link to a pipe": lambda path: path.symlink_to("/proc/self/fd/0"),
    "a link to a folder": lambda path: path.symlink_to("/usr"),
    "a link to nothing": lambda path: path.symlink_to("/nonexistent/file"),
}


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list with two tasks, one of them claimed."""
    monkeypatch.delenv("TASKYARD_TASKS_DIR", raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))  # beside Claude Code: npm's locks are taken too
    monkeypatch.setenv("TASKYARD_LIST", "plan")
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.3")
    for words in ("task add one", "task add two", "task claim 1 --by ada"):
        assert taskyard(*words.split()).code == 0
    return tmp_path / "tasks" / "plan"


def put(node: str, path: Path) -> None:
    """Put a node where there may be something, as another user would."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
    NODES[node](path)


@pytest.mark.req("L-11", "L-02")
@pytest.mark.parametrize(("place", "node"), list(product(PLACES, NODES))[:: 1 if FULL else 3])
@pytest.mark.timeout(LONGEST + 30)
def test_every_command_answers_whatever_stands_in_a_place_of_the_list(plan: Path, place: str, node: str) -> None:
    put(node, plan / place)
    said = plan.parent.parent / "said"
    ended = in_a_child(lambda: every_command(said), LONGEST)
    told = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    assert ended == 0, f"{ended}\n{told[-3000:]}"
    assert "Traceback" not in told, told[-3000:]


def every_command(said: Path) -> None:
    """Run all commands, one after the other; whatever they raise ends this."""
    with open(said, "w", encoding="utf-8") as out, redirect_stdout(out), redirect_stderr(out):
        for words in COMMANDS:
            out.write(f"$ {words}\n")
            out.flush()
            try:
                code = main(words.split())
            except BaseException:
                traceback.print_exc(file=out)
                return
            out.write(f"= {code}\n")


def in_a_child(work: Callable[[], None], seconds: int) -> int:
    """How a forked child ends that does `work`: 0, or minus the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # for as long as the child lives
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
