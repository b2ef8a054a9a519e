"""All lists in a database, by a plain look at its tables: what the dead hold is given back by those who work."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from taskyard.clock import elapsed, now_ms
from taskyard.database.pool import database
from taskyard.database.waiting import at_most
from taskyard.errors import Damaged, StoreAway
from taskyard.lists import Away, counted
from taskyard.tasklist.model import DamagedFile, Listing
from taskyard.tasklist.postgres.rows import COLUMNS, row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from typing import LiteralString

    from taskyard.config import Settings
    from taskyard.database.pool import Database
    from taskyard.lists import ListCount
    from taskyard.lists.protocol import Lists
    from taskyard.tasklist.model import Task

#: Where it is told that a list was made.
_MADE = "lists"

_TASKS: LiteralString = (
    f"SELECT {COLUMNS} FROM task t JOIN list l ON l.id = t.list WHERE l.name = %s AND NOT t.is_gone ORDER BY t.id"  # noqa: S608  # our own columns
)


class ListsInDatabase:
    """The lists in one database."""

    folder = None  #: they are in none

    def __init__(self, address: str, settings: Settings) -> None:
        """Nothing is asked yet."""
        self._database = database(address, patience=settings.database_patience)
        self._away: tuple[float, int] | None = None
        self._woken: dict[int, int] = {}

    @property
    def away(self) -> Away | None:
        """Since when it is out of reach."""
        since = self._database.away_since
        if since is None:
            return None
        if self._away is None or self._away[0] != since:
            self._away = since, now_ms() - round((elapsed() - since) * 1000)
        return Away(self._database.where, self._away[1], self._database.why)

    def names(self) -> list[str]:
        """The names of all lists."""
        return sorted(name for (name,) in self._database.ask("SELECT name FROM list"))

    def count(self, name: str) -> ListCount:
        """One list, counted."""
        found = self._database.ask("SELECT changed_at FROM list WHERE name = %s", [name])
        return counted(name, self.look(name), found[0][0] if found else None)

    def look(self, name: str) -> Listing:
        """The tasks of one list."""
        tasks: list[Task] = []
        damaged: list[DamagedFile] = []
        for columns in self._database.ask(_TASKS, [name]):
            try:
                _, found = row(columns)
                tasks.append(found.task._replace(lease=found.lease))
            except Damaged as error:
                damaged.append(DamagedFile(str(columns[0]), error.why))
        return Listing(tasks, damaged)

    def wait(self, timeout: float) -> bool:
        """Sleep until there may be other lists than before."""
        thread = threading.get_ident()
        before = self._woken.get(thread, 0)
        now = self._woken[thread] = self._database.ear.sound(_MADE).wait(before, timeout)
        return now > before

    def follow(self, *, debounce: float) -> Following:
        """Hear of every change."""
        return Following(self._database)

    def hurried(self) -> AbstractContextManager[object]:
        """Whatever is asked within the block is asked once."""
        return at_most(0.0)

    def environ(self) -> Mapping[str, str]:
        """What another program must know; not for a command line: it may hold a password."""
        return {"TASKYARD_STORE": self._database.address}


class Following:
    """Hears what the server tells of each list, and of new ones."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bell = threading.Event()
        self._heard: set[str] = set()
        self._sounds = ExitStack()
        self._hear(_MADE)

    def wait(self, timeout: float) -> None:
        """Sleep until something may have happened in any list, or a list is made."""
        try:
            for (number,) in self._database.ask("SELECT id FROM list", patience=0):
                self._hear(f"list_{number}")
        except StoreAway:
            pass  # all that is heard rings when it is back
        self._bell.wait(timeout)
        self._bell.clear()

    def _hear(self, channel: str) -> None:
        if channel not in self._heard:
            self._heard.add(channel)
            self._sounds.enter_context(self._database.ear.sound(channel).rings(self._bell.set))

    def close(self) -> None:
        """Hear no more."""
        self._sounds.close()


if TYPE_CHECKING:
    _conforms: type[Lists] = ListsInDatabase
