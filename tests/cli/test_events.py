"""`taskyard events`: what happens to jobs, for people and programs, from any id on, live."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import LONGEST, start, taskyard
from support.event_streams import add, segments
from support.wait import until
from taskyard import config
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

pytestmark = pytest.mark.req("N-06")


def ran(command: str = "exit 3", name: str = "Work") -> str:
    """A job that is over; its id."""
    jobs = Jobs(config.home(), alone=True)
    return jobs.run(Shell(command, name=name), timeout=20).id


def test_each_line_says_when_which_job_and_what_happened() -> None:
    job = ran()

    begun, ended = taskyard("events").lines
    assert begun.split()[0] == "1"
    assert begun.split()[3:] == [job, "started", "Work"]
    assert ended.split(maxsplit=5)[3:] == [job, "failed", 'Background command "Work" failed with exit code 3']


def test_json_is_one_document_of_messages_with_ids_and_times() -> None:
    job = ran()

    begun, ended = taskyard("events", "--json").data
    assert (begun["id"], begun["type"], begun["subtype"], begun["task_id"]) == (1, "system", "task_started", job)
    assert (ended["status"], ended["at"] >= begun["at"]) == ("failed", True)
    assert taskyard("events", "--json", "--since", str(begun["id"])).data == [ended]
    assert taskyard("events", "--json", "--since", str(ended["id"])).data == []
    assert taskyard("events", "-q").lines == [str(begun["id"]), str(ended["id"])]


def test_what_is_not_wanted_is_left_out() -> None:
    first, second = ran(), ran("true")

    assert [event["task_id"] for event in taskyard("events", "--json", "--job", second).data] == [second] * 2
    for name in ("notification", "task_notification"):
        found = taskyard("events", "--json", "--type", name).data
        assert [(event["task_id"], event["status"]) for event in found] == [(first, "failed"), (second, "completed")]
    assert len(taskyard("events", "--type", "started,notification").lines) == 4
    assert [event["task_id"] for event in taskyard("events", "--json", "--last", "1").data] == [second]
    assert taskyard("events", "--last", "0").lines == []


def test_nothing_is_a_word_for_people_and_an_empty_list_for_programs() -> None:
    assert taskyard("events") == (0, "", "No events.\n")
    assert taskyard("events", "--json").data == []


def test_progress_and_a_question_are_told() -> None:
    add(config.home(), description="Agent", usage={"total_tokens": 12, "tool_uses": 3}, last_tool_name="Bash")
    add(config.home(), description="Ask", needs_input=True)

    working, waiting = taskyard("events").lines
    assert working.endswith("progress   Agent  Bash  12 tokens  3 tool uses")
    assert waiting.endswith("waits      Ask")


def test_what_a_job_is_called_cannot_act_on_a_terminal() -> None:
    add(config.home(), description="\x1b]0;owned\x07\u202e")

    assert not set(taskyard("events").out) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("--since", "x"), 2, "bad_value"),
        (("--since", "-1"), 2, "bad_value"),
        (("--since", "9" * 30), 2, "bad_value"),
        (("--since", "99999"), 4, "events_gone"),
        (("--job", "../x"), 2, "bad_job_id"),
        (("--job", "b00000000"), 4, "job_not_found"),
        (("--type", "x"), 2, "bad_value"),
        (("--now",), 2, "usage"),
        (("--now", "-f", "--since", "1"), 2, "usage"),
        (("--last", "1", "-f"), 2, "usage"),
        (("--list", "x"), 2, "usage"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...], code: int, name: str) -> None:
    ran = taskyard("events", *words, "--json")

    assert (ran.code, ran.error["code"]) == (code, name)


def test_events_that_are_no_longer_kept_are_said_to_be_gone_with_where_to_go_on() -> None:
    ran()
    (segment,) = segments(config.home())
    segment.rename(segment.with_name("134217728.jsonl"))

    gone = taskyard("events", "--since", "1", "--json")
    assert (gone.code, gone.error["code"]) == (4, "events_gone")
    assert len(taskyard("events", "--since", str(gone.error["first"])).lines) == 2
    assert "--since 134217728" in taskyard("events", "--since", "1").err


def test_what_cannot_be_read_is_counted() -> None:
    ran()
    (segment,) = segments(config.home())
    segment.write_bytes(b"\nspoiled\n" + segment.read_bytes())

    assert "1 line" in taskyard("events").err
    assert len(json.loads(taskyard("events", "--json").out)["warnings"]) == 1


@pytest.fixture
def follower() -> Iterator[Any]:
    children = []

    def follow(*words: str) -> Any:
        child = start("events", "-f", *words)
        children.append(child)
        until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) > 2, what="it to follow")
        return child

    yield follow
    for child in children:
        child.kill()
        child.communicate(timeout=LONGEST)


def test_following_prints_each_event_as_it_happens_one_document_a_line(follower: Any) -> None:
    ran()
    child = follower("--json", "--now")

    job = ran("true")
    found = [json.loads(child.stdout.readline()) for _ in range(2)]

    assert [event["schema_version"] for event in found] == [1, 1]
    assert [(event["data"]["task_id"], event["data"]["subtype"]) for event in found] == [
        (job, "task_started"),
        (job, "task_notification"),
    ]


def test_following_one_job_ends_with_it(follower: Any, tmp_path: Path) -> None:
    jobs = Jobs(config.home(), alone=True)
    job = jobs.start(Shell(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"))
    child = follower("--job", job.id)
    (tmp_path / "go").touch()
    out, err = child.communicate(timeout=LONGEST)

    assert (child.returncode, err) == (0, "")
    assert [line.split()[4] for line in out.splitlines()] == ["started", "completed"]
