"""npm's lock folder: taken, respected, taken over, and never given back for somebody else."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path

import pytest

from support.wait import until
from taskyard.errors import Busy, StorageError
from taskyard.storage import locks
from taskyard.storage.locks import FolderLock


@pytest.fixture
def target(tmp_path: Path) -> str:
    return str(tmp_path / "1.json")


def take(target: str, *, timeout: float = 0.05, guarded: bool = True) -> FolderLock:
    return FolderLock(target, timeout=timeout, what="task #1", guarded=guarded)


def age(path: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


@pytest.mark.req("L-02", "L-04")
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_the_lock_is_a_sticky_folder_beside_its_target_and_gone_afterwards(target: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        with take(target) as lock:
            assert lock.path == target + ".lock"
            assert os.lstat(lock.path).st_mode & stat.S_ISVTX
            assert lock.is_ours()
    finally:
        os.umask(before)

    assert not os.path.exists(target + ".lock")


@pytest.mark.req("L-02", "L-04")
def test_another_programs_fresh_lock_is_respected_and_named(target: str) -> None:
    os.mkdir(target + ".lock")

    with pytest.raises(Busy, match=r"task #1 is locked by another program \(.*1.json.lock\)"):
        take(target)

    assert os.path.isdir(target + ".lock")


@pytest.mark.req("L-02")
@pytest.mark.parametrize("guarded", [True, False])
def test_another_programs_lock_is_taken_over_after_ten_seconds(target: str, guarded: bool) -> None:
    os.mkdir(target + ".lock")
    age(target + ".lock", 10.5)

    with take(target, guarded=guarded) as lock:
        assert os.lstat(lock.path).st_mode & stat.S_ISVTX


@pytest.mark.req("L-02")
def test_a_dead_taskyards_lock_is_taken_over_at_once_and_looks_fresh_to_npm(target: str) -> None:
    os.mkdir(target + ".lock", 0o1755)
    age(target + ".lock", 9)

    with take(target) as lock:
        assert time.time() - os.lstat(lock.path).st_mtime < 5


@pytest.mark.req("L-02")
def test_without_a_kernel_lock_every_fresh_folder_is_respected_alike(target: str) -> None:
    os.mkdir(target + ".lock", 0o1755)

    with pytest.raises(Busy):
        take(target, guarded=False)


@pytest.mark.req("L-02")
def test_whoever_waits_gets_it_soon_after_it_is_given_back(target: str) -> None:
    os.mkdir(target + ".lock")
    got: list[FolderLock] = []
    thread = threading.Thread(target=lambda: got.append(take(target, timeout=10)))
    thread.start()

    os.rmdir(target + ".lock")
    thread.join(10)

    assert got[0].is_ours()


@pytest.mark.req("L-02")
@pytest.mark.parametrize("guarded", [True, False])
def test_a_lock_taken_from_us_while_we_slept_is_noticed_and_not_given_back(
    target: str, guarded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = take(target, guarded=guarded)
    os.rmdir(lock.path)
    os.mkdir(lock.path)  # npm found it stale
    assert lock.is_ours()  # nobody can take it within the first seconds: not even looked at

    monkeypatch.setattr(locks, "RECHECK_AFTER", -1.0)
    assert not lock.is_ours()
    lock.release()

    assert os.path.isdir(lock.path)


@pytest.mark.req("L-02")
def test_a_lock_that_vanished_while_we_slept_is_noticed(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = take(target)
    monkeypatch.setattr(locks, "RECHECK_AFTER", -1.0)
    assert lock.is_ours()
    os.rmdir(lock.path)

    assert not lock.is_ours()
    lock.release()


def test_giving_back_what_is_gone_is_no_error(target: str) -> None:
    lock = take(target)
    os.rmdir(lock.path)

    lock.release()


def test_a_file_in_place_of_the_lock_and_a_missing_folder_are_errors(tmp_path: Path, target: str) -> None:
    Path(target + ".lock").touch()
    age(target + ".lock", 60)

    with pytest.raises(StorageError):
        take(target)
    with pytest.raises(StorageError):
        take(str(tmp_path / "no" / "1.json"))


@pytest.mark.req("L-04")
def test_threads_without_a_kernel_lock_take_turns(target: str) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(10):
            with take(target, timeout=20, guarded=False):
                inside.append(number)
                most.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    until(lambda: not any(thread.is_alive() for thread in threads))
    assert most == [1] * 30
