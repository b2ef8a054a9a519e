"""Output through pipes: apart, in order, bounded in memory."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from taskyard.storage.spill import MAX_IN_MEMORY, Spill, SpillOutput

pytestmark = pytest.mark.req("O-06")


def test_what_fits_into_memory_is_given_back_whole_and_apart(tmp_path: Path) -> None:
    with Spill(str(tmp_path / "file")) as spill:
        spill.write(b"out 1\n")
        spill.write(b"err 1\n", stderr=True)
        spill.write(b"out 2\n")

        assert spill.read_back() == SpillOutput(b"out 1\nout 2\n", b"err 1\n", size=18)
        assert spill.read_back().notice == ""
    assert not (tmp_path / "file").exists()


def test_after_a_spill_the_last_five_lines_of_each_are_given_back_and_it_says_so(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Spill(str(path)) as spill:
        for first in range(0, 1_200_000, 1000):
            spill.write(b"".join(b"%08d\n" % number for number in range(first, first + 1000)))
        spill.write(b"".join(b"err %d\n" % number for number in range(9)), stderr=True)
        back = spill.read_back()

    assert back.is_spilled and back.size == 1_200_000 * 9 + 9 * 6 > MAX_IN_MEMORY
    assert back.stdout.splitlines() == [b"%08d" % number for number in range(1_199_995, 1_200_000)]
    assert back.stderr.splitlines() == [b"err %d" % number for number in range(4, 9)]
    assert str(path) in back.notice and "last 5 lines" in back.notice
    assert (path.stat().st_mode & 0o777, path.stat().st_size) == (0o600, back.size + 9 * 9)


def test_the_file_has_everything_in_the_order_it_came_with_the_lines_of_stderr_marked(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Spill(str(path), most_in_memory=500) as spill:
        spill.write(b"first\n")
        spill.write(b"e1\ne2\n", stderr=True)
        spill.write(b"half ")
        assert not path.exists()
        spill.write(b"line")
        spill.write(b"e3", stderr=True)
        spill.write(b" goes on\n", stderr=True)
        spill.write(b"last\n")
        assert spill.is_spilled

    assert path.read_bytes() == b"first\n[stderr] e1\n[stderr] e2\nhalf line\n[stderr] e3 goes on\nlast\n"


def test_threads_that_write_at_the_same_time_never_tear_each_others_pieces(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Spill(str(path), most_in_memory=1000) as spill:

        def write(stderr: bool) -> None:
            for number in range(2000):
                spill.write(b"%05d %d\n" % (number, stderr), stderr=stderr)

        threads = [threading.Thread(target=write, args=(stderr,)) for stderr in (False, True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    lines = path.read_bytes().splitlines()
    for mark, stream in ((b"", b"0"), (b"[stderr] ", b"1")):
        own = [line for line in lines if line.endswith(b" " + stream)]
        assert own == [mark + b"%05d " % number + stream for number in range(2000)]
    assert len(lines) == 4000


@pytest.mark.parametrize("piece", [1, 65536])
def test_memory_does_not_grow_with_the_output(tmp_path: Path, piece: int) -> None:
    most = 200_000
    with Spill(str(tmp_path / "file"), most_in_memory=most) as spill:
        tracemalloc.start()
        for number in range(20_000 if piece == 1 else 500):
            spill.write(b"x" * piece, stderr=bool(number % 2))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 4 * most


def test_a_slow_disk_makes_the_writer_wait(tmp_path: Path) -> None:
    """The disk is a pipe that nobody reads: once it is full, the writer stands still, and holds nothing back."""
    with Spill(str(tmp_path / "file"), most_in_memory=10) as spill:
        spill.write(b"x" * 11)
        read, write = os.pipe()
        os.dup2(write, spill._fd)
        os.close(write)
        done = threading.Event()

        def fill() -> None:
            spill.write(b"y" * 1_000_000)
            done.set()

        threading.Thread(target=fill, daemon=True).start()
        assert not done.wait(0.3)
        got = 0
        while got < 1_000_000:
            got += len(os.read(read, 65536))
        assert done.wait(10)
        os.close(read)


@pytest.mark.req("O-09")
def test_a_disk_that_refuses_is_told_and_the_command_goes_on(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path / "file"), most_in_memory=10)
    spill.write(b"x" * 11)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, spill._fd)
    os.close(full)

    spill.write(b"more\n")
    spill.write(b"and more\n")

    back = spill.read_back()
    assert back.lost == "the disk is full" and back.lost in back.notice
    assert back.stdout.endswith(b"more\nand more")
    spill.close()


@pytest.mark.req("O-02")
def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("untouched", encoding="utf-8")
    os.symlink(target, tmp_path / "file")
    with Spill(str(tmp_path / "file"), most_in_memory=10) as spill:
        spill.write(b"x" * 100)

        assert spill.read_back().lost
    assert target.read_text(encoding="utf-8") == "untouched"


def test_a_file_that_is_there_already_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("somebody's", encoding="utf-8")
    with Spill(str(tmp_path / "file"), most_in_memory=10) as spill:
        spill.write(b"x" * 100)

        assert spill.read_back().lost == "File exists"
    assert (tmp_path / "file").read_text(encoding="utf-8") == "somebody's"


@pytest.mark.req("O-04")
def test_the_file_stays_below_its_cap_and_keeps_its_head_and_the_newest_half(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with Spill(str(path), cap=200_000, most_in_memory=1000) as spill:
        for number in range(100_000):
            spill.write(b"%09d\n" % number)
        back = spill.read_back()

    lines = path.read_bytes().splitlines()
    note = lines.index(next(line for line in lines if line.startswith(b"[")))
    head, newest = [int(line) for line in lines[:note] if line], [int(line) for line in lines[note + 1 :]]
    assert path.stat().st_size <= 200_000
    assert head == list(range(5_000)), "a quarter of a small cap"
    assert newest == list(range(newest[0], 100_000)) and len(newest) >= 10_000
    left_out = (newest[0] - len(head)) * 10
    assert lines[note] == f"[{left_out:,} bytes were left out here: the output was larger than its cap]".encode()
    assert (back.omitted, back.lost) == (left_out, "")
    assert back.notice.endswith(f"Its first part and its newest part: {path}]")
    assert back.stdout == b"\n".join(b"%09d" % number for number in range(99_995, 100_000))
