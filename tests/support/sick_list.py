"""A list with something wrong, and its doctor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import taskyard
from taskyard.yard.doctor import doctor

if TYPE_CHECKING:
    from taskyard.postgres.doctor import PostgresDoctor
    from taskyard.tasks.doctor import Doctor
    from taskyard.tasks.doctor.finding import Finding, Repair
    from taskyard.yard import Yard


class SickList:
    """The list `crew` in a folder of its own."""

    def __init__(self, root: Path, *, foreign: bool = False) -> None:
        self.root = root
        self.folder = root / "tasks" / "crew"
        self.ours = self.folder / ".taskyard"
        self.yard: Yard = taskyard.open(
            tasks_dir=root / "tasks", list="crew", agent="ada", is_person=True, foreign_writers=foreign
        )
        self.doctor: Doctor | PostgresDoctor = doctor(
            tasks_dir=root / "tasks", list="crew", agent="ada", foreign_writers=foreign
        )

    def tasks(self, count: int) -> list[str]:
        """So many new tasks; their ids."""
        return [self.yard.tasks.create(f"Task {number}").id for number in range(1, count + 1)]

    def file(self, task_id: str) -> Path:
        return self.folder / f"{task_id}.json"

    def raw(self, task_id: str) -> dict[str, object]:
        """What is in a task's file, which must be one that Claude Code accepts."""
        data = self.file(task_id).read_bytes()
        found: dict[str, object] = json.loads(data.decode("utf-8"))
        assert_seen_by_claude(found)
        return found

    def write(self, task_id: str, **fields: object) -> None:
        """Lay fields over a task's file, as another program would; None is null, ... takes a field away."""
        found = json.loads(self.file(task_id).read_bytes()) if self.file(task_id).exists() else {}
        found |= fields
        kept = {key: value for key, value in found.items() if value is not ...}
        self.file(task_id).write_text(json.dumps(kept, indent=2), encoding="utf-8")

    def found(self) -> list[Finding]:
        return list(self.doctor.examine())

    def names(self) -> list[str]:
        """The names of what is wrong, each as often as it was found."""
        return [finding.name for finding in self.found()]

    def fixed(self, *names: str) -> list[Repair]:
        return list(self.doctor.repair(names))

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the list and its content."""
        return {
            os.path.relpath(os.path.join(folder, name), self.folder): Path(folder, name).read_bytes()
            for folder, _, names in os.walk(self.folder)
            for name in names
        }


def assert_seen_by_claude(raw: dict[str, object]) -> None:
    """Fail for what Claude Code's schema refuses."""
    assert isinstance(raw["id"], str)
    assert isinstance(raw["subject"], str)
    assert isinstance(raw["description"], str)
    assert raw["status"] in ("pending", "in_progress", "completed")
    for key in ("blocks", "blockedBy"):
        ids = raw[key]
        assert isinstance(ids, list)
        assert all(isinstance(task_id, str) for task_id in ids)
    assert all(raw[key] is not None for key in ("owner", "activeForm", "metadata") if key in raw)
