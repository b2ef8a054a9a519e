"""
The list as files: one JSON file per task, beside whoever else works in the folder.

Role
    The verbs of `TaskStore`, each handed to who does it: reading is `listing.py`, changing one task
    `changing.py`, dependencies and removal `edges.py`. How a write survives a crash is `writer.py`; how
    others' changes and dead writers' remains are brought in is `settle.py`.

    A mere look at a list must cost little: what only writers need is imported where it is used.
"""

from __future__ import annotations

from taskyard.errors import Conflict, Damaged, TaskNotFound
from taskyard.tasklist.list_files import ListFiles
from taskyard.tasklist.model import Act, Change, Draft, Facts, Lease, Links, Listing, Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from taskyard.tasklist.changing import Changing
    from taskyard.tasklist.graph import Edge
    from taskyard.tasklist.store import Rule


class FileStore:
    """One list in one folder."""

    def __init__(self, list_files: ListFiles) -> None:
        self._files = list_files
        self._leases = list_files.leases
        self._changing: Changing | None = None
        self._on_aside: Callable[[Task], None] | None = None

    @property
    def name(self) -> str:
        """The list's name."""
        return self._files.folder.name

    @property
    def _changes(self) -> Changing:
        """What changes single tasks, once somebody does."""
        if self._changing is None:
            from taskyard.tasklist.changing import Changing

            self._changing = Changing(self._files, self._told_aside)
        return self._changing

    # -- reading -----------------------------------------------------------------------------

    def get(self, task_id: str) -> Task:
        """One task, with its lease; a dead holder's is released first."""
        task = self._files.tasks.get(task_id) if self._files.folder.exists() else None
        if task is None:
            raise self._files.missing(task_id)
        if task_id in self._files.tasks.undone and self._files.writer_if_allowed() is not None:
            self._files.settler.look_around([task_id])
        if task.lease is not None and self._leases.is_dead(task.lease):
            self._changes.release_dead([task_id])
            return self._files.tasks.get(task_id) or task
        return task

    def list(self) -> Listing:
        """Everything on the list. What others did is logged, what the dead held is released."""
        if not self._files.folder.exists():
            return Listing()
        tasks = self._files.tasks
        listing, changed = tasks.listing(self._files.known)
        if changed and self._files.writer_if_allowed() is not None:
            self._files.settler.look_around(changed)
            if tasks.undone:
                listing, _ = tasks.listing(self._files.known)
        dead = self._leases.dead_ids()
        if dead and self._changes.release_dead(dead):
            listing, _ = tasks.listing(self._files.known)
        return listing

    def waiting_for(self, task_id: str) -> Sequence[str]:
        """Who waits for a task, by their own word."""
        return self._files.tasks.waiting_for(task_id)

    def is_finished(self) -> bool:
        """Whether nothing that people see is open."""
        return not self._files.tasks.any_open()

    def changes(self, since: int = 0, *, task_id: str | None = None) -> Iterator[Change]:
        """The event log from an id on, or one task's part of it, oldest first."""
        if not self._files.folder.exists():
            return iter(())
        from taskyard.tasklist import past

        return past.changes(self._files, since, task_id=task_id)

    def position(self) -> int:
        """The id the next change will have, or a smaller one."""
        if not self._files.folder.exists():
            return 0
        from taskyard.tasklist import past

        return past.position(self._files)

    def wait(self, timeout: float) -> bool:
        """Sleep until something may have changed, at most `timeout` seconds; whether something may have."""
        return self._files.tasks.wait(timeout, debounce=self._files.settings.debounce)

    # -- writing -----------------------------------------------------------------------------

    def reserve(self) -> str:
        """A fresh id; the mark is raised, so it never returns."""
        with self._files.hold(whole=True):
            return self._files.next_id()

    def create(self, draft: Draft, act: Act, *, task_id: str | None = None, lease: Lease | None = None) -> Task:
        """Put a new task on the list."""
        if "taskyard" in draft.metadata:
            from taskyard.tasklist.parents import parent_in

            if parent_in(draft.metadata) is not None:
                from taskyard.tasklist.edges import create_linked

                return self._files.persist(lambda: create_linked(self._files, draft, act, task_id, lease))
        return self._changes.create(draft, act, task_id, lease)

    def update(
        self,
        task_id: str,
        rule: Rule,
        act: Act,
        *,
        with_blockers: bool = False,
        whole_list: bool = False,
        links: Links | None = None,
    ) -> Task:
        """Let `rule` decide about one task under its lock, and save what it says."""
        return self._changes.update(task_id, rule, act, with_blockers=with_blockers, whole_list=whole_list, links=links)

    def listen(self, on_aside: Callable[[Task], None]) -> None:
        """Be told of tasks that are set aside; no lock is held then."""
        self._on_aside = on_aside

    def _told_aside(self, task: Task) -> None:
        if self._on_aside is not None:
            self._on_aside(task)

    def claim_next(self, order: Callable[[Sequence[Task]], Sequence[str]], rule: Rule, act: Act) -> Task | None:
        """The first task, in the order given, that `rule` accepts."""
        for task_id in order(self.list()):
            try:
                return self.update(task_id, rule, act, with_blockers=True)
            except (Conflict, TaskNotFound, Damaged):
                continue  # somebody was quicker, or it is not to be had
        return None

    # -- several tasks -----------------------------------------------------------------------

    def link(self, edges: Sequence[Edge], act: Act) -> None:
        """Make each (blocker, blocked) wait: all edges or none."""
        from taskyard.tasklist.edges import link

        self._files.persist(lambda: link(self._files, edges, act))

    def unlink(self, edges: Sequence[Edge], act: Act) -> tuple[Edge, ...]:
        """Take dependencies away; which were there."""
        from taskyard.tasklist.edges import unlink

        return self._files.persist(lambda: unlink(self._files, edges, act))

    def remove(
        self,
        task_ids: Sequence[str],
        act: Act,
        *,
        only_done: bool = False,
        check: Callable[[Facts], None] | None = None,
    ) -> tuple[Task, ...]:
        """Take tasks off the list, and out of everyone's dependencies."""
        from taskyard.tasklist.edges import remove

        return self._files.persist(lambda: remove(self._files, task_ids, act, only_done=only_done, check=check))

    def restore(self, task_id: str, act: Act) -> Task:
        """Bring a removed task back under its id."""
        from taskyard.tasklist.edges import restore

        return self._files.persist(lambda: restore(self._files, task_id, act))

    def last_id(self) -> int:
        """The highest id that was ever given out."""
        from taskyard.tasklist.adopting import last_id

        return last_id(self._files)

    def adopt(self, tasks: Sequence[Task], act: Act, *, last: int = 0) -> None:
        """Have an empty list hold `tasks` as they are."""
        from taskyard.tasklist.adopting import adopt

        self._files.persist(lambda: adopt(self._files, tasks, act, last))

    def signal(self) -> None:
        """Wake whoever waits in this process, at once."""
        self._files.tasks.signal()

    def close(self) -> None:
        """Let go of open files."""
        self._files.close()
