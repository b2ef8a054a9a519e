"""A job that was about to be made is there, or never will be: no third answer."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from taskyard.errors import StorageError
from taskyard.jobs import recovery
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell


def test_what_is_settled_to_be_never_made_cannot_be_made_any_more(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "home"))
    ids: list[str] = []

    def settle(job_id: str) -> None:
        ids.append(job_id)
        assert recovery.resolve_uncreated(jobs.home, job_id) is False

    with pytest.raises(StorageError):
        jobs.start(Shell("true"), before=settle)

    assert jobs.list(ended=True) == []
    assert not os.path.lexists(JobPaths(jobs.home, ids[0]).path)
    jobs.close()


def test_a_job_that_is_there_is_found_also_when_it_is_over(tmp_path: Path) -> None:
    jobs = Jobs(str(tmp_path / "home"))
    ended = jobs.run(Shell("true"), timeout=20)

    assert recovery.resolve_uncreated(jobs.home, ended.id) is True
    assert jobs.list() == []
    jobs.close()


def test_a_name_whose_keeper_died_over_it_is_settled_after_a_moment(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    os.makedirs(live_folder(home), mode=0o700)
    os.chmod(f"{home}/jobs", 0o700)
    Path(JobPaths(home, "b00000000").living).touch()

    assert recovery.resolve_uncreated(home, "b00000000") is False


def test_a_keeper_on_its_way_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = JobPaths(str(tmp_path / "home"), "b00000000")
    os.makedirs(live_folder(folder.home), mode=0o700)
    with open(folder.living, "w", encoding="utf-8") as living:
        fcntl.lockf(living, fcntl.LOCK_EX)
        monkeypatch.setattr("taskyard.jobs.recovery.time.sleep", lambda _: os.makedirs(folder.path))

        assert recovery.resolve_uncreated(folder.home, folder.id) is True
