"""The command line where lists are in PostgreSQL: the same words, the same answers."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from support.cli import taskyard
from support.ended_jobs import end_job
from support.repo import git_folder
from taskyard import config
from taskyard.cli.complete import candidates
from taskyard.postgres.connection import database

pytestmark = pytest.mark.req("X-01", "T-05")


@pytest.fixture
def shared(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A project whose lists are in a database."""
    monkeypatch.setenv("TASKYARD_STORE", address)
    git_folder(tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    for words in (("Write: the notes", "--label", "docs"), ("Ship it", "--owner", "ada"), ("Old",)):
        assert taskyard("task", "add", *words, "--list", "x").code == 0
    taskyard("task", "done", "3", "--list", "x")
    return address


def words(*line: str) -> list[str]:
    return [text for text, _ in candidates(line)]


@pytest.mark.req("L-14")
def test_lists_are_shown_and_made_current(shared: str) -> None:
    taskyard("task", "add", "Other", "--list", "y")

    found = taskyard("lists", "--list", "x", "--json").data

    assert [(one["name"], one["open"], one["done"], one["current"]) for one in found] == [
        ("x", 2, 1, True),
        ("y", 1, 0, False),
    ]
    assert taskyard("lists", "use", "x", "--existing").out == "export CLAUDE_CODE_TASK_LIST_ID=x\n"
    refused = taskyard("lists", "use", "xx", "--existing", "--json")
    assert (refused.code, refused.error["code"], refused.error["nearest"]) == (4, "not_found", ["x"])


def test_a_folder_that_is_named_is_what_is_meant(shared: str, tmp_path: Path) -> None:
    taskyard("task", "add", "In files", "--list", "f", "--tasks-dir", str(tmp_path / "tasks"))

    assert [one["name"] for one in taskyard("lists", "--tasks-dir", str(tmp_path / "tasks"), "--json").data] == ["f"]
    assert [one["name"] for one in taskyard("lists", "--json").data] == ["x"]
    assert words("--tasks-dir", str(tmp_path / "tasks"), "--list", "") == ["f"]


def test_tab_knows_what_is_there(shared: str) -> None:
    assert words("--list", "") == ["x"]
    assert words("task", "--list", "x", "done", "") == ["1", "2"]
    assert words("task", "list", "--list", "x", "--label", "d") == ["docs"]
    assert words("--list", "x", "--by", "") == ["ada"]
    assert [line.split("\t")[0] for line in taskyard("__complete", "--", "--list", "").lines] == ["x"]


def test_a_model_that_forgot_its_tasks_is_told_them(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"session_id": "s", "hook_event_name": "SessionStart", "source": "compact", "cwd": os.getcwd()}

    ran = taskyard("hook", "SessionStart", "--list", "x", "--strict", stdin=json.dumps(told).encode())

    assert (ran.code, ran.err) == (0, "")
    assert "Ship it" in json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]


def test_events_are_told_of_one_list_and_of_all(shared: str) -> None:
    taskyard("task", "add", "Other", "--list", "y")

    one = [json.loads(line) for line in taskyard("task", "events", "--list", "x").lines]
    every = [json.loads(line) for line in taskyard("task", "events", "--all").lines]

    assert [line["cause"] for line in one] == ["create", "create", "create", "complete"]
    assert [line["list"] for line in every] == ["x", "x", "x", "x", "y"]
    assert taskyard("task", "events", "--all", "--since", every[-1]["cursor"]).out == ""
    assert len(taskyard("task", "events", "--list", "x", "--since", one[1]["cursor"]).lines) == 2


@pytest.mark.req("L-21")
def test_extras_hooks_acceptance_and_the_nudge_work_above_the_store(shared: str, tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".taskyard"
    folder.mkdir()
    script = tmp_path / "asked.sh"
    script.write_text(f"#!/bin/sh\ncat >> {tmp_path}/asked\ngrep -q refuse {tmp_path}/asked && exit 2\nexit 0\n")
    script.chmod(stat.S_IRWXU)
    hook = {"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": str(script)}]}]}}
    (folder / "hooks.json").write_text(json.dumps(hook), encoding="utf-8")
    assert taskyard("trust", "--list", "x", "--yes").code == 0

    made = taskyard(
        "task", "add", "Checked", "--list", "x", "--priority", "1", "--due", "2030-01-02",
        "--accept", f"test -e {tmp_path}/ready", "--path", "src/**", "--json",
    )  # fmt: skip
    assert made.code == 0, made
    task_id = made.data["id"]
    assert b"Checked" in (tmp_path / "asked").read_bytes()
    assert taskyard("task", "add", "refuse me", "--list", "x", "--json").error["code"] == "hook_refused"
    untrusted = taskyard("task", "done", task_id, "--list", "x", "--by", "ada", "--json")
    assert untrusted.error["code"] == "untrusted"
    assert taskyard("trust", task_id, "--list", "x", "--yes").code == 0
    failed = taskyard("task", "done", task_id, "--list", "x", "--by", "ada", "--json")
    assert failed.error["code"] == "acceptance_failed"
    (tmp_path / "ready").touch()
    assert taskyard("task", "done", task_id, "--list", "x", "--by", "ada", "--json").code == 0
    taskyard("task", "done", "2", "--list", "x", "--by", "ada", "--json")
    last = taskyard("task", "done", "1", "--list", "x", "--json")
    assert any("verif" in note for note in last.data["notes"]), last
    assert taskyard("task", "show", task_id, "--list", "x", "--json").data["metadata"]["taskyard"]["priority"] == 1


