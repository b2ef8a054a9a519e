"""A whole list taken over into files: under its ids, with its times, in one change that is made whole or not at all."""

from __future__ import annotations

from taskyard.clock import now_ms
from taskyard.disk import files as disk
from taskyard.errors import ListNotEmpty, TaskNotFound
from taskyard.tasklist.mark import number_in
from taskyard.tasklist.writer import Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.list_files import ListFiles
    from taskyard.tasklist.model import Act, Task
    from taskyard.tasklist.reader import Seen


def adopt(files: ListFiles, tasks: Sequence[Task], act: Act, last: int) -> None:
    """Put tasks on an empty list as they are; no id up to `last`, nor one of theirs, is given out again.

    Raises:
        ListNotEmpty: it has tasks.
        Damaged: a file of one of those ids is there, and cannot be read.
    """
    with files.hold(whole=True) as hold:
        if there := files.tasks.everything():
            raise ListNotEmpty(files.folder.name, len(there))
        now = now_ms()
        timed = [
            task._replace(created_at=task.created_at or now, updated_at=task.updated_at or now, lease=None)
            for task in tasks
        ]
        writes = [Write(task.id, _place_for(files, task.id, hold), task) for task in timed]
        files.keep_above(max(last, *(int(task.id) for task in tasks), 0))
        if writes:
            files.writer.commit(hold, act, writes)


def _place_for(files: ListFiles, task_id: str, hold: Hold) -> Seen | None:
    """What stands where a task shall be put: nothing, or a file that says it was deleted."""
    try:
        files.seen(task_id, hold)
    except TaskNotFound:
        return files.tasks.reader.read(task_id)
    raise ListNotEmpty(files.folder.name, 1)  # since we looked, by another program


def last_id(files: ListFiles) -> int:
    """The highest id that was ever given out, as far as the files tell; a mere look."""
    if not files.folder.exists():
        return 0
    known = files.known() or {}
    mark = number_in((disk.read(files.folder.mark) or b"")[:64])
    return max(mark, *files.folder.ids_on_disk(), *map(int, known), 0)
