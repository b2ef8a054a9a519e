"""What a job printed, read by offsets that stay true: while it grows, after blocks were freed, after its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.job_outputs import BLOCK, ended_by_hand, made_by_hand, running_job, start_job, wait_for_end
from support.wait import until
from taskyard.errors import BadJobId
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import Output, OutputChunk
from taskyard.jobs.supervisor.kernel import punch_hole

HEADER = b"[8,192 bytes were left out here: the output was larger than its cap]\n"


@pytest.fixture(params=["disk", "/dev/shm"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A home on the disk, and one on tmpfs."""
    if request.param == "disk":
        yield str(tmp_path)
        return
    with tempfile.TemporaryDirectory(dir=request.param, prefix="taskyard-test-") as folder:
        yield folder


def written(home: str, data: bytes) -> JobPaths:
    folder = made_by_hand(home)
    Path(folder.output).write_bytes(data)
    return folder


def freed(folder: JobPaths, count: int) -> None:
    fd = os.open(folder.output, os.O_RDWR)
    try:
        assert punch_hole(fd, 0, count)
    finally:
        os.close(fd)


@pytest.mark.req("O-05")
def test_a_reader_gets_what_came_since_its_offset_and_where_to_go_on(tmp_path: Path) -> None:
    folder = written(str(tmp_path), b"one\ntwo\n")
    output = Output(folder)

    first = output.read(0, 4)
    rest = output.read(first.next_offset)
    with open(folder.output, "ab") as file:
        file.write(b"three\n")

    assert (first, rest) == (OutputChunk(b"one\n", 0, 4), OutputChunk(b"two\n", 4, 8))
    assert output.read(rest.next_offset) == OutputChunk(b"three\n", 8, 14)
    assert output.read(14) == OutputChunk(b"", 14, 14)


@pytest.mark.req("O-05")
def test_only_the_part_that_is_asked_for_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(str(tmp_path), b"x" * 10_000_000 + b"\nlast\n")
    asked: list[int] = []
    real = os.pread

    def counted(fd: int, count: int, at: int) -> bytes:
        asked.append(count)
        return real(fd, count, at)

    monkeypatch.setattr(os, "pread", counted)

    Output(folder).read(5_000_000, 100)
    Output(folder).tail(1)
    Output(folder).last_line()

    assert sum(asked) < 300_000


@pytest.mark.req("O-03")
def test_no_output_yet_reads_as_empty(tmp_path: Path) -> None:
    output = Output(made_by_hand(tmp_path))
    nowhere = Output(JobPaths(str(tmp_path), "b00000000"))

    for one in (output, nowhere):
        assert one.read(0) == one.tail(3) == one.tail_bytes(9) == OutputChunk(b"", 0, 0)
        assert one.last_line() == b""
        assert one.for_model() == ("", False)


@pytest.mark.req("O-04", "O-05")
def test_a_freed_head_is_told_as_omitted_bytes_and_never_read_as_zeros(home: str) -> None:
    lines = b"".join(b"%07d\n" % number for number in range(2 * BLOCK))
    folder = written(home, lines)
    freed(folder, 2 * BLOCK)
    output = Output(folder)

    assert output.read(0, 8) == OutputChunk(b"0001024\n", 2 * BLOCK, 2 * BLOCK + 8, omitted=2 * BLOCK)
    assert output.read(100, 8) == OutputChunk(b"0001024\n", 2 * BLOCK, 2 * BLOCK + 8, omitted=2 * BLOCK - 100)
    assert output.read(3 * BLOCK, 8) == OutputChunk(b"0001536\n", 3 * BLOCK, 3 * BLOCK + 8)
    whole = output.tail(10 * BLOCK)
    assert (whole.text, whole.offset, whole.omitted) == (lines[2 * BLOCK :], 2 * BLOCK, 2 * BLOCK)


@pytest.mark.req("O-04")
def test_an_output_of_which_nothing_is_left_reads_as_omitted(home: str) -> None:
    folder = ended_by_hand(home, at=1, size=2 * BLOCK)
    freed(folder, 2 * BLOCK)

    assert Output(folder).read(0) == OutputChunk(b"", 2 * BLOCK, 2 * BLOCK, omitted=2 * BLOCK)


