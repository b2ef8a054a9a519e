"""Monitors for tests: a server that does as it is told, and what a receiver was told of a job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.model import Job
from taskyard.jobs.notice import Notice
from taskyard.jobs.notices import Outbox

_SERVER = Path(__file__).with_name("event_server.py")

#: A server imports much, on a machine that may be busy.
STARTUP = 40.0


class Told:
    """What the receiver of a home's notices was told so far, taken as it comes."""

    def __init__(self, jobs: Jobs) -> None:
        self._box = Outbox(jobs.home, "ada")
        self.all: list[Notice] = []

    def look(self) -> list[Notice]:
        taken = self._box.take()
        self._box.ack([notice.id for notice in taken])
        self.all += taken
        return self.all

    @property
    def events(self) -> list[str]:
        """The events, in order."""
        return [str(notice.news["event"]) for notice in self.look() if notice.status is None]

    @property
    def text(self) -> str:
        return "\n".join(self.events)

    def hears(self, text: str, timeout: float = STARTUP) -> None:
        until(lambda: text in self.text, timeout=timeout, what=f"{text!r} in {self.text!r}")


class Events:
    """An MCP server of one era, over stdio (started by whoever uses `argv`) or HTTP (started here)."""

    def __init__(self, folder: Path, era: str = "new", transport: str = "stdio") -> None:
        self.folder = folder
        self.era = era
        folder.mkdir(exist_ok=True)
        os.mkfifo(folder / "orders")
        self.argv = [sys.executable, str(_SERVER), str(folder), era, transport]
        self._orders = os.open(folder / "orders", os.O_RDWR)
        self.process = subprocess.Popen(self.argv) if transport == "http" else None

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._orders)
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    @property
    def url(self) -> str:
        port = self.folder / "port"
        until(port.exists, timeout=STARTUP)
        return f"http://127.0.0.1:{port.read_text(encoding='utf-8')}/mcp"

    def order(self, *lines: str) -> None:
        for line in lines:
            os.write(self._orders, f"{line}\n".encode())

    def is_asked(self, times: int = 1) -> None:
        """Wait until somebody listens: one stream, or one resource, as the era has it."""
        word, said = "listen" if self.era == "new" else "subscribe", self.folder / "said"
        until(lambda: said.exists() and said.read_text(encoding="utf-8").count(word) >= times, timeout=STARTUP)


def output_of(job: Job) -> str:
    return Path(job.output_file).read_text(encoding="utf-8", errors="replace")
