"""Taking optional fields away from Python, as `task edit --clear` does from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard
from support.cli import taskyard as run
from support.yards import open_yard
from taskyard.tasks.model import EXTRAS

pytestmark = pytest.mark.usefixtures("kept_in")

FIELDS: dict[str, object] = {
    "priority": 2,
    "labels": ["db"],
    "due": "2026-05-01",
    "parent": "1",
    "external": {"system": "jira", "id": "A-7"},
    "requires": ["gpu"],
    "paths": ["src"],
    "acceptance": {"command": "true"},
}


def test_every_optional_field_can_be_cleared(tmp_path: Path) -> None:
    assert set(FIELDS) == set(EXTRAS)
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("The whole")
        for name in FIELDS:
            task = yard.tasks.create("Port it", metadata={"taskyard": FIELDS})
            left = yard.tasks.update(task.id, clear=name)
            assert set(left.extra) == {*FIELDS} - {name}
            assert yard.tasks.get(task.id).extra == left.extra


def test_clearing_all_leaves_nothing_of_ours_and_the_rest_of_the_metadata(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("Port it", metadata={"ticket": "A-7"}, priority=2, due="2026-05-01")

        task = yard.tasks.update("1", clear=("priority", "due"), subject="Port all")

    assert (task.subject, task.metadata) == ("Port all", {"ticket": "A-7"})


def test_a_field_that_is_cleared_and_given_is_given(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("Port it", priority=2, due="2026-05-01")

        assert yard.tasks.update("1", clear=["priority", "due"], priority=3).extra == {"priority": 3}


def test_a_refused_change_clears_nothing(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("first")
        yard.tasks.create("second", blocked_by=["1"], priority=2)

        with pytest.raises(taskyard.Blocked):
            yard.tasks.update("2", status="completed", clear="priority")

        assert yard.tasks.get("2").extra == {"priority": 2}


@pytest.mark.parametrize("clear", ["subject", ["priority", "nope"], 5])
def test_what_is_no_optional_field_cannot_be_cleared(tmp_path: Path, clear: str) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.create("Port it", priority=2)

        with pytest.raises(taskyard.UsageError, match="clear"):
            yard.tasks.update("1", clear=clear)

        assert yard.tasks.get("1").extra == {"priority": 2}


def test_a_shell_clears_under_the_same_rules() -> None:
    run("task", "add", "Port it", "--priority", "2", "--due", "2026-05-01")

    edited = run("task", "edit", "1", "--clear", "due", "--label", "db", "--json")

    assert edited.data["metadata"]["taskyard"] == {"priority": 2, "labels": ["db"]}