@pytest.mark.req("O-05")
def test_what_is_printed_while_an_empty_output_is_looked_at_is_not_taken_for_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(str(tmp_path), b"")
    real, file = os.fstat, os.stat(folder.output)

    def print_after_it(fd: int) -> os.stat_result:
        found = real(fd)
        if os.path.samestat(found, file):
            Path(folder.output).write_bytes(b"first\n")
        return found

    monkeypatch.setattr(os, "fstat", print_after_it)

    assert Output(folder).read(0) == OutputChunk(b"first\n", 0, 6)


@pytest.mark.req("O-04", "O-05")
def test_offsets_are_the_same_before_and_after_the_keeper_tidied_up(home: str) -> None:
    script = "seq -f %09g 1 100000; read -r _ < gate; echo over"
    gate = f"{home}/gate"
    os.mkfifo(gate)
    with running_job(home, script.replace("gate", gate), cap=100_000) as folder:
        output = Output(folder)
        until(lambda: output.last_line() == b"000100000", what="everything to be printed")
        until(lambda: output.read(0, 1).omitted > 800_000, what="the head to be freed")
        before = output.read(980_000, 50)
        Path(gate).write_text("\n", encoding="utf-8")
        end = wait_for_end(folder)

    after = output.read(980_000, 50)
    base = end["base"]
    assert isinstance(base, int) and end["header"]
    assert before == after == OutputChunk(b"".join(b"%09d\n" % n for n in range(98_001, 98_006)), 980_000, 980_050)
    assert output.read(0, 10) == OutputChunk(output.read(base, 10).text, base, base + 10, omitted=base)
    assert output.tail(2) == OutputChunk(b"000100000\nover\n", 999_990, 1_000_005)
    assert output.end() == end["size"] == 1_000_005


@pytest.mark.req("O-05")
def test_a_tidied_output_is_known_before_its_end_is_written(tmp_path: Path) -> None:
    folder = written(str(tmp_path), HEADER + b"kept\n")

    assert Output(folder).read(0) == OutputChunk(b"kept\n", 8192, 8197, omitted=8192)


@pytest.mark.req("O-05")
def test_a_job_that_ends_while_its_output_is_being_opened_is_read_as_it_is_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = written(str(tmp_path), b"x" * 8192 + b"kept\n")
    real = os.open

    def end_after_it(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        fd = real(path, flags, mode, dir_fd=dir_fd)
        if path == "output" and not os.path.exists(folder.end):
            Path(f"{folder.output}.tmp").write_bytes(HEADER + b"kept\n")
            os.rename(f"{folder.output}.tmp", folder.output)
            end = {"cause": "exited", "exitCode": 0, "size": 8197, "base": 8192, "header": len(HEADER)}
            Path(folder.end).write_text(json.dumps(end), encoding="utf-8")
        return fd

    monkeypatch.setattr(os, "open", end_after_it)

    assert Output(folder).read(0) == OutputChunk(b"kept\n", 8192, 8197, omitted=8192)


@pytest.mark.req("O-05")
def test_a_command_that_prints_the_very_line_of_a_tidied_output_fools_nobody(tmp_path: Path) -> None:
    with running_job(tmp_path, f"echo '{HEADER.decode().strip()}'; echo more; sleep 60") as folder:
        until(lambda: Output(folder).last_line() == b"more", what="the job to print")
        while_it_runs = Output(folder).read(0)
    wait_for_end(folder)

    assert while_it_runs == Output(folder).read(0) == OutputChunk(HEADER + b"more\n", 0, len(HEADER) + 5)


@pytest.mark.req("O-05")
def test_an_output_the_command_truncated_starts_again_and_says_so(tmp_path: Path) -> None:
    script = "echo a long beginning; read -r _ < gate; : > /dev/stdout; echo new; sleep 60"
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with running_job(tmp_path, script.replace("gate", str(gate))) as folder:
        output = Output(folder)
        until(lambda: output.read(0).text == b"a long beginning\n")
        gate.write_text("\n", encoding="utf-8")
        until(lambda: output.read(0).text == b"new\n")

        assert output.read(17) == OutputChunk(b"new\n", 0, 4, restarted=True)
        assert output.read(4) == OutputChunk(b"", 4, 4)


@pytest.mark.req("O-05")
def test_the_byte_by_which_a_keeper_tries_its_disk_is_never_read(tmp_path: Path) -> None:
    folder = written(str(tmp_path), b"all of it")
    output = Output(folder)

    os.truncate(folder.output, 10)
    during = [output.read(0), output.tail(1), output.tail_bytes(100)]
    os.truncate(folder.output, 9)

    assert during == [OutputChunk(b"all of it", 0, 9)] * 3
    assert output.read(9) == OutputChunk(b"", 9, 9)


@pytest.mark.req("O-05", "B-07")
def test_another_process_reads_what_a_job_printed(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "echo hello; exit 3")
    wait_for_end(folder)
    code = (
        "import sys; from taskyard.jobs.job_dir import JobPaths as JobFolder; from taskyard.jobs.output import Output;"
        "print(Output(JobFolder(*sys.argv[1:])).read(0).text)"
    )

    ran = subprocess.run([sys.executable, "-c", code, *folder], capture_output=True, text=True, timeout=30, check=True)

    assert ran.stdout.strip() == "b'hello\\n'"


@pytest.mark.req("O-04")
def test_no_zero_is_read_while_blocks_are_freed_under_the_reader(home: str) -> None:
    with running_job(home, "yes 0123456789", cap=200_000) as folder:
        output = Output(folder)
        until(lambda: output.end() > 1_000_000, what="some output")
        offset = 0
        for _ in range(300):
            part = output.read(offset)
            assert b"\0" not in part.text
            assert part.offset == offset + part.omitted
            assert part.text.startswith(b"0123456789\n"[part.offset % 11 :][:3])
            offset = part.next_offset if part.omitted else max(part.next_offset - 50_000, 0)


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\n\n", 1, b"\n"),
        (b"a\nb\n", 9, b"a\nb\n"),
        (b"a\nb\n", 0, b""),
        (b"", 5, b""),
        (b"x" * 200_000 + b"\n" + b"y\n" * 100_000, 100_000, b"y\n" * 100_000),
    ],
)
@pytest.mark.req("O-05")
def test_a_tail_is_the_last_lines(tmp_path: Path, text: bytes, lines: int, expected: bytes) -> None:
    found = Output(written(str(tmp_path), text)).tail(lines)

    assert found == OutputChunk(expected, len(text) - len(expected), len(text))