@pytest.mark.req("L-06")
def test_the_doctor_finds_and_repairs_what_another_program_wrote(shared: str) -> None:
    assert taskyard("doctor", "--list", "x", "--json").data["healthy"] is True
    body = '{"subject":"Half","description":"d","blockedBy":["1","77"]}'
    db = database(shared)
    db.ask("UPDATE task SET body = %s, blocked_by = '{1,77}' WHERE id = 2", [body])
    db.ask("UPDATE list SET last_id = 1")
    db.ask("UPDATE task SET lease = %s, until = now() - interval '1 s' WHERE id = 2", [LEASE])

    ran = taskyard("doctor", "--list", "x", "--json")
    found = {finding["name"]: finding["task_id"] for finding in ran.data["findings"]}
    fixed = taskyard("doctor", "--list", "x", "--fix", "--by", "eve", "--json")

    assert (ran.code, found) == (1, {"half-edge": "1", "dangling-blocker": "2", "low-mark": None, "dead-holder": "2"})
    assert (fixed.code, fixed.data["healthy"], fixed.data["refused"]) == (0, True, [])
    assert {repair["name"] for repair in fixed.data["repairs"]} == set(found)
    one, two = (taskyard("task", "show", task, "--list", "x", "--json").data for task in ("1", "2"))
    assert (one["blocks"], two["blocked_by"], two["owner"]) == (["2"], ["1"], None)
    assert "repaired" in taskyard("task", "log", "1", "--list", "x").out
    assert taskyard("task", "add", "Next", "--list", "x", "--json").data["id"] == "4"


LEASE = json.dumps({"owner": "ada", "instance": "gone", "token": "t", "kind": "time", "since": 1, "expires": 2})


@pytest.mark.req("L-06")
def test_the_doctor_tells_of_a_cycle_a_damaged_row_and_a_wrong_clock(
    shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task_id, other in (("1", "2"), ("2", "1")):
        body = json.dumps({"subject": "Round", "description": "d", "blockedBy": [other], "blocks": [other]})
        database(shared).ask("UPDATE task SET body = %s WHERE id = %s", [body, int(task_id)])
    database(shared).ask("UPDATE task SET body = '{' WHERE id = 3")
    monkeypatch.setattr("taskyard.postgres.doctor.now_ms", lambda: 1_000_000)

    ran = taskyard("doctor", "--list", "x", "--json")

    assert ran.code == 1
    assert [finding["name"] for finding in ran.data["findings"]] == ["damaged-task", "cycle", "clock-skew"]
    assert "behind the database's" in ran.data["findings"][-1]["why"]


def test_the_doctor_tells_of_a_database_that_is_not_ready(shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database(shared).ask("DELETE FROM migration WHERE number > 0")
    database(shared).close()
    other = taskyard("doctor", "--list", "x", "--json")
    monkeypatch.setenv("TASKYARD_STORE", "postgresql://ada:geheim@/yard?host=/nowhere")
    monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", "0")
    away = taskyard("doctor", "--list", "x", "--json")

    assert [finding["name"] for finding in other.data["findings"]] == ["other-schema"]
    assert [finding["name"] for finding in away.data["findings"]] == ["unreachable"]
    assert "geheim" not in away.out


@pytest.mark.req("N-03")
def test_between_two_tools_a_hook_brings_only_next_notices_from_the_database(shared: str) -> None:
    later, urgent = end_job(config.home()), end_job(config.home(), priority="next")

    def told(event: str) -> str:
        ran = taskyard("hook", event, "--strict", stdin=json.dumps({"tool_name": "Read"}).encode())
        assert ran.code == 0, ran
        return ran.out

    mid_turn = told("PostToolUse")
    assert urgent in mid_turn and later not in mid_turn and "more notice" not in mid_turn
    assert told("PostToolUse") == ""
    assert later in told("Stop")
