"""
How a job stands, and what it printed, in one answer: as a model asks for it.

Whoever reads the end of a job that they are to hear of has heard of it: its notice counts as delivered, in the same
call.
"""

from __future__ import annotations

import os

from taskyard.runtime.folder import JobFolder
from taskyard.runtime.notice import PERSON
from taskyard.runtime.outboxes import mark_delivered
from taskyard.runtime.output import Output
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.model import Job


class TaskOutput(NamedTuple):
    """A job with what it printed, cut to what a model is given."""

    job: Job
    output: str  #: the end of it; of an agent its final answer, and until then what it said and did last
    was_truncated: bool = False
    delivered: tuple[str, ...] = ()  #: notices that count as read by this


def task_output(
    home: str, job: Job, *, reader: str | None, limit: int | None = None, transcript: bool = False
) -> TaskOutput:
    """What `job` printed, for `reader`; `limit` is in characters, else as `TASK_MAX_OUTPUT_LENGTH` says.

    With `transcript` also of a job that has a final answer the output itself.
    """
    folder = JobFolder(home, job.id)
    answer = job.facts.get("result")
    if not isinstance(answer, str) or job.type == "remote_agent":  # of what is elsewhere, the output is all there is
        answer = ""
    if not transcript and (answer or os.path.lexists(folder.transcript)):  # who wants an answer wants no transcript
        from taskyard.runtime.output_text import for_model, model_limit

        most = model_limit() if limit is None else limit
        said, is_all = answer.encode("utf-8", "replace"), True
        if not answer and not job.is_final:
            said, is_all = _at_work(folder, most)
        text = for_model(said, path=job.output_file, limit=most, is_all=is_all)
    else:
        text = Output(folder).for_model(limit)
    is_theirs = (reader or PERSON) == (job.agent_id or PERSON)
    delivered = mark_delivered(home, job.id) if job.is_final and is_theirs else ()
    return TaskOutput(job, text.text, text.was_truncated, delivered)


#: Bytes of a transcript for each character that is shown of it: entries hold more than their text.
_BYTES_PER_CHARACTER = 4


def _at_work(folder: JobFolder, most: int) -> tuple[bytes, bool]:
    """What an agent at work said and did last, as text; whether that is all of it."""
    from taskyard.runtime.transcript_text import readable

    part = Output(folder).tail_bytes(_BYTES_PER_CHARACTER * max(most, 1))
    return readable(part.text).encode("utf-8", "replace"), part.offset == 0
