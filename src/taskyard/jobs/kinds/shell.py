"""
The job kind `local_bash`: a command in the background.

A single text runs in `bash -c`; a list of words runs without a shell. Its output goes directly into the job's
output file; its stdin is empty unless it gets input or a terminal.
"""

from __future__ import annotations

import os
import shlex
from _collections_abc import Mapping, Sequence  # already loaded in every interpreter, unlike `collections`

from taskyard.config import MIN_OUTPUT_CAP
from taskyard.core.values import NamedTuple, check_number, check_text
from taskyard.errors import BadText, BadValue
from taskyard.jobs.kind import LaunchSpec, check_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: Characters of a display name, which is one line.
_LONGEST_NAME = 200


class Shell(NamedTuple):
    """A command to run in the background."""

    command: str | Sequence[str]  #: text for bash, or words that run without a shell
    cwd: str | None = None  #: working directory; the current one if not given
    env: Mapping[str, str] | None = (
        None  #: its whole environment (`--env` adds to it); that of this process if not given
    )
    name: str | None = None  #: one line for display; the command if not given
    timeout: float | None = None  #: seconds until it is stopped; pauses do not count
    output_cap: int | None = None  #: bytes on disk; the head and the newest half are kept
    on_parent_exit: str | None = None  #: "kill" or "keep"
    stdin: bool = False  #: accept input while it runs
    pty: bool = False  #: run it in a pseudo-terminal
    grace: float = 3.0  #: seconds between SIGTERM and SIGKILL
    leave_children: bool = False  #: processes it leaves behind continue under its supervisor
    retries: int = 0  #: retries after a failure
    retry_delay: float = 1.0  #: seconds before the first retry; doubled before each further one (backoff)
    tool_use_id: str | None = None
    task: str | None = None  #: the task it works on, `list/id`; that of its starter if not given
    kind: str = "bash"  #: display kind: "bash", or "monitor" for a command that watches something

    @property
    def type(self) -> str:
        """The kind's name in job records."""
        return "local_bash"

    @property
    def letter(self) -> str:
        """Prefix of its job ids."""
        return "b"

    @property
    def argv(self) -> list[str]:
        """The arguments of the process."""
        return ["bash", "-c", self.command] if isinstance(self.command, str) else list(self.command)

    @property
    def text(self) -> str:
        """The command as a shell command line."""
        return self.command if isinstance(self.command, str) else shlex.join(self.command)

    def wanted(self) -> LaunchSpec:
        """Return the launch spec for the supervisor.

        Raises:
            BadValue, BadText: A field is invalid.
        """
        self._check()
        return LaunchSpec(
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
        check_args("command", [self.command] if isinstance(self.command, str) else self.command)
        if not self.argv or not self.argv[0] or not self.text.strip():
            raise BadText("command", "is empty")
        if self.name is not None:
            check_text("name", self.name, longest=_LONGEST_NAME, allow_empty=False)
            if "\n" in self.name or "\r" in self.name:
                raise BadText("name", "has more than one line")
        check_number("grace", self.grace, least=0.0, most=3600.0, unit="seconds")
        check_number("output cap", self.output_cap, least=MIN_OUTPUT_CAP, most=1 << 50, whole=True, unit="bytes")
        check_number("retries", self.retries, least=0, most=1000, whole=True)
        check_number("retry delay", self.retry_delay, least=0.0, most=3600.0, unit="seconds")
        if self.kind not in ("bash", "monitor"):
            raise BadValue("kind", self.kind, '"bash" or "monitor"')
        check_run(cwd=self.cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)
        check_env(self.env or {})

    def _check_types(self) -> None:
        """Refuse values of the wrong type, for callers without a type checker."""
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
        """One printable line for display."""
        line = self.name or " ".join(self.text.split())
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)[:_LONGEST_NAME]


def check_args(field: str, words: Iterable[object]) -> None:
    """Refuse words that cannot be arguments of a process."""
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
    """Refuse variables that an environment cannot contain."""
    for key, value in env.items():
        check_args("env", (key, value))
        if not key or "=" in key:
            raise BadValue("env", key, "names without =")
