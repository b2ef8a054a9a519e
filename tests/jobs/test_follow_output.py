"""An output as it grows: by the kernel's word, to its last byte, whoever runs the job."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from support.job_outputs import made_by_hand, running_job, start_job, wait_for_end
from support.scale import scale
from support.wait import until
from taskyard.jobs.job_dir import supervisor_pid
from taskyard.jobs.output import CHUNK, Output, OutputChunk, follow_output
from taskyard.storage.locks import RangeLock

pytestmark = pytest.mark.req("O-05")


def test_a_job_that_is_already_over_is_told_at_once(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "echo one; echo two")
    wait_for_end(folder)

    assert list(follow_output(Output(folder), timeout=20)) == [OutputChunk(b"one\ntwo\n", 0, 8)]
    assert list(follow_output(Output(folder), 8, timeout=20)) == []


def test_the_last_bytes_before_the_end_are_never_missed(tmp_path: Path) -> None:
    for number in range(scale(200)):
        folder = start_job(tmp_path, f"echo begin; printf 'the very last {number}'")

        text = b"".join(part.text for part in follow_output(Output(folder), timeout=20))

        assert text == b"begin\nthe very last %d" % number


def test_everything_of_a_fast_writer_arrives_or_is_counted_as_omitted(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "seq -f %09g 1 500000", cap=400_000)

    offset, seen = 0, 0
    for part in follow_output(Output(folder), timeout=50):
        assert part.offset == offset + part.omitted
        first = part.offset // 10 + 1
        if part.offset % 10 == 0 and len(part.text) >= 10:
            assert part.text[:10] == b"%09d\n" % first
        offset, seen = part.next_offset, seen + part.omitted + len(part.text)

    assert offset == seen == 5_000_000


def test_growth_is_told_while_the_job_runs_and_the_end_ends_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    folder = start_job(tmp_path, f"echo before; read -r _ < {gate}; echo after")
    parts = follow_output(Output(folder), timeout=20)

    first = next(parts)
    gate.write_text("\n", encoding="utf-8")
    rest = list(parts)

    assert first.text == b"before\n"
    assert b"".join(part.text for part in rest) == b"after\n"


def test_a_truncated_output_is_followed_from_its_new_beginning(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    folder = start_job(tmp_path, f"echo a long beginning; read -r _ < {gate}; : > /dev/stdout; sleep 0.2; echo new")
    parts = follow_output(Output(folder), timeout=20)
    next(parts)
    gate.write_text("\n", encoding="utf-8")

    rest = list(parts)

    assert rest[0].restarted and b"".join(part.text for part in rest) == b"new\n"


def test_a_quiet_job_is_followed_no_longer_than_the_time_limit(tmp_path: Path) -> None:
    with running_job(tmp_path, "echo here; sleep 60") as folder:
        began = time.monotonic()
        texts = [part.text for part in follow_output(Output(folder), timeout=0.5)]

        assert b"".join(texts) == b"here\n"
        assert 0.4 < time.monotonic() - began < 5


def test_one_that_never_stops_printing_is_followed_no_longer_than_the_time_limit(tmp_path: Path) -> None:
    with running_job(tmp_path, "yes", cap=1_000_000) as folder:
        began = time.monotonic()
        for _ in follow_output(Output(folder), timeout=0.5, most=100):
            pass

        assert time.monotonic() - began < 5


def test_a_job_whose_keeper_is_killed_is_followed_no_longer(tmp_path: Path) -> None:
    with running_job(tmp_path, "echo here; exec sleep 5") as folder:
        parts = follow_output(Output(folder), timeout=30)
        assert next(parts).text == b"here\n"
        keeper = supervisor_pid(folder)
        assert keeper
        threading.Timer(0.2, os.kill, (keeper, signal.SIGKILL)).start()
        began = time.monotonic()

        assert list(parts) == []
        assert time.monotonic() - began < 4


def test_a_job_that_nobody_keeps_is_told_and_left(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path)
    Path(folder.output).write_bytes(b"left behind")

    assert [part.text for part in follow_output(Output(folder), timeout=30)] == [b"left behind"]


class _Counting(Output):
    reads = 0

    def read(self, offset: int, most: int = CHUNK) -> OutputChunk:
        self.reads += 1
        return super().read(offset, most)


def test_following_sleeps_while_nothing_is_printed(tmp_path: Path) -> None:
    with running_job(tmp_path, "echo here; sleep 60") as folder:
        output = _Counting(folder)
        until(lambda: output.end() > 0)

        def ask() -> None:
            for _ in range(20):
                assert supervisor_pid(folder)
                time.sleep(0.03)

        asking = threading.Thread(target=ask)
        asking.start()
        list(follow_output(output, timeout=1.0))
        asking.join()

        assert output.reads <= 4


class _Racing(Output):
    """One whose job prints its last and ends right after the first look."""

    is_first = True

    def read(self, offset: int, most: int = CHUNK) -> OutputChunk:
        part = super().read(offset, most)
        if self.is_first:
            self.is_first = False
            with open(self.folder.output, "ab") as file:
                file.write(b"the last")
            Path(self.folder.end).write_text('{"cause": "exited", "exitCode": 0}', encoding="utf-8")
        return part


def test_what_is_printed_right_before_the_end_between_two_looks_is_told(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path)
    Path(folder.output).write_bytes(b"first ")
    with RangeLock(folder.lock) as lock:
        lock.take(0, timeout=0, what="the job")

        assert [part.text for part in follow_output(_Racing(folder), timeout=20)] == [b"first ", b"the last"]


def test_a_job_whose_books_are_never_closed_is_followed_no_longer(tmp_path: Path) -> None:
    folder = made_by_hand(tmp_path)
    lock = RangeLock(folder.lock)
    lock.take(0, timeout=0, what="the job")
    threading.Timer(0.3, lock.close).start()
    began = time.monotonic()

    assert list(follow_output(Output(folder), timeout=30)) == []
    assert 0.2 < time.monotonic() - began < 5


def test_who_stops_following_leaves_neither_thread_nor_descriptor(tmp_path: Path) -> None:
    with running_job(tmp_path, "echo here; sleep 60") as folder:
        list(follow_output(Output(folder), timeout=0.1))  # the shared watcher is made once, and stays
        threads, fds = threading.active_count(), len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            parts = follow_output(Output(folder), timeout=20)
            next(parts)
            parts.close()  # type: ignore[attr-defined]  # it is a generator

        assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, fds)
