"""
Ids of calls that were put off (the Tasks extension): each says all that is needed to finish the call.

    b1x9k2m4q                            a command: the job's own id
    b1x9k2m4q.1785592800000.30000        a wait for a job: until when, and how long it was to be (both in ms)
    b1x9k2m4q.1785592800000.30000.t      the same, for the transcript

So any process can answer for them, also after a restart: nothing is kept beside the job.
"""

from __future__ import annotations

from typing import NamedTuple

from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from taskyard.errors import BadJobId
from taskyard.runtime.ids import is_job_id

#: What the extension is called.
IDENTIFIER = "io.modelcontextprotocol/tasks"

#: Digits of a time in ms; more is none.
_LONGEST = 15


class TaskId(NamedTuple):
    """A call that was put off."""

    job_id: str
    until: int | None = None  #: a wait: when it is over, in epoch ms
    lasts: int = 0  #: and how long it was to be, in ms
    transcript: bool = False

    def __str__(self) -> str:
        if self.until is None:
            return self.job_id
        return f"{self.job_id}.{self.until}.{self.lasts}{'.t' if self.transcript else ''}"


def parsed(text: str) -> TaskId:
    """The call that an id stands for.

    Raises:
        BadJobId: it stands for none.
    """
    job_id, *rest = text.split(".")
    transcript = len(rest) == 3 and rest[-1] == "t"
    times = rest[:-1] if transcript else rest
    fits = all(time.isascii() and time.isdigit() and len(time) <= _LONGEST for time in times)
    if not is_job_id(job_id) or not fits or len(times) not in (0, 2):
        raise BadJobId(text)
    return TaskId(job_id, int(times[0]), int(times[1]), transcript) if times else TaskId(job_id)


def declared(request: ServerRequestContext[object, object]) -> bool:
    """Whether whoever asks for this can be answered with a task: it said so with this very request."""
    capabilities = request.session.client_capabilities
    extensions = (capabilities.extensions if capabilities is not None else None) or {}
    return request.protocol_version in MODERN_PROTOCOL_VERSIONS and IDENTIFIER in extensions
