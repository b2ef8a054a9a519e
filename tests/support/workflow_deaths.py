"""Workflows that die at a chosen moment, exactly: before or after an entry of their journal is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.repo import SOURCE
from taskyard import Workflow
from taskyard.errors import Conflict
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job

#: Read by every Python that starts; acts in the process of a workflow alone, and only while it is told to.
_DEADLY = """
import os, sys
if os.environ.get("WORKFLOW_DIES") and "taskyard.yard.job_host" in sys.orig_argv:
    when, _, count = os.environ.pop("WORKFLOW_DIES").partition(":")
    left = int(count)
    from taskyard.jobs.workflow import journal
    note = journal.Run.note
    def deadly(self, do, **facts):
        global left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), 9)
        note(self, do, **facts)
        if left == 0:
            os.kill(os.getpid(), 9)
    journal.Run.note = deadly
"""


class Deaths:
    """Starts workflows that die."""

    def __init__(self, jobs: Jobs, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.jobs, self._monkeypatch = jobs, monkeypatch
        site = folder / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(_DEADLY, encoding="utf-8")
        monkeypatch.setenv("PYTHONPATH", f"{site}:{SOURCE}")

    def run(self, spec: Workflow, when: str) -> Job:
        """Run a workflow that dies `before:N` or `after:N`, counted in entries; at its end."""
        self._monkeypatch.setenv("WORKFLOW_DIES", when)
        try:
            job = self.jobs.start(spec)
        finally:
            self._monkeypatch.delenv("WORKFLOW_DIES")
        return self.jobs.wait(job.id, timeout=30)

    def resume(self, run_id: str) -> Job | None:
        """Go on with a run, alive this time; None if nothing was left to do."""
        try:
            spec = Workflow.resume(run_id, home=self.jobs.home)
        except Conflict as error:
            assert "left to do" in str(error), error
            return None
        return self.jobs.wait(self.jobs.start(spec).id, timeout=30)


def entries(jobs: Jobs, run_id: str) -> list[dict[str, Any]]:
    """What a run's journal says."""
    path = Path(jobs.home, "workflows", run_id, "journal", "0.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def faults(jobs: Jobs, steps: list[str]) -> list[str]:
    """Steps that did not complete exactly once, or ran again after they had; none if all is well."""
    found: list[str] = []
    for step in steps:
        its = [job for job in jobs.list(ended=True) if job.description.endswith(f": {step}")]
        done = [job for job in its if job.status.value == "completed"]
        if len(done) != 1:
            found.append(f"{step} completed {len(done)} times")
        elif any(job.start_time > (done[0].end_time or 0) for job in its):
            found.append(f"{step} ran again")
    return found
