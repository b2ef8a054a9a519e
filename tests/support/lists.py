"""A list for a test with many processes: where it is, and in which company it is kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import taskyard

NAME = "chaos"

#: "alone": only Taskyard writes. "beside others": npm's locks are taken too. "network": only they count.
COMPANY = ("alone", "beside others", "network")


class SharedList:
    """One list that every process of a test opens for itself."""

    def __init__(self, tasks_dir: Path, company: str = "alone") -> None:
        self.tasks_dir = str(tasks_dir)
        self.folder = os.path.join(self.tasks_dir, NAME)
        self.is_network = company == "network"
        self._foreign = company == "beside others"

    def open(self, agent: str | None = None) -> taskyard.Yard:
        """The list, under a name of one's own."""
        return taskyard.open(tasks_dir=self.tasks_dir, list=NAME, agent=agent, foreign_writers=self._foreign)


def shared_list(tasks_dir: Path, company: str, monkeypatch: pytest.MonkeyPatch) -> SharedList:
    """A list in this company, for this process and those it forks."""
    if company == "network":
        monkeypatch.setenv("TASKYARD_NETWORK_FS", "1")
    return SharedList(tasks_dir, company)
