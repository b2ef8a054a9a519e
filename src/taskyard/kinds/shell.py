"""
A command line in the background: `local_bash`.

A single text runs in `bash -c`; a list of words runs as it is, without a shell. Its output goes straight into the
job's file; it reads from nothing unless it is given input or a terminal.
"""

from __future__ import annotations

import os
import shlex
from _collections_abc import Mapping, Sequence  # what every interpreter has loaded; `collections` it has not

from taskyard.config import SMALLEST_CAP
from taskyard.errors import BadText, BadValue
from taskyard.kinds.checks import check_run
from taskyard.names import check_number, check_text
from taskyard.runtime.kind import Wanted
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: A name for people fits on a line.
_LONGEST_NAME = 200


class Shell(NamedTuple):
    """A command to run in the background."""

    command: str | Sequence[str]  #: text for bash, or words that run without a shell
    cwd: str | None = None  #: where; the current folder if not given
    env: Mapping[str, str] | None = None  #: its whole environment, where `--env` adds; this process's if not given
    name: str | None = None  #: one line for people; the command if not given
    timeout: float | None = None  #: seconds until it is ended; pauses do not count
    output_cap: int | None = None  #: bytes on disk; the head and the newest half are kept
    on_parent_exit: str | None = None  #: "kill" or "keep"
    stdin: bool = False  #: input can be sent to it
    pty: bool = False  #: it gets a terminal of its own
    grace: float = 3.0  #: seconds between TERM and KILL
    leave_children: bool = False  #: processes it leaves behind go on under its keeper
    retries: int = 0  #: how often it may be tried again after a failure
    retry_delay: float = 1.0  #: seconds before it is tried again; twice as long before each further attempt
    tool_use_id: str | None = None
    task: str | None = None  #: the task it is for, `list/id`; that of its starter if not given
    kind: str = "bash"  #: how views show it: "bash", or "monitor" for one that watches something

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return "local_bash"

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return "b"

    @property
    def argv(self) -> list[str]:
        """What is run."""
        return ["bash", "-c", self.command] if isinstance(self.command, str) else list(self.command)

    @property
    def text(self) -> str:
        """The command as a person would type it."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    def wanted(self) -> Wanted:
        """What its keeper is asked for.

        Raises:
            BadValue, BadText: something in it cannot be.
        """
        self._check()
        return Wanted(
            self.description,
            self.argv,
            text=self.text,
            cwd=self.cwd,
            env=self.env,
            timeout=self.timeout,
            output_cap=self.output_cap,
            on_parent_exit=self.on_parent_exit,
            stdin=self.stdin,
            pty=self.pty,
            grace=self.grace,
            leave_children=self.leave_children,
            retries=self.retries,
            retry_delay=self.retry_delay,
            tool_use_id=self.tool_use_id,
            task=self.task,
            facts={"kind": self.kind} if self.kind != "bash" else {},
        )

    def _check(self) -> None:
        self._check_types()
        check_words("command", [self.command] if isinstance(self.command, str) else self.command)
        if not self.argv or not self.argv[0] or not self.text.strip():
            raise BadText("command", "is empty")
        if self.name is not None:
            check_text("name", self.name, longest=_LONGEST_NAME, allow_empty=False)
            if "\n" in self.name or "\r" in self.name:
                raise BadText("name", "has more than one line")
        check_number("grace", self.grace, least=0.0, most=3600.0, unit="seconds")
        check_number("output cap", self.output_cap, least=SMALLEST_CAP, most=1 << 50, whole=True, unit="bytes")
        check_number("retries", self.retries, least=0, most=1000, whole=True)
        check_number("retry delay", self.retry_delay, least=0.0, most=3600.0, unit="seconds")
        if self.kind not in ("bash", "monitor"):
            raise BadValue("kind", self.kind, '"bash" or "monitor"')
        check_run(cwd=self.cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)
        check_env(self.env or {})

    def _check_types(self) -> None:
        """Refuse what Python lets through and nobody meant: its checkers may not have been asked."""
        given: Mapping[str, object] = self._asdict()
        if not isinstance(given["command"], (str, Sequence)) or isinstance(given["command"], bytes):
            raise BadValue("command", given["command"], "text for bash, or a list of words")
        for name in ("stdin", "pty", "leave_children"):
            if not isinstance(given[name], bool):
                raise BadValue(name, given[name], "True or False")
        for name in ("cwd", "name", "tool_use_id", "task"):
            if not isinstance(given[name], (str, type(None))):
                raise BadValue(name, given[name], "text")
        if not isinstance(given["env"], (Mapping, type(None))):
            raise BadValue("env", given["env"], "names with their values, such as {**os.environ, 'CI': '1'}")

    @property
    def description(self) -> str:
        """One line for people, safe to show."""
        line = self.name or " ".join(self.text.split())
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)[:_LONGEST_NAME]


def check_words(field: str, words: Iterable[object]) -> None:
    """Refuse what no program can be given."""
    for word in words:
        if not isinstance(word, str):
            raise BadText(field, f"must be text, not {type(word).__name__}")
        if "\0" in word:
            raise BadText(field, "holds a NUL byte")
        try:
            os.fsencode(word)
        except UnicodeEncodeError as error:
            raise BadText(field, f"holds a lone surrogate (U+{ord(word[error.start]):04X})") from None


def check_env(env: Mapping[str, str]) -> None:
    """Refuse what no environment can hold."""
    for key, value in env.items():
        check_words("env", (key, value))
        if not key or "=" in key:
            raise BadValue("env", key, "names without =")
