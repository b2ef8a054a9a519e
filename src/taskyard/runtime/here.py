"""What a job takes over from the process that starts it: environment, folder, umask, terminal."""

from __future__ import annotations

import os
import sys

from taskyard.errors import BadValue

#: The environment when it was last asked for: as `os` keeps it, and as text.
_seen: tuple[object, dict[str, str]] | None = None


def environment() -> dict[str, str]:
    """The environment of this process; decoded anew only where it changed since the last time."""
    global _seen
    raw = getattr(os.environ, "_data", None)  # private to `os`, but a hundred times as fast
    if raw is None or _seen is None or _seen[0] != raw:
        _seen = dict(raw or {}), dict(os.environ)
    return dict(_seen[1])


def folder(wanted: str | None) -> str:
    """Where a job runs: in `wanted`, or where we are.

    Raises:
        BadValue: we are nowhere.
    """
    try:
        return os.path.abspath(wanted or os.getcwd())
    except FileNotFoundError:
        raise BadValue("cwd", ".", "a folder that exists: the current one was removed") from None


def terminal() -> tuple[str, int] | None:
    """The terminal that this process has, and its time of change, by which another of its name is told from it."""
    for fd in (2, 1, 0):
        try:
            return known_terminal(os.ttyname(fd))
        except OSError:
            continue
    return known_terminal(os.environ.get("SSH_TTY") or os.environ.get("GPG_TTY") or "")


def known_terminal(path: str) -> tuple[str, int] | None:
    """The same of a terminal by its name; None if there is none."""
    try:
        return path, os.stat(path).st_ctime_ns
    except (OSError, ValueError):
        return None


def umask() -> int:
    """The umask, as the kernel tells it: setting it to see it would be seen by other threads."""
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
