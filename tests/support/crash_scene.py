"""A small list on which every operation has something to do, and the operations that are killed on it."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import taskyard
from support.claude_rules import raw_tasks
from taskyard.tasks.task_list import TaskList

LIST = "crash"

#: Far enough away that no test sees it end.
LONG = 3600.0

#: What differs between two runs of the same operation.
_PASSING = ("createdAt", "updatedAt")


class Operation(NamedTuple):
    """Something that a process does when it is killed."""

    act: Callable[[TaskList], object]
    before: Callable[[str], object] = lambda _: None  #: what another program does first, to the list's folder


class Scene:
    """One list, copied anew for every death."""

    def __init__(self, tmp_path: Path, *, foreign: bool) -> None:
        self._tmp = tmp_path
        self._foreign = foreign
        self._count = 0
        self.folder = ""

    def open(self, agent: str = "bob", *, foreign: bool | None = None) -> taskyard.Yard:
        """The list, as a command line opens it: claims go by name."""
        return taskyard.open(
            tasks_dir=os.path.dirname(self.folder),
            list=LIST,
            agent=agent,
            is_person=True,
            foreign_writers=self._foreign if foreign is None else foreign,
        )

    def build(self) -> None:
        """A fresh list: 1 → 2 → 3, 4 is bob's, 5 was bob's until his claim lapsed, 6 is gone and waited for 1."""
        self._count += 1
        template = str(self._tmp / "template" / LIST)
        if self._count == 1:
            self.folder = template
            self._make()
        self.folder = str(self._tmp / str(self._count) / LIST)
        shutil.copytree(template, self.folder)

    def _make(self) -> None:
        with self.open(foreign=False) as yard:
            tasks = yard.tasks
            tasks.create("One")
            tasks.create("Two", blocked_by=["1"])
            tasks.create("Three", blocked_by=["2"])
            tasks.create("Four")
            tasks.create("Five")
            tasks.create("Six", blocked_by=["1"], blocks=["3"])
            tasks.delete("6")
            tasks.claim("4", lease=LONG)
            tasks.claim("5", lease=0.001)
        time.sleep(0.002)  # the claim on 5 has lapsed, whatever the clocks' grain

    def state(self) -> dict[str, Mapping[str, object]]:
        """Every task as it is on disk, without times and marks of touching."""
        return {task_id: _without_passing(raw) for task_id, raw in raw_tasks(self.folder).items()}


def _without_passing(raw: Mapping[str, object]) -> dict[str, object]:
    found = {key: value for key, value in raw.items() if key not in _PASSING}
    for key in ("blocks", "blockedBy"):
        found[key] = sorted(map(str, found[key]))  # type: ignore[call-overload]  # lists, as claude_rules checks
    metadata = found.pop("metadata", {})
    assert isinstance(metadata, dict)
    return {**found, "metadata": {key: value for key, value in metadata.items() if key != "touched"}}


def _elsewhere(folder: str) -> None:
    """Another program changes 1, makes 9 and removes 4, its way: in place, and telling nobody."""
    path = os.path.join(folder, "1.json")
    with open(path, encoding="utf-8") as file:
        raw = json.load(file)
    for name, task in {"1": {**raw, "subject": "One, changed"}, "9": {**raw, "id": "9", "blocks": []}}.items():
        with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump(task, file)
    os.unlink(os.path.join(folder, "4.json"))


def _undone(folder: str) -> None:
    """Another program's write brings back the metadata of 1 from before a field was set."""
    with taskyard.open(tasks_dir=os.path.dirname(folder), list=os.path.basename(folder)) as yard:
        yard.tasks.update("1", priority=1)
    path = os.path.join(folder, "1.json")
    with open(path, encoding="utf-8") as file:
        raw = json.load(file)
    del raw["metadata"]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(raw, file)


OPERATIONS: dict[str, Operation] = {
    "create": Operation(lambda tasks: tasks.create("New")),
    "create for oneself": Operation(lambda tasks: tasks.create("New", owner="bob")),
    "create with dependencies": Operation(lambda tasks: tasks.create("New", blocked_by=["1"], blocks=["3", "4"])),
    "update": Operation(lambda tasks: tasks.update("1", subject="Changed", metadata={"key": "value"})),
    "update with dependencies": Operation(
        lambda tasks: tasks.update("4", subject="Changed", status="completed", add_blocks=["2", "3"])
    ),
    "update that turns dependencies around": Operation(
        lambda tasks: tasks.update("2", subject="Changed", owner="cem", remove_blocked_by=["1"], add_blocks=["1"])
    ),
    "claim": Operation(lambda tasks: tasks.claim("1", lease=LONG)),
    "claim next": Operation(lambda tasks: tasks.claim_next(lease=LONG)),
    "complete": Operation(lambda tasks: tasks.complete("4")),
    "release": Operation(lambda tasks: tasks.release("4")),
    "assign": Operation(lambda tasks: tasks.assign("4", "cem")),
    "assign to oneself": Operation(lambda tasks: tasks.assign("1", "bob")),
    "block": Operation(lambda tasks: tasks.block("4", by=["1", "3"])),
    "unblock": Operation(lambda tasks: tasks.unblock("2", by="1")),
    "delete": Operation(lambda tasks: tasks.delete("2")),
    "restore": Operation(lambda tasks: tasks.restore("6")),
    "reset": Operation(lambda tasks: tasks.reset()),
    "lease loss": Operation(lambda tasks: tasks.get("5")),
    "put back": Operation(lambda tasks: tasks.list(), before=_undone),
    "external change": Operation(lambda tasks: tasks.list(), before=_elsewhere),
}
