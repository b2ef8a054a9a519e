from __future__ import annotations

import pytest
from a2a.types.a2a_pb2 import TaskState

from taskyard.jobs.model import End, Job, JobStatus
from taskyard.jobs.remote.a2a import parts_text
from taskyard.servers.a2a.tasks import TaskMessage, is_settled, task_status

_ASKS = Job("a1", "local_agent", JobStatus.RUNNING, "x", needs_input=True, facts={"question": "Which?", "askedAt": 7})


def ended(end: End) -> Job:
    return Job("a1", "local_agent", end.status, "x", end=end, end_time=5)


@pytest.mark.parametrize(
    ("job", "state", "said"),
    [
        (Job("a1", "local_agent", JobStatus.PENDING, "x"), TaskState.TASK_STATE_SUBMITTED, ""),
        (Job("a1", "local_agent", JobStatus.RUNNING, "x"), TaskState.TASK_STATE_WORKING, ""),
        (_ASKS, TaskState.TASK_STATE_INPUT_REQUIRED, "Which?"),
        (ended(End("exited", 0)), TaskState.TASK_STATE_COMPLETED, ""),
        (ended(End("error", error="no luck")), TaskState.TASK_STATE_FAILED, "no luck"),
        (ended(End("lost", error="its supervisor is gone")), TaskState.TASK_STATE_FAILED, "its supervisor is gone"),
        (ended(End("exited", 3)), TaskState.TASK_STATE_FAILED, "It ended with exit code 3."),
        (ended(End("timeout")), TaskState.TASK_STATE_FAILED, "It exceeded its time limit."),
        (ended(End("stopped", proof="proved")), TaskState.TASK_STATE_CANCELED, "It was stopped."),
        (ended(End("stopped", proof="partial")), TaskState.TASK_STATE_CANCELED, "It was stopped (partial)."),
    ],
)
def test_a_job_stands_as_the_protocol_says_it(job: Job, state: TaskState, said: str) -> None:
    status = task_status(job, "c")

    assert (status.state, parts_text(status.message.parts)) == (state, said)


def test_a_question_that_was_answered_is_asked_no_more_and_one_whose_answer_was_lost_is() -> None:
    answer = TaskMessage("m", "blue", 8, asked=7, question="Which?")

    assert is_settled(task_status(_ASKS, "c", [answer]))
    assert not is_settled(task_status(_ASKS, "c", [answer._replace(is_done=True)]))
    assert is_settled(task_status(_ASKS, "c", [answer._replace(is_done=True, asked=6)]))
