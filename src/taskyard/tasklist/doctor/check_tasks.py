"""Checks of the tasks themselves: their files, their dependencies, those that were set aside; pure."""

from __future__ import annotations

import os
import stat
from itertools import pairwise

from taskyard.tasklist.doctor.finding import Finding
from taskyard.tasklist.doctor.mending import hidden_by, mended, other_id
from taskyard.tasklist.graph import by_id, cycles, half_edges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskyard.tasklist.doctor.look import Look
    from taskyard.tasklist.model import Task
    from taskyard.tasklist.reader import Seen


def check_task_files(look: Look) -> Iterator[Finding]:
    """What is wrong in the files called like tasks."""
    for task_id, seen in sorted(look.seen.items(), key=lambda pair: int(pair[0])):
        file = look.folder.task(task_id)
        if not stat.S_ISREG(seen.stat.st_mode):
            what = _what(seen.stat)
            yield Finding("not-a-task-file", file, f"It is {what}.", f"moves the {what.split()[-1]} aside", task_id)
        elif seen.damage is not None:
            yield Finding("damaged-task", file, f"{_sentence(seen.damage)}.", remedy(look, task_id, seen), task_id)
        elif seen.task is None:
            why = "It only says that the task was deleted, as older writers did."
            yield Finding("deleted-mark", file, why, "moves it aside; the id stays spent", task_id)
        else:
            yield from _check_readable(task_id, file, seen)


def _check_readable(task_id: str, file: str, seen: Seen) -> Iterator[Finding]:
    if reasons := hidden_by(seen.raw):
        why = f"Claude Code does not see it: {', '.join(reasons)}."
        yield Finding("hidden-task", file, why, "writes it again, whole", task_id)
    if inside := other_id(task_id, seen.raw):
        why = f"The id in it is {inside[:40]!r}; its name says {task_id!r}."
        yield Finding("wrong-id", file, why, f"writes it again with id {task_id!r}", task_id)


def remedy(look: Look, task_id: str, seen: Seen) -> str:
    """What repairing a damaged file would do."""
    if saved := mended(task_id, seen.data):
        lost = f"; what cannot be read goes: {', '.join(saved.lost)}" if saved.lost else ""
        return f"writes it again with what can be read of it{lost}"
    if task_id in look.log.known:
        return "writes it again as it last was, by the event log"
    return "moves it aside: nothing in it can be read, and the event log never saw the task"


def check_dependencies(look: Look) -> Iterator[Finding]:
    """Cycles, half edges, and dependencies on what is not there."""
    yield from check_cycles({**look.older, **look.tasks}, look.folder.task)
    if look.is_quiet and not _is_being_written(look):
        yield from check_half_edges(look.tasks, look.folder.task)
    yield from check_gone(look.tasks, look.exists, look.folder.task)


def check_cycles(tasks: Mapping[str, Task], place: Callable[[str], str]) -> Iterator[Finding]:
    """Tasks that wait for each other; `place` says where a task is."""
    for cycle in _once_each(cycles(tasks)):
        edges = [(blocker, blocked) for blocked, blocker in pairwise(cycle)]
        path = " → ".join(f"#{task_id}" for task_id in cycle)
        ways = " or ".join(f"`taskyard task unblock {blocked} --on {blocker}`" for blocker, blocked in edges)
        why = f"They wait for each other for ever: {path}."
        yield Finding("cycle", place(cycle[0]), why, f"which is wrong, only you can say: {ways}", cycle[0])


def check_half_edges(tasks: Mapping[str, Task], place: Callable[[str], str]) -> Iterator[Finding]:
    """Dependencies that one of two tasks does not know of."""
    for blocker, blocked in half_edges(tasks):
        file = place(blocker)
        if blocker in tasks[blocked].blocked_by:
            why = f"#{blocked} waits for #{blocker}, which does not say so."
            yield Finding("half-edge", file, why, f"adds #{blocked} to what #{blocker} blocks", blocker)
        else:
            why = f"#{blocker} says that it blocks #{blocked}, which does not wait for it."
            yield Finding("half-edge", file, why, f"takes #{blocked} from what #{blocker} blocks", blocker)


def check_gone(
    tasks: Mapping[str, Task], exists: Callable[[str], object], place: Callable[[str], str]
) -> Iterator[Finding]:
    """Dependencies on what is not there."""
    for task in by_id(tasks.values()):
        gone = sorted({other for other in (*task.blocked_by, *task.blocks) if not exists(other)}, key=int)
        if gone:
            names = ", ".join(f"#{other}" for other in gone)
            why = f"#{task.id} depends on {names}: there is no such task."
            yield Finding("dangling-blocker", place(task.id), why, f"takes {names} from it", task.id)


def check_held(look: Look) -> Iterator[Finding]:
    """Tasks that nobody is offered any more."""
    yield from check_set_aside(look.tasks, look.folder.task)


def check_set_aside(tasks: Mapping[str, Task], place: Callable[[str], str]) -> Iterator[Finding]:
    """The same, wherever they are."""
    for task in by_id(tasks.values()):
        if task.is_held and not task.is_done:
            why = f"#{task.id} lost its holder too often and is offered to nobody."
            yield Finding("held-task", place(task.id), why, "offers it again", task.id)


def _is_being_written(look: Look) -> bool:
    """Whether another program holds a task's lock right now: its second half may still come."""
    return any(
        name.endswith(".json.lock") and not found.st_mode & stat.S_ISVTX and look.at - found.st_mtime < 10
        for name, found in look.entries.items()
    )


def _once_each(found: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Each cycle once, whichever of its tasks it was found from, the lowest id first."""
    kept: dict[frozenset[str], tuple[str, ...]] = {}
    for cycle in found:
        ring = cycle[:-1]
        first = ring.index(min(ring, key=int))
        kept.setdefault(frozenset(ring), (*ring[first:], *ring[:first], ring[first]))
    return list(kept.values())


def _what(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return "a symbolic link"
    return "a folder" if stat.S_ISDIR(found.st_mode) else "a special file"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
