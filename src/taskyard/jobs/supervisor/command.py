"""Start a job's command, found as in a shell, with no other descriptors; watch the starter's exit."""

from __future__ import annotations

import os
import stat

from taskyard.core.system import process_start
from taskyard.core.values import NamedTuple
from taskyard.jobs.supervisor.kernel import ALL_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


#: Exit codes of shells for a command that is not found, and one that is not executable.
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class NotStarted(Exception):
    """The command could not be started; the text states why."""

    def __init__(self, code: int | None, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class CommandPlan(NamedTuple):
    """What to run, and where."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    umask: int


def start(plan: CommandPlan, *, output: int, stdin: int | None, terminal: str | None = None) -> int:
    """Start the command in its own process group (with a terminal: session); return its pid.

    Raises:
        NotStarted: it cannot be started.
    """
    try:
        os.chdir(plan.cwd)
    except OSError as error:
        raise NotStarted(None, f"the folder {plan.cwd!r}: {error.strerror}") from error
    try:
        os.umask(plan.umask)
        return _spawn(plan, output, stdin, terminal)
    finally:
        os.umask(0o077)
        os.chdir("/")


def _spawn(plan: CommandPlan, output: int, stdin: int | None, terminal: str | None) -> int:
    program = _find_program(plan.argv[0], plan.env.get("PATH", os.defpath))
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = []
    if terminal is not None:
        # The first terminal opened by the leader of a new session becomes its controlling terminal.
        actions.append((os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0))
        actions += [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    else:
        if stdin is None:
            actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
        else:
            actions.append((os.POSIX_SPAWN_DUP2, stdin, 0))
        actions += [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    argv, env = list(plan.argv), dict(plan.env)
    try:
        if terminal is not None:
            return os.posix_spawn(
                program, argv, env, file_actions=actions, setsigmask=(), setsigdef=ALL_SIGNALS, setsid=True
            )
        return os.posix_spawn(
            program, argv, env, file_actions=actions, setsigmask=(), setsigdef=ALL_SIGNALS, setpgroup=0
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL byte
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise NotStarted(NOT_EXECUTABLE, f"{plan.argv[0]!r}: {why}") from error


def _find_program(name: str, path: str) -> str:
    candidates = [name] if "/" in name else [f"{folder or '.'}/{name}" for folder in path.split(os.pathsep)]
    if "\0" not in name:
        for candidate in candidates:
            if os.access(candidate, os.X_OK) and _is_file(candidate):
                return candidate
    if any(map(os.path.exists, candidates)):
        raise NotStarted(NOT_EXECUTABLE, f"{name!r} is not executable")
    raise NotStarted(NOT_FOUND, f"{name!r}: command not found")


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False  # it vanished


def starter_exit_fd(starter: Sequence[int] | None) -> int | None:
    """Return a descriptor that polls readable when the starter exits; one that is gone polls readable at once."""
    if starter is None:
        return None
    pid, start = starter
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        fd = -1
    if fd >= 0 and process_start(pid) == start:
        return fd
    ended, theirs = os.pipe2(os.O_CLOEXEC)
    os.close(theirs)  # a pipe without a writer polls like an exited process
    if fd >= 0:
        os.close(fd)
    return ended
