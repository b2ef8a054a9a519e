"""
Code blocks of the documentation, run as a reader would, one page after the other from top to bottom.

    ```console      commands after `$ `, each followed by what it prints
    ```python       a program
    ```json         must be JSON

Output is compared loosely: white space, durations, dates and ids of projects do not count, and `…`
stands for anything, at the start of a line for any number of lines.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from support.repo import git_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: What changes from run to run, and what stands for it.
_VOLATILE = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "WHEN"),
    (re.compile(r"\b\d+(\.\d+)?s\b"), "Ns"),
    (re.compile(r"-[0-9a-f]{8}\b"), "-HASH"),
)

#: No example takes longer.
LONGEST = 20.0


class Block(NamedTuple):
    """One fenced block of a page."""

    line: int
    language: str
    text: str


class Command(NamedTuple):
    """A command of a console block, and what the page says it prints."""

    words: str
    expected: list[str]


def blocks(text: str) -> list[Block]:
    """The code blocks of a page, in order."""
    return [
        Block(text.count("\n", 0, found.start()) + 1, found.group(1), found.group(2)) for found in _BLOCK.finditer(text)
    ]


def commands(text: str) -> Iterator[Command]:
    """The commands of a console block."""
    current: Command | None = None
    for line in text.splitlines():
        if line.startswith("$ "):
            if current is not None:
                yield current
            current = Command(line[2:], [])
        elif current is not None:
            current.expected.append(line)
    if current is not None:
        yield current


def agrees(expected: list[str], printed: str) -> bool:
    """Whether what was printed is what a page says, as far as it says it."""
    wanted = [_settled(line) for line in expected if line.strip()]
    found = [_settled(line) for line in printed.splitlines() if line.strip()]
    return _matches(wanted, found)


def _matches(wanted: list[str], found: list[str]) -> bool:
    if not wanted:
        return not found
    if wanted[0] == "…":
        return any(_matches(wanted[1:], found[skipped:]) for skipped in range(len(found) + 1))
    if not found:
        return False
    pattern = ".*".join(re.escape(part) for part in wanted[0].split("…"))
    return re.fullmatch(pattern, found[0]) is not None and _matches(wanted[1:], found[1:])


def _settled(line: str) -> str:
    for pattern, word in _VOLATILE:
        line = pattern.sub(word, line)
    return " ".join(line.split())


class Reader:
    """Somebody who types what a page says, in a project of their own."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "shop"
        git_folder(self.project)
        command = folder / "bin" / "taskyard"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m taskyard "$@"\n', encoding="utf-8")
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        self._env = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8"}
        self._env["PYTHONIOENCODING"] = "utf-8"
        self._remembered: list[str] = []

    def type(self, words: str) -> str:
        """What a command prints, on either stream; exports and folders last until the end of the page."""
        if words.startswith(("export ", "cd ", "source ")):
            self._remembered.append(words)
        return self._run(["bash", "-c", "\n".join([*self._remembered, words])])

    def run(self, program: str) -> str:
        """What a Python program prints; it must end well."""
        return self._run([sys.executable, "-c", program], must_succeed=True)

    def _run(self, words: list[str], *, must_succeed: bool = False) -> str:
        done = subprocess.run(
            words,
            cwd=self.project,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=LONGEST,
        )
        assert not must_succeed or done.returncode == 0, done.stdout
        return done.stdout
