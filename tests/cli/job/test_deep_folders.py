"""Folders nested deeper than any path can name, in a job's own folder: they are measured and removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, started
from taskyard import config

_DEPTH = 1_500


def _deep(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(_DEPTH):
        os.mkdir("deep-folder", dir_fd=here)
        below = os.open("deep-folder", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)


@pytest.mark.req("O-04")
def test_gc_removes_a_job_with_deeply_nested_folders_and_run_goes_on_meanwhile() -> None:
    job_id = started("--", "true")
    ended(job_id)
    folder = Path(config.home(), "jobs", job_id)
    _deep(folder)
    Path(config.home(), "jobs", ".gc-stamp").unlink()

    assert ended(started("--", "exit 0"))["cause"] == "exited"
    for notice in taskyard("notices", "take", "--json").data:
        taskyard("notices", "ack", notice["id"])
    removed = taskyard("gc", "--older-than", "0.001s", "--json")

    assert removed.code == 0, removed
    assert not folder.exists()
    assert [name for name in os.listdir(folder.parent) if name.startswith(".gone")] == []
