"""Locks of the dead, marks that lie, strange names, and what the living do meanwhile."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.sick_list import SickList
from taskyard.storage.locks import RangeLock
from taskyard.tasks.doctor import snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_AGO = 1_000_000_000


@pytest.mark.req("L-04")
@pytest.mark.parametrize("name", ["1.json.lock", ".lock.lock"])
def test_a_lock_that_a_dead_taskyard_left_is_freed_at_once(sick: SickList, name: str) -> None:
    sick.tasks(1)
    (sick.folder / name).mkdir()
    (sick.folder / name).chmod(0o1755)

    assert sick.names() == ["stale-lock"]
    assert [repair.done for repair in sick.fixed()] == ["freed it"]
    assert sick.found() == []


@pytest.mark.req("L-04")
def test_a_lock_of_another_program_is_left_alone_until_it_is_ten_seconds_old(sick: SickList) -> None:
    sick.tasks(1)
    lock = sick.folder / "1.json.lock"
    lock.mkdir(mode=0o755)
    assert sick.names() == []
    assert sick.fixed() == []

    os.utime(lock, (LONG_AGO, LONG_AGO))

    assert sick.names() == ["stale-lock"]
    sick.fixed()
    assert not lock.exists()


@pytest.mark.req("L-04")
def test_where_other_programs_write_a_stale_lock_is_freed_too(tmp_path: Path) -> None:
    sick = SickList(tmp_path, foreign=True)
    with sick.yard, sick.doctor:
        sick.tasks(1)
        lock = sick.folder / "1.json.lock"
        lock.mkdir()
        os.utime(lock, (LONG_AGO, LONG_AGO))

        sick.fixed()

        assert not lock.exists()
        assert sick.found() == []


@pytest.mark.req("L-04")
def test_what_makes_a_lock_impossible_is_moved_aside_when_asked(sick: SickList) -> None:
    sick.tasks(1)
    (sick.folder / "1.json.lock").touch()
    (sick.folder / ".lock.lock" / "inside").mkdir(parents=True)
    (sick.folder / ".lock").unlink()
    (sick.folder / ".lock").mkdir()

    assert sick.names() == ["foreign-lock"] * 3
    assert sick.fixed() == []
    sick.fixed("foreign-lock")

    assert sick.found() == []
    assert (sick.folder / ".lock").is_file()


@pytest.mark.req("L-04")
def test_a_living_process_that_does_not_let_go_is_named(sick: SickList, monkeypatch: pytest.MonkeyPatch) -> None:
    sick.tasks(1)
    monkeypatch.setattr(snapshot, "LOCK_TIMEOUT", 0.05)
    (sick.folder / "1.json.lock").mkdir(mode=0o1755)
    with RangeLock(str(sick.ours / "lock")) as lock:
        lock.take(1, timeout=1, what="task 1")

        [finding] = sick.found()  # and nothing is said about what it may be in the middle of

    assert finding.name == "lock-held"
    assert f"process {os.getpid()}" in finding.why


@pytest.fixture
def marked(sick: SickList) -> Iterator[SickList]:
    sick.tasks(3)
    for task_id in ("2", "3"):
        sick.yard.tasks.delete(task_id)
    yield sick


@pytest.mark.req("L-03")
@pytest.mark.parametrize(
    ("text", "name"), [("garbage", "bad-mark"), ("", "bad-mark"), ("-4", "bad-mark"), ("1", "low-mark")]
)
def test_a_mark_that_would_give_ids_again_is_put_right(marked: SickList, text: str, name: str) -> None:
    mark = marked.folder / ".highwatermark"
    mark.write_text(text, encoding="ascii")

    assert marked.names() == [name]
    [repair] = marked.fixed()

    assert mark.read_text("ascii") == "3"
    assert Path(repair.kept or "").read_text("ascii") == text
    assert stat.S_IMODE(mark.stat().st_mode) == 0o644
    assert marked.found() == []


@pytest.mark.req("L-03")
def test_a_missing_mark_below_an_id_that_was_given_out_is_put_right(marked: SickList) -> None:
    (marked.folder / ".highwatermark").unlink()

    assert marked.names() == ["low-mark"]
    marked.fixed()
    assert (marked.folder / ".highwatermark").read_text("ascii") == "3"


@pytest.mark.req("L-03")
def test_a_mark_below_the_highest_file_is_as_claude_code_leaves_it_and_fine(sick: SickList) -> None:
    sick.tasks(3)
    (sick.folder / ".highwatermark").write_text("1", encoding="ascii")
    assert sick.found() == []


@pytest.mark.req("L-03")
@pytest.mark.parametrize("text", ["1000000000", "9" * 400])
def test_a_mark_above_every_id_is_lowered_only_when_asked(marked: SickList, text: str) -> None:
    mark = marked.folder / ".highwatermark"
    mark.write_text(text, encoding="ascii")

    assert marked.names() == ["impossible-mark"]
    assert marked.fixed() == []
    marked.fixed("impossible-mark")

    assert mark.read_text("ascii") == "3"
    assert marked.yard.tasks.create("Next").id == "4"


@pytest.mark.req("L-03")
def test_a_mark_that_is_a_link_is_moved_aside_and_its_target_left_alone(marked: SickList, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("77", encoding="ascii")
    mark = marked.folder / ".highwatermark"
    mark.unlink()
    mark.symlink_to(tmp_path / "target")

    assert marked.names() == ["impossible-mark"]
    marked.fixed("impossible-mark")

    assert mark.read_text("ascii") == "3"
    assert not mark.is_symlink()
    assert (tmp_path / "target").read_text("ascii") == "77"


@pytest.mark.req("L-02")
def test_names_that_no_task_can_have_are_moved_aside_when_asked_and_other_files_are_left(sick: SickList) -> None:
    sick.tasks(1)
    for name in ("007.json", "12345678901.json", "0.json", "notes.txt", "plan.json"):
        (sick.folder / name).write_text("{}", encoding="ascii")

    assert sick.names() == ["foreign-file"] * 3 + ["other-file"] * 2
    assert sick.fixed() == []
    sick.fixed("foreign-file")

    assert sick.names() == ["other-file"] * 2
    assert (sick.folder / "notes.txt").exists()


@pytest.mark.req("L-13")
def test_a_damaged_older_list_is_named_and_never_written(sick: SickList) -> None:
    sick.tasks(1)
    (sick.folder / "tasks.json").write_bytes(b'{"tasks": [')

    assert sick.names() == ["damaged-older-list"]
    assert sick.fixed() == []
    assert (sick.folder / "tasks.json").read_bytes() == b'{"tasks": ['


@pytest.mark.req("L-13")
def test_dependencies_of_an_older_list_are_no_half_edges(sick: SickList) -> None:
    sick.tasks(1)
    rows = '{"tasks": [{"id": 7, "title": "A", "dependencies": [8]}, {"id": 8, "title": "B"}]}'
    (sick.folder / "tasks.json").write_text(rows, encoding="ascii")
    assert sick.names() == ["low-mark"]  # another program does not know of 8, and might give it again
    sick.fixed()
    assert sick.found() == []


def test_a_list_on_another_machines_disk_is_a_note(sick: SickList, monkeypatch: pytest.MonkeyPatch) -> None:
    sick.tasks(1)
    monkeypatch.setenv("TASKYARD_NETWORK_FS", "1")

    [finding] = sick.found()
    assert (finding.name, finding.kind.is_note) == ("network-fs", True)


def test_a_list_that_is_a_link_is_named(sick: SickList, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    sick.folder.parent.mkdir()
    sick.folder.symlink_to(tmp_path / "elsewhere")

    assert sick.names() == ["not-a-list"]
    assert sick.fixed() == []


@pytest.mark.req("L-04")
def test_looking_waits_for_whoever_writes_and_is_over_before_anyone_minds(sick: SickList) -> None:
    sick.tasks(20)
    began = time.monotonic()
    assert sick.found() == []
    assert time.monotonic() - began < 5
    assert sick.yard.tasks.create("Another").id == "21"
