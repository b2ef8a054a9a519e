"""
A list's folder, open for work: what every operation on it shares.

Takes locks, reads tasks under them (settling and logging first what others left), and starts an
operation over when another program got in between. Opened for writing at the first write, and
again if somebody removed the folder meanwhile.
"""

from __future__ import annotations

import os

from taskyard.disk.mounts import is_network
from taskyard.errors import Busy, Damaged, StorageError, TaskNotFound
from taskyard.names import LARGEST_ID, nearest_ids
from taskyard.tasklist import history
from taskyard.tasklist.hold import Hold, LockLost
from taskyard.tasklist.listing import ListReader
from taskyard.tasklist.settle import Settler
from taskyard.tasklist.writer import Interfered, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from taskyard.config import Settings
    from taskyard.tasklist.list_folder import ListFolder
    from taskyard.tasklist.model import Task
    from taskyard.tasklist.reader import Seen

    T = TypeVar("T")

#: How often an operation starts over when others get in between; each time they made progress.
_TRIES = 50


class Unsettled(Exception):
    """A dead writer's intent is in the way: settle it, then start over."""


class ListFiles:
    """One list's files, leases, log and ledger."""

    def __init__(
        self,
        folder: ListFolder,
        settings: Settings,
        *,
        foreign: bool,
        alive: Callable[[str, str], bool | None],
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.tasks = ListReader(folder, alive=alive)
        self.leases = self.tasks.leases
        self._foreign = foreign
        self._network = False
        self._opened: tuple[int, Writer, Settler] | None = None

    @property
    def writer(self) -> Writer:
        """What writes; opening it makes the folder, and settles what dead writers left."""
        return self._open()[1]

    @property
    def settler(self) -> Settler:
        """What brings log and files together."""
        return self._open()[2]

    def writer_if_allowed(self) -> Writer | None:
        """The writer, or None where we may only read."""
        try:
            return self.writer
        except (StorageError, Busy):
            return None

    def _open(self) -> tuple[int, Writer, Settler]:
        if self._opened is None:
            self.folder.make()
            self._network = is_network(self.folder.path)
            sync = self.settings.durability == "power"
            writer = Writer(self.folder, self.tasks.reader, self.leases, timeout=self.settings.lock_timeout, sync=sync)
            settler = Settler(writer, self.tasks.reader, self.leases, self.hold)
            self._opened = (_identity(self.folder.ours), writer, settler)
            for task_id in settler.unsettled():
                settler.settle_if_free(task_id)
        return self._opened

    def close(self) -> None:
        """Let go of open files."""
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None
        self.tasks.close()

    def hold(
        self,
        ids: Iterable[str] = (),
        *,
        reading: Iterable[str] = (),
        whole: bool = False,
        everything: bool = False,
        timeout: float | None = None,
    ) -> Hold:
        """Take locks (see `Hold`), in the folder as it is now; `timeout`: other than the setting's."""
        if self._open()[0] != _identity(self.folder.ours):
            self.close()
            self._open()
        return Hold(
            self.folder,
            ids,
            reading=reading,
            whole=whole,
            everything=everything,
            foreign=self._foreign,
            network=self._network,
            timeout=self.settings.lock_timeout if timeout is None else timeout,
        )

    def seen(self, hold: Hold, task_id: str) -> tuple[Task, Seen | None]:
        """A task we hold, as it is now; what another program did to it is logged first.

        The second is its file; None if only the older `tasks.json` has it.

        Raises:
            TaskNotFound: there is none.
            Damaged: its file cannot be read.
        """
        if self.writer.ledger.row(task_id).intent is not None:
            raise Unsettled(task_id)
        found = self.tasks.reader.read(task_id)
        self.settler.note_external(hold, task_id, found)
        if found is not None and found.damage is not None:
            raise Damaged(self.folder.task(task_id), found.damage)
        if found is not None and found.task is not None:
            return found.task, found
        if found is None and (older := self.tasks.look(task_id)) is not None:
            return older, None
        raise self.missing(task_id)

    def missing(self, task_id: str) -> TaskNotFound:
        """The error for a task that is not there: with near ids, or that it can be brought back."""
        if not self.folder.exists():
            return TaskNotFound(task_id, list_name=self.folder.name)
        writer = self.writer_if_allowed()
        gone = writer is not None and history.last_seen(writer.journal, writer.ledger, task_id) is not None
        near = nearest_ids(task_id, map(str, self.folder.ids_on_disk()))
        return TaskNotFound(task_id, list_name=self.folder.name, nearest=near, restorable=gone)

    def persist(self, attempt: Callable[[], T]) -> T:
        """Do `attempt`, and again from the start when something got in between."""
        for _ in range(_TRIES):
            try:
                return attempt()
            except (Unsettled, Interfered) as found:
                self.settler.settle(str(found.args[0]))
            except LockLost:
                pass  # we slept past our lock: everything is read anew
        raise Busy(f"list {self.folder.name!r}", "another program that keeps writing", self.settings.lock_timeout)

    def next_id(self) -> str:
        """The id after the highest one ever given out; no scan where nobody else gives out ids.

        The caller holds the list.
        """
        last = max(self.folder.read_mark(), self.writer.ledger.highest(), self.tasks.highest_consolidated())
        if os.path.lexists(self.folder.task(str(last + 1))):
            last = max(last, *self.folder.ids_on_disk())
        if last >= LARGEST_ID:
            raise Damaged(self.folder.mark, f"ids end at {LARGEST_ID}")
        self.folder.write_mark(last + 1)
        return str(last + 1)


def _identity(path: str) -> int:
    """What tells a folder from another one made later in its place; 0 if there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0
