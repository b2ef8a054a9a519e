"""Small disks of a test's own, which may be full or read-only."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(options: str = "size=2m", *, kind: str = "tmpfs") -> Iterator[Path]:
    """A disk of the test's own, or a skipped test where this machine mounts nothing."""
    with _mounted(kind, "-t", kind, "-o", options) as folder:
        yield folder


@contextmanager
def formatted(size: int, image: Path) -> Iterator[Path]:
    """A disk with ext4, as most machines have it: folders take room on it, too."""
    with image.open("wb") as file:
        file.truncate(size)
    tried = subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-b", "4096", str(image)], capture_output=True)
    if tried.returncode:
        pytest.skip("this machine makes no ext4 for us")
    with _mounted(str(image), "-o", "loop") as folder:
        folder.chmod(0o700)
        yield folder


@contextmanager
def _mounted(source: str, *how: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="taskyard-disk-"))
    tried = subprocess.run(["mount", *how, source, str(folder)], capture_output=True)
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
