"""
A job that waits for input, in the words of the Tasks extension: what it asks, and what is done with the answer.

A question's key is made of where in the output it stands and of its words: the same for all who look at it, also after
a restart, and another one for whatever is asked later.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from taskyard.errors import BadText, JobEnded
from taskyard.mcp_server.callers import Caller
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.model import Job
from taskyard.runtime.output import Output
from taskyard.runtime.output_text import for_terminal
from taskyard.shapes import as_object

#: How much of the output's end is shown with the question.
_LINES, _BYTES = 10, 2_000

#: The one field of the form.
_FIELD = "answer"


class Question(NamedTuple):
    """What a job waits for."""

    key: str
    request: Mapping[str, object]  #: as the client would be asked


def question(home: str, job: Job) -> Question | None:
    """What the job asks; None if it asks nothing, or could not be answered."""
    if job.is_final or not (job.needs_input and job.takes_input):
        return None
    if isinstance(asked := job.facts.get("question"), str):  # an agent says itself what it asks, and since when
        return Question(f"input-{job.facts.get('askedAt')}-{_sum(asked)}", _form(job, asked))
    if _went_on(JobFolder(home, job.id)):
        return None
    tail = Output(JobFolder(home, job.id)).tail(_LINES, most=_BYTES)
    said = for_terminal(tail.text)
    return Question(f"input-{tail.next_offset}-{_sum(said)}", _form(job, said))


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode('utf-8', 'replace')):08x}"


def _went_on(folder: JobFolder) -> bool:
    """Whether it printed something since its record was written: its keeper will see that it asks no more."""
    try:
        return os.stat(folder.output).st_mtime_ns > os.stat(folder.record).st_mtime_ns
    except OSError:
        return False


def _form(job: Job, said: str) -> Mapping[str, object]:
    schema = {
        "type": "object",
        "properties": {_FIELD: {"type": "string", "title": "Answer", "description": "Typed in as one line."}},
        "required": [_FIELD],
    }
    who = "The agent" if job.type == "local_agent" else "The command"
    message = f"{who} {job.description!r} waits for input:\n\n{said.strip()}"
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


async def answered(caller: Caller, job: Job, response: object) -> bool:
    """Do what came back for a question; whether it is answered with that.

    accept types the answer, decline ends the job's input, so that it goes on without. Whoever only closed the form has
    not decided yet.

    Raises:
        BadText: there is no answer in it.
        NoInput: the job does not read.
    """
    found = as_object(response) or {}
    action = found.get("action")
    if action not in ("accept", "decline"):
        return False
    text = (as_object(found.get("content")) or {}).get(_FIELD)
    if action == "accept" and not isinstance(text, str):
        raise BadText(_FIELD, "is missing: the answer is a text under that name")
    try:
        if action == "accept":
            await caller.jobs.answer(job.id, f"{text}\n")
        else:
            await caller.jobs.answer(job.id, "", close=True)
    except JobEnded:
        pass  # it did not wait for us
    return True
