"""The entries of `resources/list`: the current list, and the output of every job that has not ended.

Imports no library: the handshake asks for it while another thread loads the MCP SDK, and two threads that import the
same package wait for each other.
"""

from __future__ import annotations

import os

from taskyard import config
from taskyard.core.text import escape_control
from taskyard.errors import TaskyardError
from taskyard.jobs.job_text import state_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskyard.config import Settings
    from taskyard.jobs.model import Job

LIST = "taskyard://lists/{list}"
OUTPUT = "taskyard://jobs/{id}/output"
TEXT = "text/plain"

#: Outputs on one page.
PAGE_SIZE = 100


def list_resource(name: str) -> dict[str, str]:
    """Return the resource of the list this connection works on."""
    return {
        "uri": LIST.replace("{list}", name),
        "name": name,
        "title": f"Tasks of {name}",
        "description": "The list this connection works on.",
        "mimeType": TEXT,
    }


def output_resources(jobs: Iterable[Job]) -> list[dict[str, str]]:
    """Return the output resources of jobs."""
    return [
        {
            "uri": OUTPUT.replace("{id}", job.id),
            "name": f"{job.id}/output",
            "title": escape_control(job.description),
            "description": f"What {job.id} printed so far; it is {state_text(job)}.",
            "mimeType": TEXT,
        }
        for job in jobs
    ]


def local_resources(chosen: str | None, settings: Settings) -> list[dict[str, str]] | None:
    """Return all resources from local files; None if that is not enough, or fails."""
    if settings.store != "files":
        return None
    from taskyard.jobs.jobs import Jobs

    try:
        jobs = Jobs(config.home()).list()
        name = config.list_name(chosen, cwd=project_dir())
    except (TaskyardError, OSError):
        return None
    return [list_resource(name), *output_resources(jobs)] if len(jobs) <= PAGE_SIZE else None


def project_dir() -> str:
    """Return the client's project folder: `CLAUDE_PROJECT_DIR`, else the working folder of this process."""
    said = os.environ.get("CLAUDE_PROJECT_DIR", "")
    return said if os.path.isabs(said) and os.path.isdir(said) else os.getcwd()
