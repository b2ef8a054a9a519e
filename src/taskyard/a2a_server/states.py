"""
How a job stands, in the words of the protocol. Pure.

    waits for its turn                       submitted
    runs                                     working; input-required while it asks, with the question
    completed                                completed
    stopped                                  canceled, with the proof that nothing of it runs
    failed, lost, out of time or of room     failed, with the reason
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from a2a.types.a2a_pb2 import Message, Part, Role, TaskState, TaskStatus
from google.protobuf.timestamp_pb2 import Timestamp

from taskyard.a2a_server.letters import Letter
from taskyard.runtime.model import Job, JobStatus
from taskyard.shapes import as_text

FINAL = frozenset({TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED})


def status_of(job: Job, context: str, letters: Iterable[Letter] = ()) -> TaskStatus:
    """The state of a job's task; a question that was answered is asked no more, also before the agent has read it."""
    if job.is_final:
        return _status(job, context, _final(job), job.end_time or 0, _last_words(job), "end")
    asked = asked_at(job)
    if asked and not any(letter.is_done and letter.asked == asked for letter in letters):
        question = as_text(job.facts.get("question")) or "It needs input."
        return _status(job, context, TaskState.TASK_STATE_INPUT_REQUIRED, asked, question, f"asked-{asked}")
    is_waiting = job.status is JobStatus.PENDING
    state = TaskState.TASK_STATE_SUBMITTED if is_waiting else TaskState.TASK_STATE_WORKING
    return _status(job, context, state, job.start_time, "", "")


def asked_at(job: Job) -> int:
    """When the question was asked that a job waits with, in epoch ms; 0: it asks nothing."""
    asked = job.facts.get("askedAt")
    return asked if job.needs_input and isinstance(asked, int) else 0


def is_settled(status: TaskStatus) -> bool:
    """Whether whoever waits for an answer has one: it is over, or asks."""
    return status.state in FINAL or status.state == TaskState.TASK_STATE_INPUT_REQUIRED


def message(job: Job, context: str, name: str, text: str, *, role: Role = Role.ROLE_AGENT) -> Message:
    """A message of a task."""
    return Message(message_id=name, context_id=context, task_id=job.id, role=role, parts=[Part(text=text)])


def at(epoch_ms: int) -> Timestamp:
    """A moment, as the protocol has it."""
    stamp = Timestamp()
    stamp.FromMilliseconds(epoch_ms)
    return stamp


def _final(job: Job) -> TaskState:
    if job.status is JobStatus.COMPLETED:
        return TaskState.TASK_STATE_COMPLETED
    was_stopped = job.end is not None and job.end.cause == "stopped"
    return TaskState.TASK_STATE_CANCELED if was_stopped else TaskState.TASK_STATE_FAILED


_CANNOT_START = " cannot be started: "

#: A path of this machine: absolute, or from a home folder.
_PATH = re.compile(r"(?<![\w:/.])~?/[^\s'\"`:;,()]+")

_REASONS = {
    "timeout": "It took longer than it may.",
    "output_cap": "It said more than it may.",
    "oom": "It ran out of memory.",
}


def _last_words(job: Job) -> str:
    """Why it did not complete."""
    end = job.end
    if end is None or job.status is JobStatus.COMPLETED:
        return ""
    if end.cause == "stopped":
        return "It was stopped." if end.proof == "proved" else f"It was stopped ({end.proof or 'no proof'})."
    ending = f"It ended with exit code {end.exit_code}." if end.exit_code is not None else f"It ended by {end.cause}."
    return _for_others(end.error or "") or _REASONS.get(end.cause) or ending


def _for_others(error: str) -> str:
    """An error without what it says of this machine: programs and paths."""
    program, cannot, why = error.partition(_CANNOT_START)
    return _PATH.sub("…", f"The agent{cannot}{why}" if cannot else program)


def _status(job: Job, context: str, state: TaskState, when: int, text: str, name: str) -> TaskStatus:
    said = message(job, context, f"{job.id}-{name}", text) if text else None
    return TaskStatus(state=state, message=said, timestamp=at(when))
