"""What `resources/list` shows: the list that is worked on, and the output of every job that lives."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.errors import TaskyardError
from taskyard.harmless import safe
from taskyard.view.job_text import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.config import Settings
    from taskyard.runtime.model import Job

LIST = "taskyard://lists/{list}"
OUTPUT = "taskyard://jobs/{id}/output"
TEXT = "text/plain"

#: Outputs on one page.
PAGE = 100


def list_resource(name: str) -> dict[str, str]:
    """The list this connection works on."""
    return {
        "uri": LIST.replace("{list}", name),
        "name": name,
        "title": f"Tasks of {name}",
        "description": "The list this connection works on.",
        "mimeType": TEXT,
    }


def output_resources(jobs: Iterable[Job]) -> list[dict[str, str]]:
    """What jobs print."""
    return [
        {
            "uri": OUTPUT.replace("{id}", job.id),
            "name": f"{job.id}/output",
            "title": safe(job.description),
            "description": f"What {job.id} printed so far; it is {state(job)}.",
            "mimeType": TEXT,
        }
        for job in jobs
    ]


def here(chosen: str | None, settings: Settings) -> list[dict[str, str]] | None:
    """All of it, by a look at this machine's files; None where that is not enough, or fails."""
    if settings.store != "files":
        return None
    from taskyard.runtime.jobs import Jobs

    try:
        jobs = Jobs(paths.home()).list()
        name = paths.list_name(chosen, cwd=project_dir())
    except (TaskyardError, OSError):
        return None
    return [list_resource(name), *output_resources(jobs)] if len(jobs) <= PAGE else None


def project_dir() -> str:
    """The project that the client works in: as it says by `CLAUDE_PROJECT_DIR`, else where it started this process."""
    said = os.environ.get("CLAUDE_PROJECT_DIR", "")
    return said if os.path.isabs(said) and os.path.isdir(said) else os.getcwd()
