"""Starting the command: found as a shell would find it, with descriptors and nothing else of ours."""

from __future__ import annotations

import os
import stat

from taskyard.runtime.keeper.signals import ALL
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: As shells report a command that is not there, and one that cannot be run.
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class NotStarted(Exception):
    """The command could not be started; the text says why."""

    def __init__(self, code: int | None, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class Plan(NamedTuple):
    """What to run, and where."""

    argv: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    umask: int


def start(plan: Plan, *, output: int, stdin: int | None, terminal: str | None = None) -> int:
    """Start it, in a process group (with a terminal: a session) of its own; its process number.

    Raises:
        NotStarted: it cannot be.
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


def _spawn(plan: Plan, output: int, stdin: int | None, terminal: str | None) -> int:
    program = _found(plan.argv[0], plan.env.get("PATH", os.defpath))
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = []
    if terminal is not None:
        # The first terminal that the leader of a new session opens becomes its own.
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
            return os.posix_spawn(program, argv, env, file_actions=actions, setsigmask=(), setsigdef=ALL, setsid=True)
        return os.posix_spawn(program, argv, env, file_actions=actions, setsigmask=(), setsigdef=ALL, setpgroup=0)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise NotStarted(NOT_EXECUTABLE, f"{plan.argv[0]!r}: {why}") from error


def _found(name: str, path: str) -> str:
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