def test_the_tail_of_an_endless_line_is_bounded(tmp_path: Path) -> None:
    found = Output(written(str(tmp_path), b"x" * 300_000)).tail(1, most=100_000)

    assert (len(found.text), found.next_offset) == (100_000, 300_000)


@pytest.mark.parametrize(
    ("text", "expected"), [(b"a\nb\n\n", b"b"), (b"10%\r20%\r", b"20%"), (b"a", b"a"), (b"\n \n", b"")]
)
def test_the_last_line_is_the_last_that_says_something(tmp_path: Path, text: bytes, expected: bytes) -> None:
    assert Output(written(str(tmp_path), text)).last_line() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"one\ntw", b"one"),
        (b"10 %\r20", b"10 %"),
        (b"one\n\n tw", b"one"),
        (b"Name: ", b"Name:"),
        (b"\nName: ", b"Name:"),
    ],
)
def test_half_a_line_is_not_the_last_whole_one(tmp_path: Path, text: bytes, expected: bytes) -> None:
    assert Output(written(str(tmp_path), text)).last_line(whole=True) == expected


@pytest.mark.req("O-07")
def test_a_model_is_given_the_end_of_a_large_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(str(tmp_path), b"start" + "é".encode() * 50_000 + b"end")

    cut = Output(folder).for_model()
    monkeypatch.setenv("TASK_MAX_OUTPUT_LENGTH", "60000")
    whole = Output(folder).for_model()

    assert cut.was_truncated and len(cut.text) == 32_000
    assert cut.text.startswith(f"[Truncated. Full output: {folder.output}]\n\né") and cut.text.endswith("éend")
    assert (len(whole.text), whole.was_truncated) == (50_008, False)


@pytest.mark.parametrize("facts", [{"header": -5, "base": -1}, {"header": 10**12, "base": 7}])
def test_an_end_that_cannot_be_true_about_the_output_is_not_believed(tmp_path: Path, facts: dict[str, int]) -> None:
    folder = ended_by_hand(tmp_path, at=1, size=5, **facts)

    assert Output(folder).read(0) == OutputChunk(b"xxxxx", 0, 5)


@pytest.mark.parametrize("job_id", ["../../etc", "", "b" * 300, "b0000000\0", "B00000000", "/etc/pass"])
def test_what_can_be_no_id_is_refused_before_anything_is_opened(tmp_path: Path, job_id: str) -> None:
    with pytest.raises(BadJobId):
        Output(JobPaths(str(tmp_path), job_id))
