"""`taskyard notices` from a shell."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from support.cli import process, start, taskyard
from support.ended_jobs import end_job, stall_job
from taskyard import config
from taskyard.jobs import notices
from taskyard.jobs.notice import PREAMBLE


@pytest.fixture
def home() -> str:
    return config.home()


@pytest.mark.req("B-05")
def test_what_is_taken_and_acknowledged_is_not_told_again(home: str) -> None:
    job_id = end_job(home, "ada", exit_code=3)

    (seen,) = taskyard("notices", "--by", "ada", "--json").data
    (taken,) = taskyard("notices", "take", "--by", "ada", "--json").data
    assert (taken, taken["task_id"], taken["status"], taken["exit_code"]) == (seen, job_id, "failed", 3)
    assert taskyard("notices", "take", "--by", "ada").out == "No notices for ada.\n"

    assert taskyard("notices", "ack", taken["id"], "--json").data == [{"id": taken["id"], "state": "acknowledged"}]
    assert taskyard("notices", "ack", taken["id"]).out == f"{taken['id']}  already acknowledged\n"
    assert taskyard("notices", "list", "--all").out == "No notices.\n"


def test_a_person_reads_what_happened_when_and_to_which_job(home: str) -> None:
    job_id = end_job(home, description="npm \x1b[31mtest")
    (notice_id,) = taskyard("notices", "-q").lines

    assert taskyard("notices").lines == [
        f"{notice_id}  completed  {job_id}  0s ago",
        r'    Background command "npm \x1b[31mtest" completed (exit code 0)',
    ]


@pytest.mark.req("N-04")
def test_a_job_that_waits_shows_what_it_asks(home: str) -> None:
    stall_job(home, tail="a\nOverwrite? (y/n) ")

    lines = taskyard("notices", "take").lines

    assert "  waits  " in lines[0]
    assert lines[2:] == ["    a", "    Overwrite? (y/n) ", "    It takes no input: stop it, or let it be."]


def test_all_means_every_recipient_and_says_for_whom(home: str) -> None:
    jobs = {end_job(home, "ada"), end_job(home, "bob")}

    lines = taskyard("notices", "--all").lines
    assert {line.split("  ")[-1] for line in lines[::2]} == {"for ada", "for bob"}
    assert {notice["task_id"] for notice in taskyard("notices", "take", "--all", "--json").data} == jobs


@pytest.mark.req("N-01", "N-03")
def test_a_model_gets_one_text_with_the_rest_counted(home: str) -> None:
    for at in range(3):
        end_job(home, at=at)

    text = taskyard("notices", "take", "--xml", "--limit", "2").out

    assert text.startswith(f"{PREAMBLE}\n<task-notification>\n")
    assert text.count("<task-notification>") == 2
    assert text.endswith("</task-notification>\n[1 more notice waits.]\n")
    assert taskyard("notices", "verify", stdin=text.encode()).code == 0
    taskyard("notices", "take")
    assert taskyard("notices", "take", "--xml").out == ""


@pytest.mark.req("N-07")
def test_waiting_for_a_notice_ends_with_it_or_with_its_time(home: str) -> None:
    assert taskyard("notices", "take", "--wait", "0.05", "--json").data == []
    threading.Timer(0.2, end_job, (home,)).start()
    assert len(taskyard("notices", "take", "--wait", "20s", "--json").data) == 1


@pytest.mark.req("N-07")
def test_genuine_is_told_from_changed_and_from_never_issued(home: str, tmp_path: Path) -> None:
    job_id = end_job(home)
    got = tmp_path / "got"
    got.write_text(taskyard("notices", "take", "--json").out, encoding="utf-8")
    (notice,) = json.loads(got.read_text("utf-8"))["data"]

    genuine = f"Genuine: {notice['id']}, about job {job_id}"
    assert taskyard("notices", "verify", str(got)).lines == [
        f"{genuine}; not verified, because not signed: orphaned_from"
    ]
    assert taskyard("notices", "verify", str(got), "--json").data[0]["unproved"] == ["orphaned_from"]
    changed = taskyard("notices", "verify", "--json", stdin=json.dumps({**notice, "status": "failed"}).encode())
    assert (changed.code, changed.error["code"]) == (1, "not_genuine")
    never = taskyard("notices", "verify", "--json", stdin=json.dumps({**notice, "id": "nobody"}).encode())
    assert (never.code, never.error["code"]) == (4, "not_found")
    assert taskyard("notices", "verify", str(tmp_path / "missing")).code == 4


@pytest.mark.req("B-09")
def test_while_notices_are_on_hold_only_a_person_who_forces_it_gets_any(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    end_job(home)
    notices.pause_delivery(home)

    held = taskyard("notices", "take")
    assert (held.code, held.out) == (0, "No notices for me.\n")
    assert "on hold" in held.err
    assert len(taskyard("notices", "take", "--force", "--json").data) == 1
    monkeypatch.setenv("TASKYARD_AGENT", "ada")
    assert taskyard("notices", "take", "--force").code == 2


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("ack", "x"), 2, "bad_value"),
        (("ack", "0643a11c-8712-8e4f-a5d3-f19c20b7e441"), 4, "not_found"),
        (("take", "--limit", "0"), 2, "bad_value"),
        (("take", "--wait", "soon"), 2, "bad_value"),
        (("take", "--xml"), 2, "usage"),
        (("take", "--by", "x" * 201), 2, "bad_name"),
    ],
)
def test_a_bad_request_ends_with_the_code_of_its_class(words: tuple[str, ...], code: int, name: str) -> None:
    ran = taskyard("notices", *words, "--json")

    assert (ran.code, ran.error["code"]) == (code, name)


@pytest.mark.req("Q-11")
def test_a_notice_that_waits_is_marked_as_read_without_being_taken_first(home: str) -> None:
    end_job(home)
    (notice_id,) = taskyard("notices", "-q").lines

    assert taskyard("notices", "ack", notice_id, "--json").data == [{"id": notice_id, "state": "acknowledged"}]
    assert taskyard("notices", "-q").lines == []
    assert taskyard("notices", "ack", notice_id, "--json").data[0]["state"] == "already_acknowledged"


@pytest.mark.req("Q-11")
def test_a_person_reads_and_clears_all_notices_in_one_step(home: str) -> None:
    first, second = end_job(home), end_job(home)

    ran = taskyard("notices", "clear")

    assert first in ran.out and second in ran.out and "Marked as read: 2." in ran.out
    assert taskyard("notices", "-q").lines == []
    assert taskyard("notices", "clear").out == "No notices for me.\n"


def test_an_agent_does_not_clear_notices(home: str) -> None:
    end_job(home, "ada")

    assert taskyard("notices", "clear", "--by", "ada").code == 2
    assert len(taskyard("notices", "--by", "ada", "-q").lines) == 1


@pytest.mark.req("B-05")
def test_of_several_commands_that_take_at_once_each_notice_goes_to_one(home: str) -> None:
    for _ in range(6):
        end_job(home)
    takers = [start("notices", "take", "--limit", "2", "-q") for _ in range(3)]

    taken = [line for taker in takers for line in taker.communicate(timeout=30)[0].split()]

    left = taskyard("notices", "-q").lines  # one who was slower may have got fewer than it asked for
    assert len({*taken, *left}) == len([*taken, *left]) == 6
    assert process("notices", "ack", *taken, "-q").out.split() == taken
