"""What follows the end of a job in other people's hands: its JobEnded hooks. They are told, and decide nothing."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.hooks import HookRun, load, run
from taskyard.runtime import looking
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.job_hooks import LOG
from taskyard.runtime.log import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.model import Job

EVENT = "JobEnded"


def run_hooks(home: str, job_id: str, *, timeout: float) -> tuple[HookRun, ...]:
    """Run the hooks of a job's end, in the folder it ran in; what goes wrong is noted in `<home>/hooks.log`.

    Raises:
        JobNotFound: there is no such job.
    """
    job = looking.look(home, job_id)
    folder = str((read(JobFolder(home, job_id).record) or {}).get("cwd") or "")
    cwd = folder if os.path.isdir(folder) else paths.user_home()  # it may have been removed meanwhile

    def tell(text: str) -> None:
        if text:
            note(home, LOG, f"{job_id}: {text}")

    book = load(paths.project(cwd).root, report=lambda problem: tell(problem.text))
    return run(
        EVENT,
        payload(job),
        book=book,
        cwd=cwd,
        timeout=timeout,
        matcher=job.type,
        report=lambda ended: tell(ended.text),
    ).runs


def payload(job: Job) -> dict[str, object]:
    """What a hook gets of a job, as JSON on its stdin."""
    facts: dict[str, object] = {
        "job_id": job.id,
        "job_type": job.type,
        "status": job.status.value,
        "description": job.description,
        "command": job.command or None,
        "output_file": job.output_file,
        "agent_name": job.agent_id,
        "parent_job_id": job.parent,
        "tool_use_id": job.tool_use_id,
    }
    if job.end is not None:
        facts |= {
            "cause": job.end.cause,
            "exit_code": job.end.exit_code,
            "signal": job.end.signal,
            "error": job.end.error or None,
            "duration_ms": job.end.duration_ms,
        }
    return facts
