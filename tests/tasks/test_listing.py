"""A list read whole, and what is near to what is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.yards import open_yard, write_task
from taskyard.errors import TaskNotFound


def near(folder: Path, task_id: str) -> tuple[str, ...]:
    with open_yard(folder, "ada") as yard, pytest.raises(TaskNotFound) as missing:
        yard.tasks.get(task_id)
    return missing.value.nearest


@pytest.mark.req("L-08")
def test_near_ids_are_those_of_readable_tasks_and_never_the_one_asked_for(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    for task_id in ("1", "4", "9"):
        write_task(plan, task_id)
    write_task(plan, "5", status="deleted")
    write_task(plan, "6", status="deleted")
    (plan / "3.json").write_text("{")
    (plan / "2.json").mkdir()
    (plan / "0.json").write_text("{}")
    (plan / "007.json").write_text("{}")

    assert near(tmp_path, "5") == ("4", "1", "9")
    assert near(tmp_path, "1000") == ("9", "4", "1")


@pytest.mark.req("L-08", "L-13")
def test_tasks_of_the_older_file_are_near_too(tmp_path: Path) -> None:
    write_task(tmp_path / "plan", "1")
    (tmp_path / "plan" / "tasks.json").write_text(
        json.dumps({"tasks": [{"id": 5, "title": "Five"}, {"id": 6}]}), encoding="utf-8"
    )

    assert near(tmp_path, "7") == ("5", "1")
