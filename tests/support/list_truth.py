"""
What must be true of a list after anything: files, log, ledger and leases tell one story.

These are the promises a `doctor` would check, read from the disk without the code that keeps them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from support.claude_rules import broken_edges, circle, raw_tasks, strangers, unseen
from taskyard.storage.journal import Journal
from taskyard.tasks.list_folder import TaskIndex

Raw = Mapping[str, object]


def entries(folder: str) -> list[tuple[int, dict[str, Any]]]:
    """The list's log as it is on disk, oldest first."""
    return list(Journal(os.path.join(folder, ".taskyard", "log")).since(0))


def log_says(folder: str) -> dict[str, Raw | None]:
    """Every task as the log leaves it, without what was aborted; None = gone."""
    log = entries(folder)
    aborted = {entry["of"] for _, entry in log if entry["cause"] == "aborted"}
    found: dict[str, Raw | None] = {}
    for entry_id, entry in log:
        if entry_id not in aborted:
            found |= entry["tasks"]
    return found


def ever_used(folder: str) -> set[str]:
    """Every id the log knows, whatever became of it."""
    return {task_id for _, entry in entries(folder) for task_id in entry["tasks"]}


def open_intents(folder: str) -> list[str]:
    """Tasks whose last change is neither done nor undone."""
    index = TaskIndex(os.path.join(folder, ".taskyard", "ledger"))
    try:
        return [task_id for task_id, row in index.rows() if row.intent is not None]
    finally:
        index.close()


def leases(folder: str) -> dict[str, dict[str, object]]:
    """Every lease record by task."""
    place = os.path.join(folder, ".taskyard", "leases")
    found = {}
    for name in os.listdir(place):
        if name.endswith(".json"):
            with open(os.path.join(place, name), encoding="utf-8") as file:
                found[name[:-5]] = json.load(file)
    return found


def faults(folder: str, *, foreign_edges: bool = False) -> list[str]:
    """Everything that is not as it must be when nobody is at work; `foreign_edges`: others may leave half edges."""
    return list(_faults(folder, foreign_edges))


def _faults(folder: str, foreign_edges: bool) -> Iterator[str]:
    yield from unseen(folder)
    tasks = raw_tasks(folder)
    if not foreign_edges:
        yield from broken_edges(tasks)
    if found := circle(tasks):
        yield f"a circle: {found}"
    yield from (f"{name} was left behind" for name in strangers(folder))
    yield from (f"#{task_id} has an open intent" for task_id in open_intents(folder))
    yield from _faults_of_log(log_says(folder), tasks)
    yield from _faults_of_leases(leases(folder), tasks)


def _faults_of_log(log: Mapping[str, Raw | None], tasks: Mapping[str, Raw]) -> Iterator[str]:
    for task_id in sorted({*log, *tasks}, key=int):
        told, found = log.get(task_id), tasks.get(task_id)
        if told != found:
            yield f"#{task_id}: the log says {told}, the file {found}"


def _faults_of_leases(records: Mapping[str, Raw], tasks: Mapping[str, Raw]) -> Iterator[str]:
    for task_id, record in records.items():
        owner = tasks.get(task_id, {}).get("owner")
        if "token" in record and (record.get("owner") != owner or tasks[task_id]["status"] == "completed"):
            yield f"#{task_id}: a lease of {record.get('owner')} for a task of {owner}"
