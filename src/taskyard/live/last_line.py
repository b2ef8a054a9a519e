"""What a job printed last: the one line under its row."""

from __future__ import annotations

from taskyard.errors import StorageError
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.output import Output
from taskyard.runtime.output_text import for_terminal
from taskyard.view.text import safe


def last_line(home: str, job_id: str) -> str:
    """What a job printed last, in one harmless line; why it cannot be read, in brackets."""
    try:
        return safe(for_terminal(Output(JobFolder(home, job_id)).last_line())).strip()
    except StorageError as error:
        return safe(f"({error.why})")
