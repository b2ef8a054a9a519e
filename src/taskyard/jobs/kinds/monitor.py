"""
The job kind `monitor_mcp`: watch a source in the background and send notices of its events.

The source is an MCP server (changes of resources, log messages) or a command, each of whose lines is an
event. All of it is stored in the job's output; the agent that started the monitor gets notices in batches
while it runs. `monitor_run` is the part in the job process.
"""

from __future__ import annotations

import shlex

from taskyard.config import MIN_OUTPUT_CAP
from taskyard.core.values import NamedTuple, check_number, check_text
from taskyard.errors import BadText, BadValue, MissingExtra, UsageError
from taskyard.jobs.kind import MAX_TIMEOUT, LaunchSpec, check_run
from taskyard.jobs.kinds.shell import check_args, check_env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from taskyard.jobs.context import JobContext
    from taskyard.jobs.kind import Handler, Outcome

#: Characters of a display name, which is one line.
_LONGEST_NAME = 200

#: MCP log levels, least severe first.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_MOST_RESOURCES, _LONGEST_URI, _LONGEST_PATTERN = 100, 4000, 1000

#: Fields not passed to the job process: they are in its environment, or the supervisor handles them.
_SPEC_ONLY_FIELDS = ("cwd", "env", "timeout", "output_cap", "on_parent_exit", "tool_use_id")


class Monitor(NamedTuple):
    """A source to watch: exactly one of `command`, `mcp_command` and `mcp_url`."""

    command: str | Sequence[str] | None = None  #: its lines are events: text for bash, or words without a shell
    mcp_command: str | Sequence[str] | None = None  #: starts an MCP server that communicates on stdin and stdout
    mcp_url: str | None = None  #: URL of an MCP server
    token_env: str | None = None  #: environment variable with the token for `mcp_url`; its value is never stored
    resources: Sequence[str] = ()  #: URIs whose changes are events
    logs: str | None = None  #: log messages of this level or above are events
    filter: str | None = None  #: only lines in which this regular expression is found are events
    every: float = 2.0  #: minimum seconds between two notices
    silence: float | None = None  #: seconds without an event after which that is reported
    timeout: float | None = None  #: seconds until it is stopped; pauses do not count
    reconnect: bool = False  #: retry a lost source, instead of ending the monitor
    notices: bool = True  #: send notices while it runs
    name: str | None = None  #: one line for display; the source if not given
    cwd: str | None = None
    env: Mapping[str, str] | None = None  #: its whole environment; that of this process if not given
    output_cap: int | None = None
    on_parent_exit: str | None = None  #: "kill" or "keep"
    tool_use_id: str | None = None

    @property
    def type(self) -> str:
        """The kind's name in job records."""
        return "monitor_mcp"

    @property
    def letter(self) -> str:
        """Prefix of its job ids."""
        return "m"

    @property
    def text(self) -> str:
        """The source as a shell command line or URL."""
        source = self.command if self.command is not None else self.mcp_command
        if source is None:
            return self.mcp_url or ""
        return source if isinstance(source, str) else shlex.join(source)

    @property
    def description(self) -> str:
        """One printable line for display."""
        line = self.name or " ".join(self.text.split())
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)[:_LONGEST_NAME]

    def wanted(self) -> LaunchSpec:
        """Return the launch spec for the supervisor.

        Raises:
            UsageError: A field is invalid.
            MissingExtra: A required package is not installed.
        """
        self._check_source()
        self._check_options()
        return LaunchSpec(
            self.description,
            arguments={name: value for name, value in self._asdict().items() if name not in _SPEC_ONLY_FIELDS},
            text=self.text,
            cwd=self.cwd,
            env=self.env,
            timeout=self.timeout,
            output_cap=self.output_cap,
            on_parent_exit=self.on_parent_exit,
            tool_use_id=self.tool_use_id,
            priority="next",
        )

    @classmethod
    def from_json(cls, arguments: Mapping[str, object]) -> Self:
        """Restore the record from `wanted().arguments`."""
        return cls(**arguments)  # type: ignore[arg-type]  # written by `wanted`, which checked it

    async def run(self, context: JobContext) -> Outcome:
        """Watch the source until it ends."""
        from taskyard.jobs.kinds import monitor_run

        return await monitor_run.run_monitor(self, context)

    # -- checks ------------------------------------------------------------------------------

    def _check_source(self) -> None:
        given = [source for source in (self.command, self.mcp_command, self.mcp_url) if source is not None]
        if len(given) != 1:
            raise UsageError("A monitor has one source: a command, an MCP server's command, or its URL.")
        if self.mcp_url is not None:
            _check_url(self.mcp_url)
        else:
            _check_command(given[0])
        if self.token_env is not None and (self.mcp_url is None or not self.token_env.isidentifier()):
            raise BadValue("token_env", self.token_env, "the name of a variable, for a server with a URL")
        if self.command is not None:
            if self.resources or self.logs is not None:
                raise UsageError("A command has lines alone: resources and log messages come from an MCP server.")
            return
        if not self.resources and self.logs is None:
            raise UsageError("Which events of the MCP server? Name resources, a level of log messages, or both.")
        _check_extra()

    def _check_options(self) -> None:
        if isinstance(self.resources, str) or len(self.resources) > _MOST_RESOURCES:
            raise BadValue("resources", self.resources, f"a list of at most {_MOST_RESOURCES} URIs")
        for uri in self.resources:
            check_text("resource", uri, longest=_LONGEST_URI, allow_empty=False)
        if self.logs is not None and self.logs not in LEVELS:
            raise BadValue("logs", self.logs, f"one of {', '.join(LEVELS)}")
        if self.filter is not None:
            _check_pattern(self.filter)
        if self.name is not None:
            check_text("name", self.name, longest=_LONGEST_NAME, allow_empty=False)
            if "\n" in self.name or "\r" in self.name:
                raise BadText("name", "has more than one line")
        check_number("every", self.every, least=2.0, most=86_400.0)
        check_number("silence", self.silence, least=0.1, most=MAX_TIMEOUT)
        check_number("output cap", self.output_cap, least=MIN_OUTPUT_CAP, most=1 << 50, whole=True)
        check_env(self.env or {})
        check_run(cwd=self.cwd, timeout=self.timeout, on_parent_exit=self.on_parent_exit)


def _check_command(command: str | Sequence[str]) -> None:
    words = [command] if isinstance(command, str) else command
    check_args("command", words)
    if not words or not words[0].strip():
        raise BadText("command", "is empty")


def _check_url(url: str) -> None:
    from urllib.parse import urlsplit

    check_text("URL", url, longest=_LONGEST_URI, allow_empty=False)
    try:
        parts = urlsplit(url)
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        parts, is_fit = None, False
    if parts is None or not is_fit:
        raise BadValue("The URL", url, "one of http or https, such as http://127.0.0.1:8000/mcp")
    if "@" in parts.netloc:
        raise UsageError("The URL holds a name or a password, which would be stored: name a variable with the token.")


def _check_pattern(pattern: str) -> None:
    import re

    check_text("filter", pattern, longest=_LONGEST_PATTERN, allow_empty=False)
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadValue("filter", pattern, f"a regular expression ({error})") from None


def _check_extra() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise MissingExtra("A monitor of an MCP server", "mcp", "mcp")


if TYPE_CHECKING:
    _conforms: type[Handler] = Monitor
