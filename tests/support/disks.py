"""Small disks of a test's own, which may be full or read-only."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(options: str = "size=2m") -> Iterator[Path]:
    """A disk of the test's own, or a skipped test where this machine mounts nothing."""
    folder = Path(tempfile.mkdtemp(prefix="taskyard-disk-"))
    tried = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)
    if tried.returncode:
        folder.rmdir()
        pytest.skip("this machine mounts nothing for us")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()


def make_read_only(disk: Path) -> None:
    """From now on the disk refuses every write."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
