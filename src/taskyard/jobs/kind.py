"""Interface of every kind of background job, and the checks that all kinds share.

A kind is one module in `taskyard.jobs.kinds` with one record: what to do, as data. It has a `type` (as in
records), a `letter` (first character of its ids; x if it has none) and `wanted()`, which validates it and
returns a `LaunchSpec`:

    LaunchSpec(argv=…)                           a program, run by the supervisor like any command
    LaunchSpec(arguments={…})                    Python: a process below the supervisor rebuilds the record by
                                                 `from_json` and awaits `run(context)`, which returns an `Outcome`
    LaunchSpec(arguments={…}, is_inside=True)    the same, inside the program that starts it, while that runs

A stop arrives in `run` as cancellation: clean up in `finally`, bound every wait there, and re-raise it. Any
other exception is a failure. To add a kind, write the module, list it in `taskyard.jobs.kinds` or publish
it under the entry point group of that name, and run `taskyard.testing.check_job_handler` on it.
"""

from __future__ import annotations

import os

from taskyard.core.values import NamedTuple, check_number
from taskyard.errors import BadValue, TaskyardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol, Self

    from taskyard.jobs.context import JobContext


if TYPE_CHECKING:

    class Spec(Protocol):
        """What one job shall do, as data. It may have a `letter` (see `letter_of`)."""

        @property
        def type(self) -> str: ...
        def wanted(self) -> LaunchSpec:
            """Return what the runtime must do.

            Raises:
                UsageError: something in it is invalid.
            """
            ...

    class Handler(Spec, Protocol):
        """A kind whose work is written in Python."""

        @classmethod
        def from_json(cls, arguments: Mapping[str, object]) -> Self:
            """Return the record that `wanted().arguments` was made from."""
            ...

        async def run(self, context: JobContext) -> Outcome:
            """Do the work, and return how it ended."""
            ...


class LaunchSpec(NamedTuple):
    """What a kind requests from the runtime."""

    description: str  #: one line for people, safe to show
    argv: Sequence[str] = ()
    arguments: Mapping[str, object] | None = None  #: for `from_json`; must be JSON
    is_inside: bool = False
    text: str = ""  #: the command as a user would type it
    cwd: str | None = None  #: default: the current folder
    env: Mapping[str, str] | None = None  #: default: this process's
    timeout: float | None = None  #: seconds until it is stopped; pauses do not count
    output_cap: int | None = None  #: bytes on disk
    on_parent_exit: str | None = None  #: "kill" or "keep"
    stdin: bool = False  #: input can be sent to it
    pty: bool = False  #: it gets its own terminal
    transcript: bool = False  #: it writes a transcript, one JSON object per line; its output is a link to that
    grace: float = 3.0  #: seconds between SIGTERM and SIGKILL
    leave_children: bool = False  #: processes it leaves behind keep running under its supervisor
    retries: int = 0
    retry_delay: float = 1.0  #: seconds before the second attempt; doubled before each further one
    tool_use_id: str | None = None
    priority: str = "later"  #: of its notices: "next" comes before what the user has queued
    is_silent: bool = False  #: no notice is sent when it ends
    asks_out_of_band: bool = False  #: its questions reach the answering user or agent by another way than notices
    is_for_people: bool = False  #: its notice is for people, and for no model
    facts: Mapping[str, object] = {}  #: initial facts that its kind adds to the record
    task: str | None = None  #: the task it is for, `list/id`; default: the starter's
    provider: str = ""  #: of an agent: the key of its account; agents of one account share its rate limits
    on_rate_limit: str | None = None  #: of an agent: "wait" or "stop"; default: the setting of that name
    resumes: bool = False  #: its work runs elsewhere: without a supervisor it gets another, and is not lost
    needs_env: Sequence[str] = ()  #: variables required to resume it; their values are stored nowhere
    needs_no_slot: bool = False  #: it only waits for its own child jobs, and takes no slot from them


class Outcome(NamedTuple):
    """Result of a handler's work: success, unless it has an error."""

    result: str = ""  #: its final answer
    error: str = ""  #: why it failed
    facts: Mapping[str, object] = {}  #: what its kind adds to the record: usage, worktree, …


#: First character of the ids of a kind without a letter.
DEFAULT_LETTER = "x"


def letter_of(spec: Spec) -> str:
    """Return the first character of a kind's ids.

    Raises:
        BadValue: its `letter` is no lower-case letter.
    """
    letter: object = getattr(spec, "letter", DEFAULT_LETTER)
    if not isinstance(letter, str) or len(letter) != 1 or not "a" <= letter <= "z":
        raise BadValue(f"The letter of {spec.type}", letter, "one letter from a to z")
    return letter


def error_text(error: BaseException) -> str:
    """Return an exception's text for the failed work; ours are sentences already."""
    return str(error) if isinstance(error, TaskyardError) else f"{type(error).__name__}: {error}"


#: Longest timeout in seconds: a month; longer ones are typing errors.
MAX_TIMEOUT = 31 * 86_400.0


def check_on_rate_limit(value: str | None) -> None:
    """Refuse a value other than None, "wait" and "stop".

    Raises:
        BadValue: states the valid values.
    """
    if value not in (None, "wait", "stop"):
        raise BadValue("on_rate_limit", value, '"wait" or "stop"')


def check_run(*, cwd: str | None, timeout: float | None, on_parent_exit: str | None) -> None:
    """Refuse an invalid working folder, timeout or parent exit policy.

    Raises:
        BadValue: states the valid values.
    """
    check_number("timeout", timeout, least=0.001, most=MAX_TIMEOUT, unit="seconds")
    if on_parent_exit not in (None, "kill", "keep"):
        raise BadValue("on_parent_exit", on_parent_exit, '"kill" or "keep"')
    if cwd is not None and not os.path.isdir(cwd):
        raise BadValue("cwd", cwd, "a folder that exists")
