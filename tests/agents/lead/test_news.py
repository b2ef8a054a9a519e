"""What a lead is told, word by word."""

from __future__ import annotations

import pytest

from taskyard.agents.lead import team_lead
from taskyard.agents.mail import Message
from taskyard.jobs.model import End, Job, JobStatus
from taskyard.tasks.model import Act, Change, Task, TaskStatus


def change(cause: str, task: Task, *, by: str | None = "ada", note: str = "", aborted: bool = False) -> str:
    return team_lead.describe_change(Change(1, 0, Act(by, cause, note=note), {task.id: task}, aborted))


@pytest.mark.req("M-04")
def test_acts_on_the_list_read_as_sentences() -> None:
    task = Task("3", "Write the parser")
    assert change("start", task) == "ada starts #3 Write the parser"
    assert change("complete", task) == "ada completes #3 Write the parser"
    assert change("lease_lost", task) == "#3 Write the parser comes back to the pool: ada is gone"
    assert change("release", task, note="failed: x") == "#3 Write the parser comes back to the pool: failed: x"
    assert change("release", task) == "ada gives back #3 Write the parser"
    held = task._replace(metadata={"taskyard": {"held": True}})
    assert change("lease_lost", held).endswith("comes back to the pool, and is quarantined: ada is gone")


def test_what_is_nobody_s_business_is_not_told() -> None:
    task = Task("3", "Write the parser")
    assert change("complete", task, aborted=True) == ""
    assert change("update", task) == ""
    assert change("complete", task._replace(metadata={"_internal": True})) == ""


@pytest.mark.req("M-02")
def test_mail_to_the_lead_is_told_and_what_to_do_about_it() -> None:
    def told(type: str, text: str = "", **data: object) -> str:
        return team_lead.describe_message(Message("1", "ada", "lead", "my crew", type, text, data=data))

    assert told("message", "The parser\nis done.") == "ada writes: The parser is done."
    assert told("idle_notification", idleReason="available") == "ada is idle"
    assert told("idle_notification", idleReason="failed") == "ada is idle (failed)"
    assert told("shutdown_approved") == "ada shuts down"
    assert told("plan_approval_request", planContent="1. Look") == (
        "ada wants a plan approved: 1. Look\n"
        "        taskyard team approve 'my crew' ada  or  taskyard team reject 'my crew' ada 'WHY'"
    )


@pytest.mark.req("O-08", "M-03")
def test_questions_and_deaths_are_told() -> None:
    job = Job("t1", "in_process_teammate", JobStatus.RUNNING, "", facts={"question": "Overwrite?\x1b[2J"})
    asked = team_lead.describe_question("ada", job)
    assert asked.startswith("ada asks: Overwrite?")
    assert asked.endswith("taskyard send t1 'ANSWER'")
    assert "\x1b" not in asked
    ended = job._replace(status=JobStatus.FAILED, end=End("signal", signal=9))
    assert team_lead.describe_end("ada", ended).startswith("ada died (")
    lost = job._replace(
        status=JobStatus.FAILED, end=End("lost", error="its supervisor is gone and left no record of how it ended")
    )
    assert (
        team_lead.describe_end("ada", lost)
        == "ada died (lost: its supervisor is gone and left no record of how it ended)"
    )


def test_why_nobody_works_on_a_task_is_said() -> None:
    one, two = Task("1", "One", metadata={"taskyard": {"held": True}}), Task("2", "Two", blocked_by=("1",))
    three = Task("3", "Three", status=TaskStatus.IN_PROGRESS, owner="bob")
    four = Task("4", "Four", metadata={"taskyard": {"requires": ["cobol"]}})
    failed = {"held": True, "failed": {"count": 3, "reason": "no fuel."}}
    five = Task("5", "Five", metadata={"taskyard": failed})
    tasks = {task.id: task for task in (one, two, three, four, five)}
    assert [team_lead.describe_open_task(task, tasks, "my crew").partition(": ")[2] for task in tasks.values()] == [
        "quarantined, it lost its holders too often. `taskyard task edit 1 --clear held --list 'my crew'`",
        "waits for #1",
        "bob has it",
        "requires cobol",
        "quarantined, it failed, last because: no fuel. `taskyard task edit 5 --clear held --list 'my crew'`",
    ]


def test_a_long_text_is_one_short_line() -> None:
    assert len(team_lead.one_line("word " * 1000)) == 300
