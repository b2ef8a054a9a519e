"""Acceptance commands: the command that proves a task is done.

A task may carry `{"command": "make test", "cwd": "api", "timeout": 300}` under
`metadata.taskyard.acceptance`. Completing it runs the command; its exit code and the end of its
output are kept as evidence. Agents write such commands, so one runs only after the user allowed it
(`taskyard.storage.trust`).

It runs in the worktree of the agent that completes the task, because that is where the work is. A command
allowed in a folder of the project is allowed in the same folder of each of its worktrees.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple, cast, check_text
from taskyard.errors import BadValue, Cancelled, Untrusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

#: Seconds: test suites take minutes; ten minutes without an exit is a hang.
DEFAULT_TIMEOUT = 600.0

#: A day, in seconds: a longer limit is a typo.
MAX_TIMEOUT = 86_400.0

#: Characters kept of the output: test runners end with what failed, and a task file should stay small.
MAX_OUTPUT = 8_000

_FIELDS = ("command", "cwd", "timeout")


class Acceptance(NamedTuple):
    """A checked acceptance command."""

    command: str
    cwd: str  #: where it runs: absolute, without symbolic links
    timeout: float = DEFAULT_TIMEOUT  #: seconds
    trusted_at: str = ""  #: the same folder in the project's main checkout; trust is kept by it


class AcceptanceResult(NamedTuple):
    """The result of an acceptance command."""

    command: str
    cwd: str
    exit_code: int | None  #: 128 + the signal if killed by one, 127 if it could not be started; None: timeout
    output: str  #: the last 8,000 characters of stdout and stderr together, without control codes
    seconds: float
    at: int  #: epoch ms of its exit

    @property
    def passed(self) -> bool:
        """Whether the task may be completed."""
        return self.exit_code == 0


def check_acceptance(spec: object, *, folder: str) -> Acceptance:
    """Return `spec` as a command to run for work in `folder`; a relative `cwd` is below the checkout around it.

    Raises:
        BadText: the command or the folder is no text, empty or cannot be stored.
        BadValue: there is an unknown field, or the time limit is no number of seconds.
    """
    if not isinstance(spec, dict):
        raise BadValue("acceptance", spec, 'an object such as {"command": "make test"}')
    fields = cast("dict[object, object]", spec)
    for name in fields:
        if name not in _FIELDS:
            raise BadValue("A field of acceptance", name, f"one of {', '.join(_FIELDS)}")
    command = check_text("acceptance command", fields.get("command"), allow_empty=False)
    cwd = check_text("acceptance cwd", fields.get("cwd", "."), allow_empty=False)
    timeout = fields.get("timeout", DEFAULT_TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= MAX_TIMEOUT:
        raise BadValue("acceptance timeout", timeout, f"seconds from 0 to {MAX_TIMEOUT:,.0f}")
    place, trusted_at = _resolve_cwd(cwd, config.project(folder))
    return Acceptance(command, place, float(timeout), trusted_at)


def _resolve_cwd(cwd: str, project: config.Project) -> tuple[str, str]:
    """Return where a command with this `cwd` runs, and the matching folder of the main checkout."""
    place = os.path.realpath(os.path.join(project.checkout, cwd))
    if not _is_below(place, project.checkout):
        other = config.project(place)
        if other.shared != project.shared:
            return place, place
        # An absolute path into another checkout of the same project: the same folder of this one.
        place = os.path.realpath(os.path.join(project.checkout, os.path.relpath(place, other.checkout)))
    if not _is_below(place, project.checkout):
        return place, place
    return place, os.path.normpath(os.path.join(project.root, os.path.relpath(place, project.checkout)))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def run_acceptance(
    spec: object,
    *,
    folder: str,
    cancel: threading.Event | None = None,
    env: Mapping[str, str] | None = None,
) -> AcceptanceResult:
    """Run the acceptance command `spec` for work in `folder`, then kill what it leaves in its process group.

    Raises:
        BadText, BadValue: `spec` is no acceptance command.
        Untrusted: the user has not allowed it yet.
        Cancelled: `cancel` was set meanwhile.
    """
    from taskyard.core.subprocesses import decode_plain, run_command
    from taskyard.storage.trust import is_command_trusted

    command, cwd, timeout, trusted_at = check_acceptance(spec, folder=folder)
    if not is_command_trusted(command, trusted_at, env=env):
        raise Untrusted("The acceptance command", command, "taskyard trust")
    end = run_command(command, cwd=cwd, env=env, timeout=timeout, cancel=cancel, merge_stderr=True, kill_leftovers=True)
    if end.cause == "cancelled":
        raise Cancelled(f"The acceptance command `{command}`")
    code, output = end.exit_code, decode_plain(end.stdout)
    if end.cause == "timeout":
        code = None
    elif end.cause == "signal":
        code = 128 + (end.signal or 0)
    elif end.cause in ("not_started", "unknown"):
        code, output = 127, f"{output}\n{end.why}".lstrip()
    return AcceptanceResult(command, cwd, code, output[-MAX_OUTPUT:], round(end.seconds, 3), now_ms())
