"""Jobs in a home of their own; whatever a test leaves running is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from taskyard.jobs.jobs import Jobs


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.delenv("TASKYARD_JOB", raising=False)
    found = Jobs(str(tmp_path / "home"))
    yield found
    found.stop(*[job.id for job in found.list()], grace=0.1)
    found.close()
