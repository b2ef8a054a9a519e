"""Reading a whole list: task files, the older `tasks.json`, leases, and what differs from what we knew."""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from itertools import islice

from taskyard.disk.follow import follow, signal
from taskyard.errors import Damaged
from taskyard.names import LARGEST_ID, is_id, nearest_ids
from taskyard.tasklist.consolidated import Consolidated, named_owner
from taskyard.tasklist.dependents import Dependents
from taskyard.tasklist.graph import by_id, mirrored, with_blocks
from taskyard.tasklist.leases import LeaseFiles
from taskyard.tasklist.ledger import Row
from taskyard.tasklist.model import DamagedFile, Lease, Listing, Task
from taskyard.tasklist.own_fields import OwnFields
from taskyard.tasklist.reader import TaskReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from taskyard.disk.watch import Followed
    from taskyard.tasklist.list_folder import ListFolder

    #: What the ledger says of some tasks, or of all; None where it cannot be told.
    Known = Callable[[Iterable[str] | None], Mapping[str, Row] | None]


class ListReader:
    """Everything on one list, as its files and lease records say."""

    def __init__(
        self,
        folder: ListFolder,
        *,
        alive: Callable[[Lease], bool | None],
        was_removed: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._folder = folder
        self._was_removed = was_removed
        self.reader = TaskReader(folder)
        self.leases = LeaseFiles(folder, alive=alive)
        self.undone: set[str] = set()  #: tasks shown with recorded fields, since another program's write undid them
        self._own_fields = OwnFields(folder)
        self.consolidated = Consolidated(folder.consolidated)
        self._items: dict[str, Task | DamagedFile] = {}
        self._dependents: Dependents | None = None
        self._plain: tuple[list[Task], list[DamagedFile]] | None = None
        self._whole: Listing | None = None
        self._feed: Followed | None = None
        self._wakes: dict[int, Followed] = {}
        self._looks = 0
        self._one_at_a_time = allocate_lock()

    def get(self, task_id: str) -> Task | None:
        """One task with its lease, and with the `blocks` that the others agree to.

        A waiting task that its blocker's file does not name is known once this process has looked at the
        whole list: nobody reads ten thousand files for one.

        Raises:
            Damaged: its file cannot be read.
        """
        item = self._item(task_id) or self._older().get(task_id)
        if item is None:
            return None
        if isinstance(item, DamagedFile):
            raise self._damaged(item)
        if item.blocks or self._looks:
            candidates = {*item.blocks, *self._seen_waiting(task_id)}
            item = with_blocks(item, sorted((o for o in candidates if self._agrees(o, task_id)), key=int))
        lease = self.leases.current(item) if item.owner is not None else None
        return item if lease is None else item._replace(lease=lease)

    def _seen_waiting(self, task_id: str) -> set[str]:
        """Who waits for a task by what this process knows; up to date where the kernel tells of every change."""
        with self._one_at_a_time:
            if self._feed is not None and self._feed.is_exact:
                self._look_again()
            return self._waiting(task_id) if self._looks else set()

    def waiting_for(self, task_id: str) -> list[str]:
        """Who waits for a task, by everyone's own word."""
        with self._one_at_a_time:
            self._look_again()
            return sorted(self._waiting(task_id), key=int)

    def _waiting(self, task_id: str) -> set[str]:
        if self._dependents is None:
            self._dependents = Dependents(self._items.values())
        known = (item for item in self._older().values() if isinstance(item, Task))
        older = {other.id for other in known if task_id in other.blocked_by}
        return {*self._dependents.of(task_id), *older.difference(self._items)}

    def older(self, task_id: str) -> Task | None:
        """A task that has no file of its own, as the older file has it.

        Raises:
            Damaged: it cannot be read there.
        """
        item = self._older().get(task_id)
        if isinstance(item, DamagedFile):
            raise self._damaged(item)
        return item

    def _damaged(self, item: DamagedFile) -> Damaged:
        return Damaged(f"{self._folder.path}/{item.file}", item.why)

    def _agrees(self, blocked: str, blocker: str) -> bool:
        other = self.look(blocked)
        return other is not None and blocker in other.blocked_by

    def look(self, task_id: str) -> Task | None:
        """Another task, for a rule; one that cannot be read counts as open."""
        item = self._item(task_id) or self._older().get(task_id)
        return Task(task_id, "") if isinstance(item, DamagedFile) else item

    def nearest(self, task_id: str, *, most: int = 3) -> tuple[str, ...]:
        """The readable tasks whose ids come closest to one that is not there; few files are read for it."""
        older = self._older()
        there = filter(is_id, {*older, *map(str, self._folder.ids_on_disk())} - {task_id})
        readable = (
            near
            for near in nearest_ids(task_id, there, most=LARGEST_ID)
            if isinstance(self.reader.get(near) or older.get(near), Task)
        )
        return tuple(islice(readable, most))

    def everything(self) -> list[Task]:
        """All readable tasks by id, straight from their files."""
        found = {**self._older(), **self.reader.scan()}
        found.update(self._corrected(self._own_fields.suspects(self.reader.unchecked())))
        return by_id(item for item in found.values() if isinstance(item, Task))

    def _item(self, task_id: str) -> Task | DamagedFile | None:
        """A task with its own fields as recorded, whatever another program's write made of them."""
        item = self.reader.get(task_id)
        if isinstance(item, Task) and (unchecked := self.reader.unchecked()):
            return self._corrected(self._own_fields.suspects(unchecked)).get(task_id, item)
        return item

    def _corrected(self, suspects: Iterable[str]) -> dict[str, Task]:
        """Those of the tasks whose own fields were undone, with the recorded ones."""
        found: dict[str, Task] = {}
        for task_id in suspects:
            correction = self._own_fields.corrected(task_id, self.reader)
            if correction is None:
                self.undone.discard(task_id)
                continue
            found[task_id] = correction[1]
            self.reader.correct(task_id, *correction)
            self.undone.add(task_id)
        return found

    def listing(self, known: Known) -> tuple[Listing, list[str]]:
        """The whole list, and the ids whose files are not as the ledger knows them."""
        with self._one_at_a_time:
            return self._listing(known)

    def _listing(self, known: Known) -> tuple[Listing, list[str]]:
        same = self._refresh()
        changed, suspects = self._changed(known)
        self.reader.unchecked()  # what `_changed` compared needs no second look
        if suspects:
            corrected = self._corrected(suspects)
            self._items.update(corrected)
            same = same and not corrected
        leases, same_leases = self.leases.everyone()
        if not same or self._plain is None:
            self._plain = self._assembled()
        if not (same and same_leases) or self._whole is None:
            tasks, damaged = self._plain
            self._whole = Listing(_with_leases(tasks, leases), damaged)
        return self._whole, changed

    def any_open(self) -> bool:
        """Whether a task that is no tracker, or a file that cannot be read, is left to be done."""
        with self._one_at_a_time:
            self._look_again()
            found = {**self._older(), **self._items} if self._older() else self._items
            return any(
                isinstance(item, DamagedFile) or not (item.is_done or item.is_internal) for item in found.values()
            )

    def _assembled(self) -> tuple[list[Task], list[DamagedFile]]:
        found: dict[str, Task | DamagedFile] = {**self._older(), **self._items}
        tasks = mirrored(by_id(item for item in found.values() if isinstance(item, Task)))
        damaged = [item for item in found.values() if isinstance(item, DamagedFile)]
        if (whole := self.consolidated.damage()) is not None:
            damaged.append(whole)
        return tasks, damaged

    def _look_again(self) -> None:
        """Bring `_items` up to date, and put away what was made of them if they changed."""
        if not self._refresh():
            self._whole = self._plain = None

    def _refresh(self) -> bool:
        """Bring `_items` up to date; whether nothing had changed.

        The first look of a process reads everything, the second also starts to follow the folder,
        and from then on only what the kernel reports is read again.
        """
        if self._feed is None and self._looks:
            self._feed = follow(self._folder.path)
        self._looks += 1
        names = self._feed.changed() if self._feed is not None else None
        if names is None:
            self._items, self._dependents = self.reader.scan(), None
            return False
        ids = {name[:-5] for name in names if name.endswith(".json") and is_id(name[:-5])}
        for task_id in ids:
            item = self.reader.get(task_id)
            if self._dependents is not None:
                self._dependents.replace(self._items.get(task_id), item)
            if item is None:
                self._items.pop(task_id, None)
            else:
                self._items[task_id] = item
        return not ids and "tasks.json" not in names

    def wait(self, timeout: float, *, debounce: float) -> bool:
        """Sleep until a file event or a signal of this process says that something may have changed."""
        wake = self._wakes.get(get_ident())
        if wake is None:  # each thread has its own, or one would sleep through what another was told
            self._wakes[get_ident()] = follow(self._folder.path)
            return True  # what happened before we followed, nobody will tell
        woken = wake.wait(timeout, debounce=debounce)
        wake.changed()
        return woken

    def signal(self) -> None:
        """Wake whoever waits for this list in this process."""
        signal(self._folder.path)

    def close(self) -> None:
        """Follow the folder no longer."""
        for feed in (self._feed, *self._wakes.values()):
            if feed is not None:
                feed.close()
        self._feed, self._wakes = None, {}
        self.leases.close()
        self._looks = 0

    def _changed(self, known: Known) -> tuple[list[str], list[str]]:
        """Files that another program made, changed or removed since any Taskyard process last looked.

        The second are those of them that the log knows: their own fields may have been undone.
        """
        fresh, gone = self.reader.news(self._items)
        if not fresh and not gone and gone is not None:
            return [], []
        rows = known(None if gone is None else {*fresh, *gone})
        if rows is None:
            return [], self._own_fields.suspects(fresh)
        changed = [task_id for task_id, found in fresh.items() if not rows.get(task_id, Row()).holds(*found)]
        suspects = [task_id for task_id in changed if rows.get(task_id, Row()).entry is not None]
        if gone is None:  # the first look of this process: what vanished before it, only the ledger tells
            # A row with an intent is a dead writer's, or one still at work: whoever looks closer finds out.
            missing = {task_id for task_id, row in rows.items() if row.is_present and task_id not in self._items}
            unfinished = {task_id for task_id, row in rows.items() if row.intent is not None}
            return [*changed, *sorted((missing | unfinished).difference(changed), key=int)], suspects
        return changed + [task_id for task_id in gone if rows.get(task_id, Row()).is_present], suspects

    def _older(self) -> Mapping[str, Task | DamagedFile]:
        """What only the consolidated file has, readable or not, owners by name."""
        broken, tasks = self.consolidated.broken(), self.consolidated.tasks()
        if not tasks and not broken:
            return broken
        there = {task_id: task for task_id, task in tasks.items() if not self._was_removed(task_id)}
        if any((task.owner or "").startswith("teammate-") for task in there.values()):
            items = self.reader.scan().values()
            trackers = by_id(item for item in items if isinstance(item, Task) and item.is_internal)
            there = {task_id: named_owner(task, trackers) for task_id, task in there.items()}
        return {**broken, **there}

    def highest_consolidated(self) -> int:
        """The highest id in the older file, which `create` must not give out again."""
        return self.consolidated.highest()


def _with_leases(tasks: list[Task], leases: Mapping[str, Lease]) -> list[Task]:
    """Tasks that are held, with the lease they are held under."""
    if not leases:
        return tasks
    return [
        task._replace(lease=lease)
        if (lease := leases.get(task.id)) is not None and lease.owner == task.owner and not task.is_done
        else task
        for task in tasks
    ]
