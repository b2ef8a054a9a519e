"""Jobs that work on lists: a workflow's tasks and a team's members find them in the database."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import taskyard as api
from support.cli import process, taskyard
from support.crews import noted, noting, plan
from support.wait import until
from taskyard.jobs.kinds.shell import Shell

pytestmark = pytest.mark.req("X-01")

WORKFLOW = {"name": "ci", "steps": [{"id": "plan", "tasks": [{"subject": "Write it"}]}]}


@pytest.fixture(autouse=True)
def shared(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("TASKYARD_STORE", address)
    monkeypatch.chdir(tmp_path)
    return address


@pytest.mark.req("K-05")
def test_a_workflow_puts_its_tasks_on_the_list_in_the_database(tmp_path: Path) -> None:
    (tmp_path / "ci.json").write_text(json.dumps(WORKFLOW), encoding="utf-8")
    job = taskyard("workflow", "run", "-d", "ci.json", "--list", "x", "--json").data["id"]
    try:
        until(lambda: _subjects() == ["Write it"])
        assert taskyard("task", "done", "1", "--list", "x").code == 0
        assert process("wait", job, "--json").data["status"] == "completed"
    finally:
        taskyard("stop", job)


def _subjects() -> list[str]:
    return [task["subject"] for task in taskyard("task", "list", "--list", "x", "--json").data]


@pytest.mark.req("M-01")
@pytest.mark.parametrize("place", ["process", "inside"])
def test_a_team_works_on_a_list_in_the_database(tmp_path: Path, place: str) -> None:
    text = "name: shop\ntasks:\n  - id: one\n    subject: One\n  - subject: Two\n    needs: [one]\n"
    ran = process(
        "team", "up", "--plan", plan(tmp_path, text), "--agents", "2", "--in", place,
        "--command", noting(tmp_path / "done"), "--json",
    )  # fmt: skip

    assert ran.code == 0, ran
    assert [line[0] for line in noted(tmp_path / "done")] == ["1", "2"]
    found = taskyard("task", "list", "--list", "shop", "--all", "--json").data
    assert {task["subject"]: task["status"] for task in found} == {"One": "completed", "Two": "completed"}


@pytest.mark.req("M-04")
def test_a_team_waits_long_for_a_database_that_is_away_unless_it_is_told_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["team", "up", "--plan", plan(tmp_path, "name: shop\ntasks: [One]\n"), "--agents", "1", "--command"]
    for said, expected in ((None, "3600"), ("20", "20")):
        if said is not None:
            monkeypatch.setenv("TASKYARD_DATABASE_PATIENCE", said)
            assert taskyard("task", "reset", "--list", "shop", "--yes").code == 0
        side = tmp_path / expected
        tells = f'echo $TASKYARD_DATABASE_PATIENCE > "{side}"'
        assert process(*words, noting(tmp_path / "done", work=tells)).code == 0
        assert side.read_text(encoding="ascii").strip() == expected


def test_a_command_that_a_program_starts_over_its_database_finds_it_and_no_file_names_it(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TASKYARD_STORE")
    with api.open(store=address, list="x") as yard:
        words = [sys.executable, "-m", "taskyard", "task", "add", "By a command", "--list", "x"]
        assert yard.jobs.wait(yard.jobs.start(Shell(words)).id, timeout=30).status == "completed"
        assert [task.subject for task in yard.tasks.list()] == ["By a command"]

    kept = [path for path in Path(os.environ["TASKYARD_HOME"]).rglob("*") if path.is_file()]
    assert kept and [path for path in kept if address.encode() in path.read_bytes()] == []
