"""A disk whose inodes are used up when a job ends: the end is what it was, and no cause is invented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.cli import taskyard
from support.disks import mounted
from support.job_cli import ended, is_running, started
from support.wait import until


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with mounted("size=8m,nr_inodes=120,mode=700") as found:
        monkeypatch.setenv("TASKYARD_HOME", str(found))
        yield found
        taskyard("stop", "--all", "--grace", "0")


def _use_up_inodes(disk: Path) -> None:
    folder = disk / "others"
    folder.mkdir()
    with suppress(OSError):
        for number in range(1_000):
            (folder / str(number)).touch()


@pytest.mark.req("B-08", "B-05")
@pytest.mark.parametrize("code", [0, 3])
def test_a_job_that_ends_without_an_inode_left_keeps_its_exit_code_and_is_told(disk: Path, code: int) -> None:
    job_id = started("--", f"while [ ! -e {disk}/go ]; do sleep 0.02; done; exit {code}")
    (disk / "go-soon").touch()
    until(lambda: is_running(job_id))
    _use_up_inodes(disk)
    with pytest.raises(OSError, match="No space"):
        (disk / "one-more").touch()

    (disk / "go-soon").rename(disk / "go")
    over = ended(job_id)

    assert (over["cause"], over["exit_code"], over["proof"], over["error"]) == ("exited", code, "proved", None)
    (told,) = taskyard("notices", "list", "--json").data
    assert (told["task_id"], told["exit_code"]) == (job_id, code)
