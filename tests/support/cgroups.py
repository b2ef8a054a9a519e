"""A cgroup of a test's own, with little memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.wait import until

_V1 = {"memory.swappiness": 0, "memory.limit_in_bytes": 64_000_000}
_V2 = {"memory.swap.max": 0, "memory.max": 64_000_000}


@contextmanager
def little_memory() -> Iterator[list[str]]:
    """The words to start a command with, so that it and all below it share 64 MB; a skipped test where nobody may."""
    group, settings = _place()
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no cgroup can be made here")
    try:
        for name, value in settings.items():
            (group / name).write_text(str(value), encoding="ascii")
    except OSError:
        group.rmdir()
        pytest.skip("no cgroup of ours limits memory here")
    try:
        yield ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(group)]
    finally:
        until(lambda: not (group / "cgroup.procs").read_text(encoding="ascii"), what="everybody left the cgroup")
        group.rmdir()


def _place() -> tuple[Path, dict[str, int]]:
    """A name below the cgroup we are in ourselves."""
    name = f"taskyard-test-{os.getpid()}"
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        number, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path(f"/sys/fs/cgroup/memory{path}", name), _V1
        if number == "0" and not Path("/sys/fs/cgroup/memory").exists():
            return Path(f"/sys/fs/cgroup{path}", name), _V2
    pytest.skip("the kernel keeps no count of memory here")
