"""Chaos runs in memory where it can: what is tried are orders of system calls, and there are many."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskyard.jobs.jobs import Jobs

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


@pytest.fixture
def jobs(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """Jobs of an agent, in a home of their own; whatever a test leaves running is stopped."""
    monkeypatch.delenv("TASKYARD_JOB", raising=False)
    found = Jobs(str(memory / "home"), agent="ada")
    yield found
    found.stop(*[job.id for job in found.list()], grace=0)
    found.close()
