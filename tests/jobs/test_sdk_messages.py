"""Jobs as claude-agent-sdk's message parser takes them."""

from __future__ import annotations

import pytest

from support.ended_jobs import notice
from taskyard import config
from taskyard.jobs.model import Job, JobStatus, task_notification, task_progress, task_started

pytestmark = pytest.mark.req("N-06")

#: What the parser reads without asking whether it is there (claude-agent-sdk, `message_parser.parse_message`).
DEMANDED = {
    "task_started": {"task_id", "description", "uuid", "session_id"},
    "task_progress": {"task_id", "description", "usage", "uuid", "session_id"},
    "task_notification": {"task_id", "status", "output_file", "summary", "uuid", "session_id"},
}

JOB = Job("b00000000", "local_bash", JobStatus.RUNNING, "Build", tool_use_id="toolu_1")


def test_every_message_has_what_the_parser_demands() -> None:
    usage = {"total_tokens": 1, "tool_uses": 2, "duration_ms": 3}
    messages = [
        task_started(JOB, uuid="u", session_id="s"),
        task_progress(JOB, uuid="u", session_id="s", usage=usage, last_tool_name="Bash"),
        task_notification(notice(config.home()), session_id="s") or {},
    ]

    for message, (subtype, demanded) in zip(messages, DEMANDED.items()):
        assert (message["type"], message["subtype"]) == ("system", subtype)
        assert demanded <= set(message)
        assert all(message[name] is not None for name in message)
    assert (messages[0]["task_type"], messages[0]["tool_use_id"]) == ("local_bash", "toolu_1")
    assert (messages[1]["usage"], messages[1]["last_tool_name"]) == (usage, "Bash")


@pytest.mark.parametrize(("status", "told"), [("completed", "completed"), ("failed", "failed"), ("killed", "stopped")])
def test_an_end_is_told_in_the_words_of_the_sdk_under_the_id_of_its_notice(status: str, told: str) -> None:
    one = notice(config.home(), status=status, usage={"total_tokens": 5})

    message = task_notification(one, session_id="s") or {}

    assert (message["status"], message["uuid"], message["task_id"]) == (told, one.id, one.task_id)
    assert message["usage"] == {"total_tokens": 5}
    assert "tool_use_id" not in message


@pytest.mark.req("N-04")
def test_a_job_that_waits_for_an_answer_is_no_notification_since_each_of_those_ends_a_job() -> None:
    assert task_notification(notice(config.home(), status=None), session_id="s") is None
