from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from support.killing import calls_of, killed_before, watched
from support.repo import SOURCE, python_files, shown

#: Of `os`, what changes nothing on disk, or does it by calls that are counted.
_HARMLESS = """
    fdopen fork fsdecode fsencode getcwd geteuid getpid getppid getpriority isatty killpg major makedirs minor
    register_at_fork sched_getaffinity sched_setaffinity strerror ttyname uname walk
"""


@pytest.mark.req("L-11")
def test_death_comes_right_before_the_call_with_that_number(tmp_path: Path) -> None:
    def write() -> None:
        fd = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"a")
        os.write(fd, b"b")
        os.close(fd)

    assert calls_of(lambda: write) == ["open", "write", "write", "close"]
    (tmp_path / "file").unlink()
    found = []
    for number in range(5):
        died = killed_before(number, lambda: write)
        assert died == (number < 4)
        found.append((tmp_path / "file").read_bytes() if (tmp_path / "file").exists() else None)
        (tmp_path / "file").unlink(missing_ok=True)
    assert found == [None, b"", b"a", b"ab", b"ab"]


@pytest.mark.req("L-11")
def test_every_system_call_of_lists_and_jobs_is_a_place_to_die() -> None:
    missing = {
        f"{shown(path)}: os.{name}"
        for folder in ("disk", "tasklist", "runtime")
        for path in python_files(SOURCE / "taskyard" / folder)
        for name in re.findall(r"\bos\.([a-z]\w*)\(", path.read_text(encoding="utf-8"))
        if name not in {*watched(), *_HARMLESS.split()}
    }
    assert missing == set()


def test_a_child_that_fails_is_no_child_that_was_killed() -> None:
    def fail() -> None:
        os.stat("/nowhere")

    with pytest.raises(AssertionError, match="it ended with 1"):
        killed_before(100, lambda: fail)
