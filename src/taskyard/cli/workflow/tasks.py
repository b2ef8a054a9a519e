"""
`taskyard __workflow_tasks FILE`: put the tasks of a workflow's step on the list, and stay until all of them are done.

It is the program that such a step runs (`taskyard.kinds.workflow`). A task that is there already, from an attempt that
was killed, is known by its `external` id and not added again.
"""

from __future__ import annotations

import json

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard, print_line
from taskyard.errors import Damaged
from taskyard.runtime.ending import read
from taskyard.shapes import as_list, as_object, as_text
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Task

_SYSTEM = "taskyard-workflow"


def _arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="As `taskyard.kinds.workflow` wrote it.")


def _run(args: Args) -> int:
    wanted = read(args.file) or {}
    tasks = [as_object(each) or {} for each in as_list(wanted.get("tasks")) or []]
    key = as_text(wanted.get("key"))
    if not tasks or not key:
        raise Damaged(args.file, "it names no tasks")
    keys = [f"{key}/{at + 1}" for at in range(len(tasks))]
    with open_yard(args) as yard:
        yard.tasks.import_(json.dumps([_as_import(task, at, keys) for at, task in enumerate(tasks)]), "json")
        ids = {theirs: task.id for theirs, task in _there(yard).items() if theirs in keys}
        if not args.as_json:
            for task_id in ids.values():
                print_line(f"#{task_id} {safe(yard.tasks.get(task_id).subject)}")
        gone = _awaited(args, yard, keys)
    answer(args, lambda: {"tasks": list(ids.values()), "removed": gone}, list)
    return 1 if gone else 0


def _as_import(task: dict[str, object], at: int, keys: list[str]) -> dict[str, object]:
    needs = [str(need) for need in as_list(task.get("needs")) or []]
    return {
        "id": str(at),
        "subject": task.get("subject"),
        "description": task.get("description") or None,
        "owner": task.get("owner"),
        "blockedBy": needs,
        "metadata": {"taskyard": {"external": {"system": _SYSTEM, "id": keys[at]}}},
    }


def _there(yard: Yard) -> dict[str, Task]:
    """The tasks that workflows put on the list, by their keys."""
    from taskyard.tasklist.extras import external_of

    found: dict[str, Task] = {}
    for task in yard.tasks.list():
        external = external_of(task)
        if external is not None and external.system == _SYSTEM:
            found[external.id] = task
    return found


def _awaited(args: Args, yard: Yard, keys: list[str]) -> list[str]:
    """Stay until every task is done; the keys of those that were removed instead."""
    left = dict.fromkeys(keys)
    gone: list[str] = []
    while left:
        there = _there(yard)
        for key in list(left):
            task = there.get(key)
            if task is not None and not task.is_done:
                continue
            del left[key]
            if task is None:
                gone.append(key)
            if not args.as_json:
                print_line(f"Task {key.rpartition('/')[2]} was removed." if task is None else f"#{task.id} is done.")
        if left:
            yard.tasks.store.wait(yard.settings.poll_interval)
    return gone


TASKS = Command(_run, _arguments, "Put a step's tasks on the list, and wait until they are done.")
