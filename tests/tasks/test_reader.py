"""Reading task files: fresh, cached, torn, and not there."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from support.wait import until
from support.yards import write_task
from taskyard.tasks.list_folder import ListFolder
from taskyard.tasks.model import DamagedFile, Task
from taskyard.tasks.reader import TaskReader


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plan").mkdir()
    return tmp_path / "plan"


@pytest.fixture
def reader(tmp_path: Path, folder: Path) -> TaskReader:
    return TaskReader(ListFolder(str(tmp_path), "plan"))


def subject(found: Task | DamagedFile | None) -> str:
    assert isinstance(found, Task)
    return found.subject


@pytest.mark.req("L-02")
def test_a_second_change_within_one_tick_of_the_clock_is_not_missed(folder: Path, reader: TaskReader) -> None:
    for number in range(50):
        path = write_task(folder, "1", subject=f"{number:03}")
        if number < 25:
            os.utime(path, ns=(1_000, 1_000))  # a program that sets times itself
        assert subject(reader.get("1")) == f"{number:03}"


@pytest.mark.req("L-02")
def test_an_unchanged_file_is_read_once(folder: Path, reader: TaskReader) -> None:
    path = write_task(folder, "1")
    old = time.time_ns() - 5_000_000_000
    os.utime(path, ns=(old, old))
    until(
        lambda: reader.get("1") is reader.get("1"), what="the moment in which a clock tick could hide a change to pass"
    )


@pytest.mark.req("L-02")
@pytest.mark.serial
def test_a_file_seen_torn_is_looked_at_again_before_it_counts_as_damaged(folder: Path, reader: TaskReader) -> None:
    path = write_task(folder, "1", subject="whole")
    whole = path.read_bytes()
    path.write_bytes(whole[:20])
    timer = threading.Timer(0.005, path.write_bytes, [whole])
    timer.start()

    assert subject(reader.get("1")) == "whole"
    timer.join()


@pytest.mark.req("L-02", "L-11")
def test_a_file_that_stays_torn_is_damaged_and_says_why(folder: Path, reader: TaskReader) -> None:
    (folder / "1.json").write_text('{"id": "1", ')
    found = reader.get("1")

    assert isinstance(found, DamagedFile)
    assert (found.file, "not JSON" in found.why) == ("1.json", True)
    assert reader.get("2") is None


@pytest.mark.req("L-02")
def test_only_files_named_after_an_id_are_tasks(folder: Path, reader: TaskReader) -> None:
    for name in ("1", "20"):
        write_task(folder, name)
    for name in ("01.json", "0.json", "x.json", "².json", "1.json.lock", "tasks.json", ".json", "1000000000.json"):
        (folder / name).write_text("{}")
    (folder / "30.json").mkdir()
    os.mkfifo(folder / "31.json")
    found = reader.scan()

    assert sorted(found) == ["1", "20", "30", "31"]
    assert all(isinstance(found[task_id], DamagedFile) for task_id in ("30", "31"))
    assert set(reader.scan(["1.json", "77.json", "x"])) == {"1"}


@pytest.mark.req("L-02")
def test_the_name_of_the_file_decides_which_task_it_is(folder: Path, reader: TaskReader) -> None:
    write_task(folder, "5", id="9")
    found = reader.get("5")

    assert isinstance(found, Task)
    assert found.id == "5"


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert TaskReader(ListFolder(str(tmp_path), "nothing")).scan() == {}
