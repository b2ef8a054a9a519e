"""One server and one tab for many tests, each with a list of its own there."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

import taskyard
from support.browser import Kept
from support.web import WebServer

HOMES = {"HOME": "", "TASKYARD_HOME": "taskyard", "CLAUDE_CONFIG_DIR": ".claude"}


class Desk:
    """Where tests look at the page, one after the other, for the length of a `with` block. The page may act."""

    def __init__(self, context: BrowserContext, folder: Path) -> None:
        self._folder = folder
        self._tests = 0
        with pytest.MonkeyPatch.context() as patched:
            self.settle(patched)
            self.server = WebServer("--allow-actions")
        self.tab = Kept(context, self.server)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    @property
    def list(self) -> str:
        """The list of the test that is here now; commands that name none mean it."""
        return f"plan-{self._tests}"

    def settle(self, patched: pytest.MonkeyPatch) -> None:
        """The next test: it has the home that is served, and a list without tasks."""
        self._tests += 1
        for name, below in HOMES.items():
            patched.setenv(name, str(self._folder / below))
        patched.setenv("TASKYARD_LIST", self.list)
        Path(self._folder, ".claude", "tasks", self.list).mkdir(parents=True)

    def see(self, view: str = "board") -> AbstractContextManager[Page]:
        """The page at a view of the list."""
        return self.tab.at(view, self.list)

    def leave(self) -> None:
        """The test is over: what it let run is stopped."""
        with taskyard.open(is_person=True) as yard:
            if running := [job.id for job in yard.jobs.list()]:
                yard.jobs.stop(*running)
