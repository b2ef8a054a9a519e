"""Jobs that work on lists: a workflow's tasks and a team's members find them in the database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import process, taskyard
from support.crews import noted, noting, plan
from support.wait import until

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
