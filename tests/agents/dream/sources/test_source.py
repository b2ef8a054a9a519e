"""A source of somebody else's package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.dreams import Memory
from taskyard import config
from taskyard.agents.dream import sources
from taskyard.agents.dream.kind import Dream
from taskyard.errors import BadValue
from taskyard.jobs.jobs import Jobs

SOURCE = """
from taskyard.agents.dream.sources import Session; from taskyard.agents.dream.sources import SessionText as Told

class Diary:
    def sessions(self, project):
        yield Session("../../evil\\x1b[2J", project.root, 2e9)
        yield Session("long", project.root, 2e9 + 1)

    def read(self, session, most):
        return Told("x" * 10_000_000 if session.id == "long" else "Dear diary, use spaces.", skipped=2)
"""


@pytest.mark.req("K-07")
def test_what_another_source_tells_is_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    (package / "diary-1.0.dist-info").mkdir(parents=True)
    (package / "diary-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1.0\n")
    points = "[taskyard.transcripts]\ndiary = diary:Diary\nclaude = diary:Diary\n"
    (package / "diary-1.0.dist-info" / "entry_points.txt").write_text(points)
    (package / "diary.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(package)
    monkeypatch.setenv("PYTHONPATH", f"{package}:{os.environ['PYTHONPATH']}")
    memory = Memory(tmp_path, sessions=0)
    body = "open('seen', 'w').write('\\n'.join(f'{p.name} {len(p.read_text())}' for p in sorted(sessions.iterdir())))"
    jobs = Jobs(config.home())
    try:
        spec = Dream(str(memory.path), ["diary"], command=memory.program(body), cwd=str(memory.project), force=True)
        job = jobs.run(spec, timeout=50)
    finally:
        jobs.close()

    assert job.status.value == "completed", job.end
    assert job.facts["skippedLines"] == 4
    first, second = memory.texts["seen"].splitlines()
    assert first.startswith("001-diary-long.md 2000")
    assert second.startswith("002-diary-______evil__2J.md ")
    assert sources.known_sources()["claude"].startswith("taskyard.")  # nobody takes the place of one of ours


def test_a_source_that_is_not_there_is_named() -> None:
    with pytest.raises(BadValue, match=r"claude, .*taskyard"):
        sources.find("codx")
