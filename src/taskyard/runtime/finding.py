"""The folder of a job, by an id that somebody typed."""

from __future__ import annotations

import os

from taskyard.errors import BadJobId, JobNotFound, OutputGone
from taskyard.names import nearest
from taskyard.runtime.ended import ended_index
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id


def find_folder(home: str, job_id: str) -> JobFolder:
    """Where the job with this id lives.

    Raises:
        BadJobId: no job can have it; nothing was looked for.
        OutputGone: it ended, and gc took its folder.
        JobNotFound: there never was one; names the nearest.
    """
    if not is_job_id(job_id):
        raise BadJobId(job_id)
    folder = JobFolder(home, job_id)
    if os.path.lexists(folder.path):
        return folder
    known = ended_index(home, job_id)
    if known is not None:
        code = known.get("exitCode")
        raise OutputGone(
            job_id,
            status=str(known.get("status")),
            cause=str(known.get("cause")),
            exit_code=code if isinstance(code, int) else None,
        )
    raise JobNotFound(job_id, nearest=nearest(job_id, _all(home)))


def _all(home: str) -> list[str]:
    try:
        return [name for name in os.listdir(f"{home}/jobs") if is_job_id(name)]
    except OSError:
        return []
