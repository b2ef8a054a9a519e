"""Machines that share a database: homes of their own, with real relays, which end with the test."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from support.cli import Ran, taskyard
from support.wait import until
from taskyard import yard
from taskyard.config import Settings
from taskyard.core.system import process_alive, process_start
from taskyard.jobs.events import Events
from taskyard.jobs.jobs import Jobs
from taskyard.postgres.connection import Database, database
from taskyard.postgres.relay.ensure_running import RUNNING_BYTE, STARTING_BYTE, lock_path
from taskyard.postgres.relay.jobs import ReplicatedJobs
from taskyard.postgres.relay.notices import ReplicatedOutbox
from taskyard.postgres.relay.records import Host, ensure_host
from taskyard.storage.locks import is_locked


class Machine:
    """One host: a home under a name of its own."""

    def __init__(self, home: Path, name: str, address: str, monkeypatch: pytest.MonkeyPatch, silence: float) -> None:
        self.home = str(home)
        self.name = name
        self.address = address
        self.settings = Settings(store=address, host=name, holder_silence=silence)
        self._monkeypatch = monkeypatch
        self._jobs: list[ReplicatedJobs] = []

    @property
    def host(self) -> Host:
        return ensure_host(self.home, self.settings)

    @property
    def database(self) -> Database:
        return database(self.address)

    def jobs(self, agent: str | None = None) -> ReplicatedJobs:
        self._enter()
        found = yard.open_jobs(self.home, self.settings, agent=agent)
        assert isinstance(found, ReplicatedJobs)
        self._jobs.append(found)
        return found

    def outbox(self, recipient: str | None = "me") -> ReplicatedOutbox:
        found = yard.open_outbox(self.home, self.settings, recipient)
        assert isinstance(found, ReplicatedOutbox)
        return found

    def events(self, since: int | None = None, *, follow: bool = False, job: str | None = None) -> Events:
        return yard.open_events(self.home, self.settings, since, follow=follow, job=job)

    def run(self, *words: str, stdin: bytes | None = None) -> Ran:
        """A command line on this machine."""
        self._enter()
        return taskyard(*words, stdin=stdin)

    def _enter(self) -> None:
        """Be on this machine: what is started from here on has its environment."""
        for name, value in {
            "TASKYARD_HOME": self.home,
            "TASKYARD_STORE": self.address,
            "TASKYARD_HOST": self.name,
            "TASKYARD_HOLDER_SILENCE": str(self.settings.holder_silence),
        }.items():
            self._monkeypatch.setenv(name, value)

    # -- its relay ---------------------------------------------------------------------------

    @property
    def has_relay(self) -> bool:
        return is_locked(lock_path(self.home), RUNNING_BYTE)

    def relay_pid(self) -> int:
        """The relay that works, or comes."""
        until(lambda: self._pid() is not None, what=f"the relay of {self.name}")
        pid = self._pid()
        assert pid is not None
        return pid

    def kill_relay(self, how: signal.Signals = signal.SIGKILL) -> bool:
        """Kill the relay if there is one, or one is on its way; it is gone when this returns."""
        until(lambda: not is_locked(lock_path(self.home), STARTING_BYTE), timeout=20)
        pid = self._pid()
        if pid is None:
            return False
        start = process_start(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, how)
        until(lambda: not process_alive(pid, start), timeout=20)
        until(lambda: not self.has_relay or self._pid() not in (None, pid), timeout=20)  # its threads end after it
        return True

    def _pid(self) -> int | None:
        """Who works, as the lock says; a dead one may have left its number there."""
        if not self.has_relay:
            return None
        try:
            pid = int(Path(lock_path(self.home)).read_text(encoding="ascii").split()[0])
            env = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            return None
        return pid if f"TASKYARD_HOME={self.home}".encode() in env else None

    def close(self) -> None:
        """End everything of it."""
        here = Jobs(self.home)
        here.stop(*[job.id for job in here.list()], grace=0.1)
        for jobs in (here, *self._jobs):
            jobs.close()
        self.kill_relay()


Machines = Callable[..., Machine]
