"""What a job inherits from its starter (environment, folder, umask, terminal), and start checks.

The process whose exit ends a job, if the job is not to be kept:

    started inside a job       that job: its supervisor stops its child jobs
    by a program               that process
    by a command line          the running instance of its agent; with an explicit "kill", the caller
"""

from __future__ import annotations

import os
import sys

from taskyard.core.system import process_start
from taskyard.errors import BackgroundDisabled, BadValue, StorageError

#: The environment as of the last call: as `os` stores it, and as text.
_cached: tuple[object, dict[str, str]] | None = None


def current_env() -> dict[str, str]:
    """Return the environment of this process; decoded again only if it changed since the last call."""
    global _cached
    raw = getattr(os.environ, "_data", None)  # private to `os`, but a hundred times as fast
    if raw is None or _cached is None or _cached[0] != raw:
        _cached = dict(raw or {}), dict(os.environ)
    return dict(_cached[1])


def resolve_cwd(wanted: str | None) -> str:
    """Return the absolute working folder of a job: `wanted`, or the current one.

    Raises:
        BadValue: the current folder was removed.
    """
    try:
        return os.path.abspath(wanted or os.getcwd())
    except FileNotFoundError:
        raise BadValue("cwd", ".", "a folder that exists: the current one was removed") from None


def current_terminal() -> tuple[str, int] | None:
    """Return this process's terminal and its ctime, which distinguishes it from a later one of the same name."""
    for fd in (2, 1, 0):
        try:
            return terminal_identity(os.ttyname(fd))
        except OSError:
            continue
    return terminal_identity(os.environ.get("SSH_TTY") or os.environ.get("GPG_TTY") or "")


def terminal_identity(path: str) -> tuple[str, int] | None:
    """Return the same for a terminal by its path; None if there is none."""
    try:
        return path, os.stat(path).st_ctime_ns
    except (OSError, ValueError):
        return None


def read_umask() -> int:
    """Return the umask from /proc: setting it to read it would affect other threads."""
    try:
        fd = os.open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _, found, rest = os.read(fd, 4096).partition(b"\nUmask:")
        finally:
            os.close(fd)
    except OSError:
        found = rest = b""
    if found:
        return int(rest.split(maxsplit=1)[0], 8)
    return 0o077 if sys.platform == "linux" else 0o022


_DISABLING_VARS = ("TASKYARD_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
_YES = ("1", "true", "yes", "on")


def check_background() -> None:
    """Refuse a background start if background jobs are disabled.

    Raises:
        BackgroundDisabled: an environment variable disables them.
    """
    if (variable := _disabled_by()) is not None:
        raise BackgroundDisabled(variable)


def is_background_disabled() -> bool:
    """Return whether background jobs are disabled."""
    return _disabled_by() is not None


def _disabled_by() -> str | None:
    return next((name for name in _DISABLING_VARS if os.environ.get(name, "").strip().lower() in _YES), None)


#: Descriptors that a supervisor and the command that starts it may need at once.
_MIN_FILES = 32

FILE_LIMIT_HINT = "Raise the limit of open files, for example `ulimit -n 1024`, and try again."


def check_machine() -> None:
    """Refuse to start a job that could not be supervised.

    Raises:
        StorageError: `/proc` is not mounted, or too few files may be open.
    """
    if not os.path.exists("/proc/self/stat"):
        raise StorageError(
            "/proc",
            "it is not mounted, and a job's supervisor needs it to find the job's processes",
            advice="Mount it: `mount -t proc proc /proc`.",
        )
    from resource import RLIMIT_NOFILE, getrlimit

    most = getrlimit(RLIMIT_NOFILE)[0]
    if 0 <= most < _MIN_FILES:
        why = f"at most {most} files may be open, and a job's supervisor needs {_MIN_FILES}"
        raise StorageError("this process", why, advice=FILE_LIMIT_HINT)


def parent_exit_policy(
    home: str, agent: str | None, *, wish: str | None, parent: str | None, alone: bool
) -> tuple[str, list[int] | None]:
    """Return "kill" or "keep" for when the starter exits, and the starter's pid and start time, if there is one.

    `alone`: this process is a command line, which exits before its job.
    """
    if parent is not None:
        return wish or "kill", None
    if not alone:
        on_exit = wish or ("kill" if agent else "keep")
        return on_exit, [os.getpid(), process_start()] if on_exit == "kill" else None
    if wish == "keep":
        return "keep", None
    if agent and (living := _agent_process(home, agent)) is not None:
        return "kill", living
    if wish is None:
        return "keep", None  # the exit of such an agent cannot be detected
    return "kill", [os.getppid(), process_start(os.getppid())]


def _agent_process(home: str, agent: str) -> list[int] | None:
    from taskyard.core.system import this_host
    from taskyard.storage import process_registry

    for record in process_registry.live_instances(home):
        if record.name == agent and record.host == this_host():
            return [record.pid, record.start]
    return None
