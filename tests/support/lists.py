"""A list for a test with many processes: where it is, and in which company it is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import taskyard
from support.claude_rules import broken_edges, circle, raw_tasks
from support.list_truth import faults

NAME = "chaos"

#: "alone": only Taskyard writes. "beside others": npm's locks are taken too. "network": only they count.
COMPANY = ("alone", "beside others", "network")


class SharedList:
    """One list that every process of a test opens for itself."""

    def __init__(self, tasks_dir: Path, company: str = "alone") -> None:
        self.tasks_dir = str(tasks_dir)
        self.folder = os.path.join(self.tasks_dir, NAME)
        self.is_network = company == "network"
        self._foreign = company == "beside others"

    def open(self, agent: str | None = None) -> taskyard.Yard:
        """The list, under a name of one's own."""
        return taskyard.open(tasks_dir=self.tasks_dir, list=NAME, agent=agent, foreign_writers=self._foreign)

    def raw(self) -> dict[str, dict[str, object]]:
        """Every task by id, read without the code that wrote it."""
        return raw_tasks(self.folder)

    def faults(self) -> list[str]:
        """Everything that is not as it must be when nobody is at work."""
        return faults(self.folder)


class ListInDatabase(SharedList):
    """The same, in PostgreSQL."""

    def __init__(self, address: str) -> None:
        super().__init__(Path("/nowhere"))
        self.address = address

    def open(self, agent: str | None = None) -> taskyard.Yard:
        return taskyard.open(store=self.address, list=NAME, agent=agent)

    def raw(self) -> dict[str, dict[str, object]]:
        rows = self._ask("SELECT id, status, owner, body FROM task WHERE NOT is_gone ORDER BY id")
        return {str(number): _raw(status, owner, body) for number, status, owner, body in rows}

    def faults(self) -> list[str]:
        return list(self._faults())

    def _faults(self) -> Iterator[str]:
        tasks = self.raw()
        yield from broken_edges(tasks)
        if found := circle(tasks):
            yield f"a circle: {found}"
        told: dict[str, dict[str, object] | None] = {}
        for ids, statuses, owners, bodies in self._log():
            for task_id, status, owner, body in zip(ids, statuses, owners, bodies):
                told[str(task_id)] = None if status is None else _raw(status, owner, body)
        for task_id in sorted({*told, *tasks}, key=int):
            if told.get(task_id) != tasks.get(task_id):
                yield f"#{task_id}: the log says {told.get(task_id)}, the table {tasks.get(task_id)}"
        ids = [row[0] for row in self._ask("SELECT id FROM change ORDER BY id")]
        if ids != list(range(len(ids))):
            yield f"the log has gaps: {ids}"
        for task_id, lease in self._ask("SELECT id, lease FROM task WHERE lease IS NOT NULL"):
            owner = tasks.get(str(task_id), {}).get("owner")
            if json.loads(lease)["owner"] != owner or tasks[str(task_id)]["status"] == "completed":
                yield f"#{task_id}: a lease of {lease} for a task of {owner}"

    def _log(self) -> list[Any]:
        return self._ask("SELECT tasks, statuses, owners, bodies FROM change ORDER BY id")

    def _ask(self, sql: Any) -> list[Any]:
        with psycopg.connect(self.address, options="-c search_path=taskyard") as link:
            return link.execute(sql).fetchall()


def _raw(status: str, owner: str | None, body: str) -> dict[str, object]:
    """A task as its file would say it."""
    found = {"status": status, "blocks": [], "blockedBy": [], **json.loads(body)}
    return found if owner is None else {**found, "owner": owner}


def shared_list(tasks_dir: Path, company: str, monkeypatch: pytest.MonkeyPatch) -> SharedList:
    """A list in this company, for this process and those it forks."""
    if company == "network":
        monkeypatch.setenv("TASKYARD_NETWORK_FS", "1")
    return SharedList(tasks_dir, company)
