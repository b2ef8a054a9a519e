"""
In whose hands mail is, and who of them is dead by the kernel's word.

Of a reader on another machine only silence tells. Of one on this machine the kernel knows at once: the id of an unnamed
reader says which process it is, and a named instance has a lock in its home. Whoever is found dead is gone for all.
"""

from __future__ import annotations

import os
import uuid

from taskyard.disk.processes import process_alive, process_start, this_host
from taskyard.heart import heart
from taskyard.instances import instance_alive, lock_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.database.pool import Database
    from taskyard.instances import Instance

_UNNAMED = "reader"

_HERE = """
    SELECT DISTINCT m.holder FROM message m JOIN box b ON b.id = m.box JOIN instance i ON i.id = m.holder
    WHERE b.team = %s AND b.agent = %s AND m.state = 'delivered' AND m.until IS NULL AND i.host = %s
"""


class Readers:
    """The readers of one database, seen from one office."""

    def __init__(self, database: Database, home: str, instance: Instance | None, *, silence: float) -> None:
        """`instance` takes what this office takes; without one an unnamed reader of this process does."""
        self._database = database
        self._home = home
        self._instance = instance
        self._silence = silence
        self._id = uuid.uuid4().hex
        self._unnamed = (0, "")

    def me(self) -> str:
        """Under whom this process takes mail: believed to live from now on."""
        mine = self._instance
        holder = mine.id if mine is not None and mine.is_ours else self._reader
        heart(self._database).keep(holder, silence=self._silence)
        return holder

    def leave(self) -> None:
        """Let go of everything that was taken unnamed."""
        heart(self._database).let_go(self._reader)

    @property
    def _reader(self) -> str:
        """Whoever takes mail unnamed here: one for each office and process, so that a forked child is another."""
        if self._unnamed[0] != os.getpid():
            self._unnamed = (os.getpid(), f"{_UNNAMED}-{self._id}-{_pid_space()}-{os.getpid()}-{process_start()}")
        return self._unnamed[1]

    def settle(self, team: str, agent: str) -> bool:
        """See that the dead of this machine are gone from a box; whether others here have mail of it, and may die."""
        mine = {self._unnamed[1], self._instance.id if self._instance is not None else ""}
        rows = self._database.ask(_HERE, [team, agent, this_host()])
        others = [row[0] for row in rows if row[0] not in mine]
        dead = [holder for holder in others if _is_dead(self._home, holder)]
        if dead:
            self._database.ask("DELETE FROM instance WHERE id = ANY(%s)", [dead])
        return len(dead) < len(others)


def _is_dead(home: str, holder: str) -> bool:
    """Whether a holder on this machine is dead for certain."""
    if holder.startswith(f"{_UNNAMED}-"):
        _, _, space, pid, start = holder.split("-")
        return space == _pid_space() and not process_alive(int(pid), int(start))
    return os.path.lexists(lock_path(home, holder)) and instance_alive(home, holder) is False


def _pid_space() -> str:
    """Among which processes a pid counts."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""
