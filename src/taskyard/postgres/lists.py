"""Read-only access to all task lists in a database; `task_store` requeues tasks of dead holders."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from taskyard.core.system import boottime, now_ms
from taskyard.errors import Damaged, StoreAway
from taskyard.postgres.connection import database
from taskyard.postgres.deadline import max_wait
from taskyard.postgres.task_commit import TASK_COLUMNS, parse_row
from taskyard.tasks.lists import Outage, count_tasks
from taskyard.tasks.model import DamagedFile, Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from typing import LiteralString

    from taskyard.config import Settings
    from taskyard.postgres.connection import Database
    from taskyard.tasks.lists import ListCount, Lists
    from taskyard.tasks.model import Task

#: NOTIFY channel for new lists.
_LISTS_CHANNEL = "lists"

_SELECT_TASKS: LiteralString = (
    f"SELECT {TASK_COLUMNS} FROM task t JOIN list l ON l.id = t.list WHERE l.name = %s AND NOT t.is_gone ORDER BY t.id"  # noqa: S608  # our own columns
)


class PostgresLists:
    """All lists in one database."""

    folder = None  #: not in a folder

    def __init__(self, address: str, settings: Settings) -> None:
        """Create the object; no query yet."""
        self._database = database(address, patience=settings.database_patience)
        self._away: tuple[float, int] | None = None
        self._woken: dict[int, int] = {}

    @property
    def away(self) -> Outage | None:
        """Since when the database is unavailable; None if it is not."""
        since = self._database.away_since
        if since is None:
            return None
        if self._away is None or self._away[0] != since:
            self._away = since, now_ms() - round((boottime() - since) * 1000)
        return Outage(self._database.where, self._away[1], self._database.why)

    def names(self) -> list[str]:
        """Return the names of all lists."""
        return sorted(name for (name,) in self._database.ask("SELECT name FROM list"))

    def count(self, name: str) -> ListCount:
        """Return the task counts of one list."""
        found = self._database.ask("SELECT changed_at FROM list WHERE name = %s", [name])
        return count_tasks(name, self.look(name), found[0][0] if found else None)

    def look(self, name: str) -> Listing:
        """Return the tasks of one list."""
        tasks: list[Task] = []
        damaged: list[DamagedFile] = []
        for columns in self._database.ask(_SELECT_TASKS, [name]):
            try:
                _, found = parse_row(columns)
                tasks.append(found.task._replace(lease=found.lease))
            except Damaged as error:
                damaged.append(DamagedFile(str(columns[0]), error.why))
        return Listing(tasks, damaged)

    def wait(self, timeout: float) -> bool:
        """Sleep until lists may have been created."""
        thread = threading.get_ident()
        before = self._woken.get(thread, 0)
        now = self._woken[thread] = self._database.listener.subscription(_LISTS_CHANNEL).wait(before, timeout)
        return now > before

    def follow(self, *, debounce: float) -> ListChangeFeed:
        """Subscribe to every change."""
        return ListChangeFeed(self._database)

    def hurried(self) -> AbstractContextManager[object]:
        """Run statements within the block without retry."""
        return max_wait(0.0)

    def environ(self) -> Mapping[str, str]:
        """Return the environment for another program; not for a command line: it may contain a password."""
        return {"TASKYARD_STORE": self._database.address}


class ListChangeFeed:
    """Wakes on changes of every list and on new lists."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bell = threading.Event()
        self._heard: set[str] = set()
        self._subscriptions = ExitStack()
        self._hear(_LISTS_CHANNEL)

    def wait(self, timeout: float) -> None:
        """Sleep until something may have changed in any list, or a list is created."""
        try:
            for (number,) in self._database.ask("SELECT id FROM list", patience=0):
                self._hear(f"list_{number}")
        except StoreAway:
            pass  # every subscription wakes when the database is back
        self._bell.wait(timeout)
        self._bell.clear()

    def _hear(self, channel: str) -> None:
        if channel not in self._heard:
            self._heard.add(channel)
            self._subscriptions.enter_context(self._database.listener.subscription(channel).callback(self._bell.set))

    def close(self) -> None:
        """Cancel the subscriptions."""
        self._subscriptions.close()


if TYPE_CHECKING:
    _conforms: type[Lists] = PostgresLists
