"""Chaos runs in memory where it can: what is tried are orders of system calls, and there are many."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = "/dev/shm"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder for lists, in memory if the machine has such a place."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="taskyard-chaos-", dir=_MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
