"""Every verb of the list from a shell: what it answers, and what it leaves."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.cli import taskyard

pytestmark = pytest.mark.req("T-05")


def add(subject: str, *words: str) -> dict[str, Any]:
    task: dict[str, Any] = taskyard("task", "add", subject, *words, "--json").data
    return task


def show(task_id: str) -> dict[str, Any]:
    task: dict[str, Any] = taskyard("task", "show", task_id, "--json").data
    return task


@pytest.mark.req("L-21")
def test_every_field_can_be_given_when_a_task_is_added() -> None:
    add("Parent")
    given = {
        "description": "D", "active-form": "Doing", "owner": "ada", "priority": "2", "label": "a,b,c",
        "due": "2030-01-01", "parent": "1", "external": "gh:7:https://x.org/7", "require": "gpu", "accept": "true",
        "accept-cwd": "/tmp", "accept-timeout": "2m",
    }  # fmt: skip
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    words += ["--path", "src/*.py", "--path", "docs", "--metadata", "n=1", "--metadata", "t=x"]

    task = add("S", *words)

    assert (task["description"], task["active_form"], task["owner"]) == ("D", "Doing", "ada")
    assert task["metadata"] == {
        "n": 1,
        "t": "x",
        "taskyard": {
            "priority": 2,
            "labels": ["a", "b", "c"],
            "due": "2030-01-01",
            "parent": "1",
            "external": {"system": "gh", "id": "7", "url": "https://x.org/7"},
            "requires": ["gpu"],
            "paths": ["src/*.py", "docs"],
            "acceptance": {"command": "true", "cwd": "/tmp", "timeout": 120.0},
        },
    }
    shown = taskyard("task", "show", "2").out
    for text in ("priority", "a, b, c", "2030-01-01", "part of", "gh 7", "src/*.py", "accepted by"):
        assert text in shown


@pytest.mark.parametrize(
    "words",
    [("--priority", "x"), ("--priority", "0"), ("--due", "soon"), ("--accept-cwd", "/tmp"), ("--external", "gh")],
)
def test_a_field_that_makes_no_sense_is_refused_and_nothing_is_added(words: tuple[str, ...]) -> None:
    assert taskyard("task", "add", "S", *words).code == 2
    assert taskyard("task", "list", "--json").data == []


def test_subject_and_description_can_come_from_standard_input() -> None:
    both = taskyard("task", "add", "-", "--json", stdin=b"Fix it\n\nfirst this,\nthen that\n").data
    description = taskyard("task", "add", "S", "--description", "-", "--json", stdin="täxt\n".encode()).data

    assert (both["subject"], both["description"]) == ("Fix it", "first this,\nthen that")
    assert (description["subject"], description["description"]) == ("S", "täxt")
    assert taskyard("task", "add", "-", "--description", "-").code == 2
    assert taskyard("task", "add", "-", stdin=b"\xff").code == 2


def test_quiet_answers_with_bare_ids() -> None:
    assert taskyard("task", "add", "-q", "A").out == "1\n"
    assert taskyard("task", "add", "B", "--quiet").out == "2\n"
    assert taskyard("task", "list", "-q").out == "1\n2\n"


@pytest.mark.req("L-07")
def test_a_blocked_task_is_refused_by_name_until_a_person_forces_it_and_the_log_says_so() -> None:
    add("A")
    add("B", "--blocked-by", "1")

    refused = [taskyard("task", verb, "2", "--by", "ada") for verb in ("claim", "start", "done")]
    forced = taskyard("task", "start", "2", "--by", "ada", "--force")

    assert [ran.code for ran in refused] == [5, 5, 5]
    assert all("#1" in ran.err for ran in refused)
    assert forced.code == 0
    assert "(forced)" in taskyard("task", "log", "2").lines[-1]


@pytest.mark.req("L-07")
def test_completing_the_last_blocker_says_who_is_ready_now() -> None:
    add("A")
    add("B", "--blocked-by", "1")

    ran = taskyard("task", "done", "1", "--by", "ada")

    assert "Ready now: #2 B" in ran.lines
    assert taskyard("task", "list").lines[-1] == "✓ 1 done   (--all shows them)"


@pytest.mark.req("L-08", "L-09")
def test_a_claim_answers_with_its_token_and_an_old_token_is_refused() -> None:
    add("A")
    first = taskyard("task", "claim", "1", "--by", "ada", "--lease", "30m", "--json").data["lease"]
    assert first["kind"] == "time" and first["expires"] - first["since"] == 1_800_000
    assert "token" not in show("1")["lease"]
    taskyard("task", "release", "1", "--by", "ada", "--token", first["token"])
    taskyard("task", "claim", "1", "--by", "ada")

    late = taskyard("task", "done", "1", "--by", "ada", "--token", first["token"], "--json")

    assert (late.code, late.error["code"]) == (5, "lease_lost")
    assert taskyard("task", "claim", "1", "--by", "bob").code == 5


@pytest.mark.req("L-09")
def test_a_claim_by_name_is_one_principal_across_commands_and_has_no_end() -> None:
    add("A")
    lease = taskyard("task", "claim", "1", "--by", "bob", "--json").data["lease"]

    assert (lease["kind"], lease["expires"]) == ("manual", None)
    assert taskyard("task", "claim", "1", "--by", "bob").code == 0
    assert taskyard("task", "start", "1", "--by", "bob").code == 0
    assert taskyard("task", "renew", "1", "--by", "bob").code == 0
    assert taskyard("task", "done", "1", "--by", "bob").code == 0


@pytest.mark.req("L-09")
def test_what_another_holds_is_left_alone_until_a_person_insists_and_the_log_says_so() -> None:
    add("A")
    for verb in ("done", "reopen", "start", "release"):
        taskyard("task", "claim", "1", "--by", "ada", "--lease", "1h")
        taskyard("task", "start", "1", "--by", "ada")
        for caller in ((), ("--by", "bob")):
            refused = taskyard("task", verb, "1", *caller, "--json")
            assert (refused.code, refused.error["code"], refused.error["owner"]) == (5, "already_claimed", "ada")
            assert "--force" in refused.error["message"]
        assert taskyard("task", verb, "1", "--by", "bob", "--force").code == 0
        if verb != "start":
            assert "(forced)" in taskyard("task", "log", "1").lines[-1]
        taskyard("task", "reopen", "1", "--force")


@pytest.mark.req("L-09")
def test_what_was_claimed_by_hand_is_finished_under_that_name_or_by_force() -> None:
    add("A")
    taskyard("task", "start", "1", "--by", "ada")

    assert taskyard("task", "done", "1", "--by", "bob").code == 5
    assert taskyard("task", "done", "1").code == 5
    assert taskyard("task", "done", "1", "--force").code == 0


@pytest.mark.req("L-06")
def test_unblock_says_when_nothing_changed_and_refuses_an_id_there_is_not() -> None:
    add("A")
    add("B")

    assert "Nothing changed: #2 did not wait for #1." in taskyard("task", "unblock", "2", "--on", "1").lines
    assert "Nothing changed" in taskyard("task", "unblock", "2", "--all").out
    refused = taskyard("task", "unblock", "2", "--on", "99", "--json")
    assert (refused.code, refused.error["task_id"]) == (4, "99")


@pytest.mark.req("L-11")
def test_open_work_is_archived_only_by_force() -> None:
    add("A")

    refused = taskyard("task", "archive", "1", "--yes", "--json")
    assert (refused.code, refused.error["code"], refused.error["tasks"]) == (5, "still_open", ["1"])
    assert taskyard("task", "archive", "1", "--yes", "--force").code == 0
    assert "(forced)" in taskyard("task", "log", "1").lines[-1]


@pytest.mark.req("L-08")
def test_busy_agents_can_be_refused_by_request() -> None:
    add("A")
    add("B")
    taskyard("task", "claim", "1", "--by", "ada")

    assert taskyard("task", "claim", "2", "--by", "ada", "--check-busy", "--json").error["code"] == "agent_busy"
    assert taskyard("task", "claim", "2", "--by", "ada").code == 0


def test_who_acts_comes_from_the_environment_where_it_is_not_said(monkeypatch: pytest.MonkeyPatch) -> None:
    add("A")
    monkeypatch.setenv("TASKYARD_AGENT", "eve")

    assert taskyard("task", "start", "1", "--json").data["owner"] == "eve"
    assert taskyard("task", "log", "--json").data[-1]["by"] == "eve"


@pytest.mark.req("L-10")
def test_release_gives_back_one_task_or_all_of_an_agent() -> None:
    for subject in "ABC":
        add(subject)
        taskyard("task", "start", {"A": "1", "B": "2", "C": "3"}[subject], "--by", "ada")

    assert taskyard("task", "release", "1", "--by", "bob").code == 5
    assert taskyard("task", "release", "1", "--by", "bob", "--force", "--json").data["owner"] is None
    assert [task["id"] for task in taskyard("task", "release", "--all-of", "ada", "--json").data] == ["2", "3"]
    assert taskyard("task", "release").code == 2
    assert taskyard("task", "release", "1", "--all-of", "ada").code == 2


def test_assign_reopen_and_edit_change_what_they_say() -> None:
    add("A", "--priority", "1", "--label", "x", "--due", "2030-01-01")
    assert taskyard("task", "assign", "1", "bob", "--json").data["owner"] == "bob"
    assert taskyard("task", "assign", "1", "", "--json").data["owner"] is None
    taskyard("task", "done", "1")
    assert taskyard("task", "reopen", "1", "--json").data["status"] == "pending"

    edited = taskyard(
        *("task", "edit", "1", "--subject", "B", "--clear", "due,labels", "--priority", "3", "--metadata", "k=[1]"),
        "--json",
    ).data

    assert edited["subject"] == "B"
    assert edited["metadata"] == {"k": [1], "taskyard": {"priority": 3}}
    assert show("1")["metadata"] == edited["metadata"]
    assert taskyard("task", "edit", "1", "--metadata", "k=null", "--clear", "priority", "--json").data["metadata"] == {}
    assert taskyard("task", "edit", "1").code == 2
    assert taskyard("task", "edit", "1", "--clear", "subject").code == 2


@pytest.mark.req("L-05", "L-06")
def test_block_and_unblock_and_a_cycle_shows_its_path() -> None:
    for subject in "ABC":
        add(subject)

    assert taskyard("task", "block", "3", "--on", "1", "2", "--json").data["open_blockers"] == ["1", "2"]
    refused = taskyard("task", "block", "1", "--blocked-by", "3")
    assert refused.code == 5 and "#1 → #3 → #1" in refused.err.replace("#3 → #1 → #3", "#1 → #3 → #1")
    assert taskyard("task", "unblock", "3", "--on", "1", "--json").data["blocked_by"] == ["2"]
    assert taskyard("task", "unblock", "3", "--all", "--json").data["blocked_by"] == []
    assert taskyard("task", "block", "3").code == 2
    assert taskyard("task", "unblock", "3").code == 2


@pytest.mark.req("L-11")
def test_what_takes_away_needs_a_yes_where_nobody_can_be_asked() -> None:
    add("A")
    taskyard("task", "done", "1")

    for words in (("rm", "1"), ("archive",), ("reset",)):
        ran = taskyard("task", *words)
        assert ran.code == 2 and "--yes" in ran.err
    assert len(taskyard("task", "list", "--all", "--json").data) == 1


@pytest.mark.req("L-11")
def test_what_was_taken_away_can_be_brought_back() -> None:
    for subject in "ABC":
        add(subject)
    taskyard("task", "block", "3", "--on", "2")
    taskyard("task", "done", "1")

    assert [task["id"] for task in taskyard("task", "archive", "-y", "--json").data] == ["1"]
    assert "restore 1" in taskyard("task", "show", "1").err
    assert taskyard("task", "restore", "1", "--json").data[0]["status"] == "completed"
    assert taskyard("task", "rm", "2", "9", "--yes").code == 4
    assert show("2")["subject"] == "B"
    assert taskyard("task", "rm", "2", "--yes", "--note", "why not").code == 0
    assert "why not" in taskyard("task", "log", "2").out
    taskyard("task", "restore", "2")
    taskyard("task", "reset", "--yes")
    assert taskyard("task", "list", "--all", "--json").data == []
    assert len(taskyard("task", "restore", "--last-reset", "--json").data) == 3
    assert show("3")["blocked_by"] == ["2"]
    assert taskyard("task", "restore", "--last-reset").code == 4
    assert taskyard("task", "restore", "1").code == 5
    assert add("D")["id"] == "4"


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", ["json", "markdown", "csv"])
def test_an_export_can_be_imported_once(format: str, tmp_path: Path) -> None:
    add("A")
    add("B", "--blocked-by", "1")
    text = taskyard("task", "export", "--format", format).out
    file = tmp_path / f"plan.{ {'markdown': 'md'}.get(format, format) }"
    file.write_text(text, encoding="utf-8")

    added = taskyard("task", "import", str(file), "--list", "other", "--json").data
    again = taskyard("task", "import", "-", "--format", format, "--list", "other", stdin=text.encode())

    assert [task["subject"] for task in added] == ["A", "B"] and added[1]["blocked_by"] == ["1"]
    assert again.out.startswith("No tasks imported")


@pytest.mark.req("L-22")
def test_graphs_are_printed_and_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    add("A")
    assert taskyard("task", "export", "--format", "dot").out.startswith("digraph")
    assert taskyard("task", "export", "--format", "mermaid").code == 0
    (tmp_path / "plan.txt").write_text("x", encoding="utf-8")
    (tmp_path / "plan.json").write_text("{", encoding="utf-8")

    codes = [taskyard("task", "import", str(tmp_path / name)).code for name in ("plan.txt", "plan.json", "gone.json")]

    assert codes == [2, 2, 4]
    assert taskyard("task", "import", str(tmp_path), "--format", "json").code == 1


def test_the_log_tells_who_did_what_and_why() -> None:
    add("A", "--by", "lead")
    taskyard("task", "start", "1", "--by", "ada")

    lines = taskyard("task", "log", "1").lines

    assert [line.split("  ")[1:3] for line in lines] == [["lead", "create"], ["ada", "start"]]
    assert len(taskyard("task", "log", "--last", "1", "--json").data) == 1
    assert taskyard("task", "log", "9").code == 4


def test_a_damaged_file_is_a_warning_beside_the_answer(tmp_path: Path) -> None:
    add("A", "--tasks-dir", str(tmp_path), "--list", "x")
    (tmp_path / "x" / "7.json").write_text("{", encoding="utf-8")

    in_words = taskyard("task", "list", "--tasks-dir", str(tmp_path), "--list", "x")
    in_json = taskyard("task", "list", "--tasks-dir", str(tmp_path), "--list", "x", "--json")

    assert in_words.code == 0 and in_words.err.startswith("Warning: 7.json cannot be read")
    assert "7.json" in json.loads(in_json.out)["warnings"][0]


def test_looking_at_a_list_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    ran = taskyard("task", "list", "--tasks-dir", str(tmp_path / "tasks"))

    assert ran.code == 0 and ran.out == "" and ran.err.startswith("No tasks on list")
    assert os.listdir(tmp_path) == []
