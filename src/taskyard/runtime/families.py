"""Which jobs belong together: those that were started inside another, and those that were started for a task."""

from __future__ import annotations

import json
import os
import time

from taskyard.disk import files
from taskyard.errors import BadValue, StorageError, TaskyardError
from taskyard.names import folder_name, is_id
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.ids import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.runtime.model import Job

#: The variable that names the task a process works on: `release/7`, a list and an id.
VARIABLE = "TASKYARD_TASK"

#: Among a job's facts, where a task is asked about: what of it was spent on that task.
PART = "part"

#: Jobs that one question looks at; beyond that nobody counts.
MOST = 10_000


def checked(task: str) -> str:
    """A task as jobs name it: the list's folder and the id.

    Raises:
        BadValue: it is none.
    """
    name, sign, task_id = task.rpartition("/")
    if not sign or not is_id(task_id) or not name or len(name) > 200 or folder_name("a list", name) != name:
        raise BadValue("The task", task[:300], "a list and an id, such as release/7")
    return task


def note_task(home: str, task: str, job_id: str) -> None:
    """Remember that a job is started for a task. Not being able to is no reason to start none."""
    try:
        folder = _folder(home, task)
        files.make_private_folder(folder)
        files.create(f"{folder}/{job_id}", b"")
    except (FileExistsError, StorageError):
        pass


def note_part(home: str, task: str, job_id: str, part: Mapping[str, object]) -> None:
    """Remember what of a job was spent on one task, where it works on several."""
    try:
        folder = _folder(home, checked(task))
        files.make_private_folder(folder)
        files.replace(f"{folder}/{job_id}", json.dumps(part).encode())
    except (BadValue, StorageError):
        pass


def part_of(home: str, task: str, job_id: str) -> dict[str, object] | None:
    """What of a job was spent on a task; None: all of it."""
    return read(f"{_folder(home, checked(task))}/{job_id}")


def of_task(home: str, task: str) -> list[Job]:
    """The jobs that were started for a task, and what those started; one that works on several has its `part`."""
    found = _looked_at(home, _listed(_folder(home, checked(task))))
    parts = {job.id: part_of(home, task, job.id) for job in found}
    return [job._replace(facts={**job.facts, PART: parts[job.id]}) if parts[job.id] else job for job in found]


def forget_old(home: str, *, age: float) -> None:
    """Forget which jobs were started for a task once all of them are gone, and none was noted for `age` seconds.

    Raises:
        StorageError: the disk refused.
    """
    before = time.time() - age
    for place in _folders(f"{home}/task-jobs"):
        for folder in _folders(place):
            names = _listed(folder)
            if _changed(folder) < before and not any(os.path.lexists(JobFolder(home, name).path) for name in names):
                for name in names:
                    files.remove(f"{folder}/{name}")
                _remove_if_empty(folder)
        _remove_if_empty(place)


def _folders(path: str) -> list[str]:
    """The folders in a folder; a planted link is none."""
    try:
        with os.scandir(path) as found:
            return sorted(entry.path for entry in found if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(path, error) from error


def _changed(folder: str) -> float:
    try:
        return os.lstat(folder).st_mtime
    except OSError as error:
        raise files.storage_error(folder, error) from error


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        pass  # another job was noted there this moment, or something foreign lies in it


def with_all_inside(home: str, jobs: Iterable[Job]) -> list[Job]:
    """These jobs, and all that were started inside them."""
    found = {job.id: job for job in jobs}
    waiting = list(found)
    while waiting and len(found) < MOST:
        inside = [name for name in _listed(JobFolder(home, waiting.pop()).children) if name not in found]
        for job in _looked_at(home, inside):
            found[job.id] = job
            waiting.append(job.id)
    return list(found.values())


def _looked_at(home: str, ids: Iterable[str]) -> list[Job]:
    from taskyard.runtime.looking import look

    found: list[Job] = []
    for job_id in ids:
        try:
            found.append(look(home, job_id))
        except TaskyardError:
            continue  # it never came to be, or cannot be read
    return found


def _listed(folder: str) -> list[str]:
    try:
        return sorted(filter(is_job_id, os.listdir(folder)))[:MOST]
    except OSError:
        return []  # there is none


def _folder(home: str, task: str) -> str:
    return f"{home}/task-jobs/{task}"
