"""What the list asks of the world around it: who the main agent is, and what hooks are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import taskyard


def finish(tmp_path: Path, agent: str | None, *, list: str, by: str | None = None) -> int:
    """How many notes the last of three tasks brings whoever completes it."""
    with taskyard.open(tasks_dir=tmp_path, list=list, agent=agent) as yard:
        ids = [yard.tasks.create(subject).id for subject in "abc"]
        return [len(yard.tasks.complete(task_id, agent=by).notes) for task_id in ids][-1]


@pytest.mark.req("L-17")
def test_a_main_agent_is_anyone_outside_a_team_and_only_its_lead_within(tmp_path: Path) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="elsewhere") as yard:
        for list in ("one", "two", "three", "four"):
            yard.teams.create(list, lead="lead")
            yard.teams.join(list, "ada", kind="external")

    assert finish(tmp_path, None, list="no team") == 1
    assert finish(tmp_path, None, list="one") == 1
    assert finish(tmp_path, "lead", list="two") == 1
    assert finish(tmp_path, "ada", list="three") == 0
    assert finish(tmp_path, None, by="ada", list="four") == 0
    assert finish(tmp_path, "ada", list="no team of hers") == 1


@pytest.mark.req("L-17")
def test_a_command_inside_a_job_is_a_sub_agent_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_INSTANCE", "job-1")

    assert finish(tmp_path, None, list="plan") == 0


@pytest.mark.req("H-01")
def test_hooks_hear_of_a_teammate_only_where_there_is_such_a_team(tmp_path: Path, outside: Path) -> None:
    told = tmp_path / "told"
    settings = {"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": f"cat >> {told}"}]}]}}
    (outside / ".claude").mkdir()
    (outside / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def heard(agent: str | None) -> dict[str, Any]:
        with taskyard.open(tasks_dir=tmp_path, list="crew", agent=agent, is_person=True) as yard:
            yard.tasks.create("a")
        found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8").splitlines()[-1])
        return {name: value for name, value in found.items() if name.startswith("team")}

    assert heard("ada") == {}
    with taskyard.open(tasks_dir=tmp_path, list="crew") as yard:
        yard.teams.create("crew", lead="lead")
        yard.teams.join("crew", "ada", kind="external")
    assert heard("ada") == {"teammate_name": "ada", "team_name": "crew"}
    assert heard("stranger") == {}
    assert heard(None) == {}
