"""
Acceptance: the command that proves a task is done.

A task may carry `{"command": "make test", "cwd": "api", "timeout": 300}` under
`metadata.taskyard.acceptance`. Completing it runs the command; its end and the end of its output are
kept as evidence. Agents write such commands, so one runs only after a person allowed it (`taskyard.trust`).

It runs in the worktree of the agent that completes the task, because that is where the work is. A command allowed in a
folder of the project is allowed in the same folder of each of its worktrees.
"""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.clock import now_ms
from taskyard.errors import BadValue, Cancelled, Untrusted
from taskyard.names import check_text
from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

#: Test suites take minutes; ten of them without an end is a hang.
DEFAULT_TIMEOUT = 600.0

#: A day, in seconds: longer limits are typing errors.
LONGEST_TIMEOUT = 86_400.0

#: Kept of the output: test runners end with what failed, and a task file should stay small.
KEPT_CHARACTERS = 8_000

_FIELDS = ("command", "cwd", "timeout")


class Acceptance(NamedTuple):
    """A checked acceptance command."""

    command: str
    cwd: str  #: where it runs: absolute, without symbolic links
    timeout: float = DEFAULT_TIMEOUT  #: seconds
    trusted_at: str = ""  #: the same folder in the project's main checkout; trust is kept by it


class Evidence(NamedTuple):
    """What running an acceptance command showed."""

    command: str
    cwd: str
    exit_code: int | None  #: 128 + the signal if killed by one, 127 if it could not be started; None: out of time
    output: str  #: the last 8,000 characters of stdout and stderr together, without control codes
    seconds: float
    at: int  #: epoch ms of its end

    @property
    def passed(self) -> bool:
        """Whether the task may be called done."""
        return self.exit_code == 0


def check_acceptance(spec: object, *, folder: str) -> Acceptance:
    """`spec` as a command to run for work in `folder`; a relative `cwd` is below the checkout around `folder`.

    Raises:
        BadText: the command or the folder is no text, empty or unstorable.
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
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise BadValue("acceptance timeout", timeout, f"seconds from 0 to {LONGEST_TIMEOUT:,.0f}")
    place, trusted_at = _place(cwd, paths.project(folder))
    return Acceptance(command, place, float(timeout), trusted_at)


def _place(cwd: str, project: paths.Project) -> tuple[str, str]:
    """Where a command with this `cwd` runs, and the folder of the main checkout that stands for it."""
    place = os.path.realpath(os.path.join(project.checkout, cwd))
    if not _is_below(place, project.checkout):
        other = paths.project(place)
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
) -> Evidence:
    """Run the acceptance command `spec` of work in `folder` to its end, and end what it leaves in its process group.

    Raises:
        BadText, BadValue: `spec` is no acceptance command.
        Untrusted: no person allowed it yet.
        Cancelled: `cancel` was set meanwhile.
    """
    from taskyard.commands import plain_text, run_command
    from taskyard.trust import trusted_command

    command, cwd, timeout, trusted_at = check_acceptance(spec, folder=folder)
    if not trusted_command(command, trusted_at, env=env):
        raise Untrusted("The acceptance command", command, "taskyard trust")
    end = run_command(command, cwd=cwd, env=env, timeout=timeout, cancel=cancel, one_stream=True, end_leftovers=True)
    if end.cause == "cancelled":
        raise Cancelled(f"The acceptance command `{command}`")
    code, output = end.exit_code, plain_text(end.stdout)
    if end.cause == "timeout":
        code = None
    elif end.cause == "signal":
        code = 128 + (end.signal or 0)
    elif end.cause in ("not_started", "unknown"):
        code, output = 127, f"{output}\n{end.why}".lstrip()
    return Evidence(command, cwd, code, output[-KEPT_CHARACTERS:], round(end.seconds, 3), now_ms())
