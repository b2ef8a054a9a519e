"""
Whether the kernel killed for want of memory: by its own counters, never by a guess.

Every cgroup counts the processes in it that were killed so. A command that ended by SIGKILL while the count of the
cgroup it shares with its keeper rose was out of memory; one that ended by SIGKILL alone was killed by somebody.

    cgroup v1    /sys/fs/cgroup/memory/<path>/memory.oom_control    oom_kill N
    cgroup v2    /sys/fs/cgroup/<path>/memory.events                oom_kill N
    neither      /proc/vmstat                                       oom_kill N, of the whole machine
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 65536


#: Where the count of this process's cgroup is, once it was looked for; a forked keeper knows it from its server.
_place: str | None = None


def kills(root: str = "/") -> int:
    """How many processes of our cgroup the kernel has killed for want of memory so far; 0 where it does not say."""
    global _place
    if root == "/" and _place is not None:
        return _count(_place) or 0
    for path in _counters(root):
        if (count := _count(path)) is not None:
            if root == "/":
                _place = path
            return count
    return 0


def _counters(root: str) -> Iterator[str]:
    """Where the count may be, the most exact first."""
    mounted = os.path.join(root, "sys/fs/cgroup")
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            yield f"{mounted}/memory{path}/memory.oom_control"
            yield f"{mounted}/memory/memory.oom_control"  # of a container that is shown the path outside of it
        elif number == "0":
            yield f"{mounted}{path}/memory.events"
            yield f"{mounted}/memory.events"
    yield os.path.join(root, "proc/vmstat")


def _count(path: str) -> int | None:
    for line in _text(path).splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill" and number.isdigit():
            return int(number)
    return None


def _text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, _MOST).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
