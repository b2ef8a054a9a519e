"""
A list's folder as Claude Code sees it: which files it would not see, and which promises between them are broken.

Its rules, as observed: a task file is one JSON object without a byte order mark; id, subject and description are
text, status one of three, blocks and blockedBy lists of text; owner and activeForm are text where present, metadata an
object. Whatever breaks one of them is invisible to it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping

_TASK = re.compile(r"[1-9]\d*\.json")
_LOCK = re.compile(r"[1-9]\d*\.json\.lock")
_STATUSES = ("pending", "in_progress", "completed")

#: What may stand in a list's folder besides tasks when nobody is at work.
_ALSO = {".lock", ".highwatermark", ".taskyard", "tasks.json"}


def raw_tasks(folder: str) -> dict[str, dict[str, object]]:
    """Every task file's object by id, straight from the disk; those that are none are left out."""
    found = {}
    for name in os.listdir(folder):
        if _TASK.fullmatch(name):
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    raw = json.loads(file.read().decode("utf-8"))
            except (ValueError, FileNotFoundError):
                continue
            if isinstance(raw, dict):
                found[name[:-5]] = raw
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def unseen(folder: str) -> list[str]:
    """The task files Claude Code would not see, each with the reason."""
    faults = []
    for name in sorted(os.listdir(folder)):
        if _TASK.fullmatch(name):
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            faults += [f"{name}: {why}" for why in _faults_of(name[:-5], data)]
    return faults


def _faults_of(task_id: str, data: bytes) -> Iterator[str]:
    try:
        raw = json.loads(data.decode("utf-8"))
    except ValueError as error:
        yield f"torn or no JSON ({error}): {data[:60]!r}"
        return
    if not isinstance(raw, dict):
        yield "no object"
        return
    if raw.get("id") != task_id:
        yield f"says it is {raw.get('id')!r}"
    yield from (f"{key} is no text" for key in ("id", "subject", "description") if not isinstance(raw.get(key), str))
    yield from (f"{key} is null" for key in raw if raw[key] is None)
    yield from (f"{key} is no text" for key in ("owner", "activeForm") if not isinstance(raw.get(key, ""), str))
    if raw.get("status") not in _STATUSES:
        yield f"its status is {raw.get('status')!r}"
    for key in ("blocks", "blockedBy"):
        ids = raw.get(key)
        if not isinstance(ids, list) or not all(isinstance(other, str) for other in ids):
            yield f"{key} is no list of text"
        elif len(ids) != len(set(ids)):
            yield f"{key} names one twice"
    if not isinstance(raw.get("metadata", {}), dict):
        yield "metadata is no object"


def strangers(folder: str) -> list[str]:
    """What stands in the folder and belongs to nobody: temporary files, forgotten locks of tasks that are there."""
    names = set(os.listdir(folder))
    locks = {name for name in names if _LOCK.fullmatch(name) and name.removesuffix(".lock") not in names}
    return sorted(name for name in names - locks - _ALSO if not _TASK.fullmatch(name))


def broken_edges(tasks: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Dependencies that only one side knows, or that name no task."""
    faults = []
    for here, there in (("blocks", "blockedBy"), ("blockedBy", "blocks")):
        for task_id, raw in tasks.items():
            for other in _ids(raw, here):
                if other not in tasks:
                    faults.append(f"#{task_id}.{here} names #{other}, which is not there")
                elif task_id not in _ids(tasks[other], there):
                    faults.append(f"#{task_id}.{here} has #{other}, but #{other}.{there} lacks #{task_id}")
    return faults


def circle(tasks: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A circle of tasks that wait for each other, by `blockedBy`; empty if there is none."""
    finished: set[str] = set()
    for start in tasks:
        trail: dict[str, Iterator[str]] = {start: iter(_ids(tasks[start], "blockedBy"))}
        while trail:
            here = next(reversed(trail))
            following = next((other for other in trail[here] if other in tasks and other not in finished), None)
            if following is None:
                finished.add(here)
                del trail[here]
            elif following in trail:
                return [*list(trail)[list(trail).index(following) :], following]
            else:
                trail[following] = iter(_ids(tasks[following], "blockedBy"))
    return []


def _ids(raw: Mapping[str, object], key: str) -> list[str]:
    found = raw.get(key)
    return [str(other) for other in found] if isinstance(found, list) else []
