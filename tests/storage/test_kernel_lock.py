"""Locks the kernel keeps: exclusive, per byte, freed at death, named when in the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from support.wait import until
from taskyard.errors import Busy, StorageError
from taskyard.storage import locks
from taskyard.storage.locks import RangeLock, describe_holder, is_locked

HOLD = """
import sys
from taskyard.storage.locks import RangeLock
lock = RangeLock(sys.argv[1])
lock.take(int(sys.argv[2]), timeout=5, what="it")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


def holder(path: str, byte: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, path, str(byte)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=10)


@pytest.mark.req("L-04")
def test_two_holders_exclude_each_other_on_a_byte_and_never_on_two(path: str) -> None:
    with RangeLock(path) as one, RangeLock(path) as two:
        one.take(5, timeout=1, what="it")

        assert two.try_take(6)
        assert not two.try_take(5)
        with pytest.raises(Busy) as caught:
            two.take(5, timeout=0.02, what="task #5")

    assert caught.value.what == "task #5"
    assert str(os.getpid()) in caught.value.holder
    assert caught.value.exit_code == 75


@pytest.mark.req("L-04")
def test_readers_share_and_a_writer_waits_for_them(path: str) -> None:
    with RangeLock(path) as one, RangeLock(path) as two, RangeLock(path) as three:
        one.take(1, timeout=1, what="it", shared=True)
        two.take(1, timeout=1, what="it", shared=True)

        assert not three.try_take(1)


@pytest.mark.req("L-04")
def test_whoever_waits_gets_it_the_moment_it_is_free(path: str) -> None:
    got: list[float] = []
    one = RangeLock(path)
    one.take(1, timeout=1, what="it")

    def wait() -> None:
        with RangeLock(path) as two:
            two.take(1, timeout=10, what="it")
            got.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: any(t.name == "taskyard-lock" for t in threading.enumerate()))
    one.close()
    released = time.monotonic()
    thread.join(10)

    assert got[0] - released < 1


@pytest.mark.req("L-04")
def test_a_wait_that_was_given_up_takes_nothing_later(path: str) -> None:
    one = RangeLock(path)
    one.take(1, timeout=1, what="it")
    two = RangeLock(path)
    with pytest.raises(Busy):
        two.take(1, timeout=0.02, what="it")

    one.close()

    until(lambda: not any(t.name == "taskyard-lock" for t in threading.enumerate()))
    assert not is_locked(path, 1)
    two.close()


@pytest.mark.req("L-09")
def test_the_kernel_frees_what_a_killed_process_held(path: str) -> None:
    process = holder(path, 7)
    assert is_locked(path, 7)
    assert f"process {process.pid} (" in describe_holder(path, 7)

    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)

    assert not is_locked(path, 7)
    with RangeLock(path) as lock:
        assert lock.try_take(7)


@pytest.mark.req("L-09")
def test_one_who_came_back_in_another_file_of_the_same_name_is_seen(path: str) -> None:
    with RangeLock(path) as first:
        first.take(0, timeout=1, what="it")
        assert is_locked(path)
    os.unlink(path)
    assert not is_locked(path)

    with RangeLock(path) as second:
        second.take(0, timeout=1, what="it")
        assert is_locked(path)


def test_asking_about_many_living_holders_keeps_few_files_open(tmp_path: Path) -> None:
    holders = [RangeLock(str(tmp_path / str(number))) for number in range(100)]
    try:
        for holder_ in holders:
            holder_.take(0, timeout=1, what="it")
        before = len(os.listdir("/proc/self/fd"))

        assert all(is_locked(holder_.path) for holder_ in holders * 2)

        assert len(os.listdir("/proc/self/fd")) - before <= 64
    finally:
        for holder_ in holders:
            holder_.close()


@pytest.mark.req("L-09")
def test_a_forked_child_neither_holds_nor_keeps_the_lock_of_its_parent(path: str) -> None:
    lock = RangeLock(path)
    lock.take(1, timeout=1, what="it")
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        assert is_locked(path, 1)
        os.close(lock.fd)  # as our death would: without a word to the kernel about the lock
        until(lambda: not is_locked(path, 1), what="the child to have let go of its copy")
    finally:
        locks._locked_fds.discard(lock.fd)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.req("L-09")
def test_a_child_forked_while_a_thread_waits_does_not_inherit_the_wait(path: str) -> None:
    process = holder(path, 1)
    try:
        two = RangeLock(path)
        waiting = threading.Thread(target=lambda: two.take(1, timeout=10, what="it"))
        waiting.start()
        until(lambda: any(t.name == "taskyard-lock" for t in threading.enumerate()))
        inode = os.stat(path).st_ino
        child = os.fork()
        if child == 0:
            left = [n for n in os.listdir("/proc/self/fd") if _inode(int(n)) == inode]
            os._exit(len(left))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        end(process)
    waiting.join(10)
    two.close()


def _inode(fd: int) -> int:
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return 0


def test_a_lock_file_that_is_a_link_or_out_of_reach_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "real")

    with pytest.raises(StorageError):
        RangeLock(str(tmp_path / "link"))
    with pytest.raises(StorageError):
        is_locked(str(tmp_path / "link"))
    with pytest.raises(StorageError):
        RangeLock(str(tmp_path / "no" / "lock"))


def test_asking_about_what_is_no_lock_never_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    assert not is_locked(str(tmp_path / "nothing"))
    assert not is_locked(str(tmp_path / "fifo"))


def test_a_holder_nobody_can_name_is_still_answered_for(path: str, tmp_path: Path) -> None:
    with RangeLock(path):
        assert describe_holder(path, 3) == "a process that cannot be seen from here"
    assert describe_holder(str(tmp_path / "nothing"), 3) == "another process"


def test_lock_files_are_private(path: str) -> None:
    with RangeLock(path):
        assert os.stat(path).st_mode & 0o777 == 0o600
