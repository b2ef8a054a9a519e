"""Yards for tests: several agents on one folder, each opened as a program would."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import taskyard

#: Where lists are instead, for tests of what does not depend on it: a database.
STORE: str | None = None


def open_yard(
    folder: Path, agent: str | None = None, *, list: str = "plan", foreign: bool = False, person: bool = False
) -> taskyard.Yard:
    """The list `plan` in `folder`, or in the store of the moment."""
    if STORE is not None:
        return taskyard.open(store=STORE, list=list, agent=agent, is_person=person)
    return taskyard.open(tasks_dir=folder, list=list, agent=agent, foreign_writers=foreign, is_person=person)


@contextmanager
def yards(folder: Path, *agents: str) -> Iterator[list[taskyard.Yard]]:
    """One yard for each agent, on the same list."""
    opened = [open_yard(folder, agent) for agent in agents]
    try:
        yield opened
    finally:
        for yard in opened:
            yard.close()


def write_task(folder: Path, task_id: str, **fields: object) -> Path:
    """A task file as another program writes it: in place, without our locks."""
    folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, object] = {"id": task_id, "subject": f"Task {task_id}", "description": "d", "status": "pending"}
    raw = {**known, "blocks": [], "blockedBy": [], **fields}
    path = folder / f"{task_id}.json"
    path.write_text(json.dumps(raw, indent=2), encoding="utf-8")
    return path


def on_disk(folder: Path, task_id: str) -> dict[str, object]:
    """What a task's file says."""
    found: dict[str, object] = json.loads((folder / f"{task_id}.json").read_bytes())
    return found


def snapshot(*folders: Path, ignore: Mapping[str, str] | None = None) -> dict[str, tuple[int, bytes]]:
    """Every file and folder below, with mode and content; `ignore` names what may differ, and why."""
    found: dict[str, tuple[int, bytes]] = {}
    for folder in folders:
        for root, names, files in os.walk(folder):
            for name in [*names, *files]:
                path = os.path.join(root, name)
                if any(part in path for part in ignore or {}):
                    continue
                mode = os.lstat(path).st_mode
                content = os.readlink(path).encode() if os.path.islink(path) else b""
                if not content and os.path.isfile(path):
                    content = Path(path).read_bytes()
                found[path] = (mode, content)
    return found
