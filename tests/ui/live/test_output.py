"""What a job printed, in windows that fit a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.job_outputs import start_job, wait_for_end
from taskyard.errors import BadJobId
from taskyard.ui import output
from taskyard.ui.ansi import plain_text
from taskyard.ui.output import MOST_LINES, OutputLine, OutputReader, OutputWindow

pytestmark = pytest.mark.req("O-05", "U-01")


def printed(tmp_path: Path, command: str, *, cap: int | None = None) -> OutputReader:
    folder = start_job(tmp_path, command) if cap is None else start_job(tmp_path, command, cap=cap)
    wait_for_end(folder)
    return OutputReader(folder.home, folder.id)


def texts(window: OutputWindow) -> list[str]:
    return [plain_text(line.runs) for line in window.lines]


def test_it_opens_at_the_end_and_goes_back_window_by_window(tmp_path: Path) -> None:
    reader = printed(tmp_path, "seq 1 10000")

    last = reader.tail(3)
    earlier = reader.before(last.start, 4)
    first = reader.before(6, 10)

    assert (texts(last), texts(earlier), texts(first)) == (
        ["9998", "9999", "10000"],
        ["9994", "9995", "9996", "9997"],
        ["1", "2", "3"],
    )
    assert earlier.end == last.start
    assert (first.start, first.omitted, last.size) == (0, 0, last.end)
    assert reader.before(0) == OutputWindow(size=last.size)
    assert reader.is_over()


def test_a_line_without_its_end_comes_again_with_what_was_added(tmp_path: Path) -> None:
    reader = printed(tmp_path, "printf 'one\\ntwo'")

    window = reader.tail()
    assert (texts(window), window.is_open, window.end) == (["one", "two"], True, 4)
    assert texts(reader.after(window.end)) == ["two"]


def test_a_flood_of_short_lines_comes_in_windows_that_can_be_drawn(tmp_path: Path) -> None:
    reader = printed(tmp_path, "yes | head -n 12000")

    first = reader.after(0)
    assert (len(first.lines), first.end, first.is_open) == (MOST_LINES, 2 * MOST_LINES, False)
    rest = [reader.after(first.end, lines=3_000)]
    while rest[-1].end < rest[-1].size:
        rest.append(reader.after(rest[-1].end, lines=3_000))
    assert [len(window.lines) for window in rest] == [3_000, 3_000, 1_000]


def test_an_endless_line_is_not_read_again_and_again(tmp_path: Path) -> None:
    reader = printed(tmp_path, "head -c 200000 /dev/zero | tr '\\0' x")

    window = reader.after(0)
    assert (window.is_open, window.end) == (True, 200_000)
    assert reader.after(window.end) == OutputWindow((), 200_000, 200_000, size=200_000)


def test_colours_stay_and_a_progress_bar_shows_its_last_form(tmp_path: Path) -> None:
    reader = printed(tmp_path, r"printf '\033[31mred\033[0m\033[2J\n10%%\r20%%\r\n\342\202\254\n'")

    window = reader.tail()
    assert texts(window) == ["red", "20%", "€"]
    assert [run.pen.words for run in window.lines[0].runs] == ["fg1"]
    assert window.lines[2] == OutputLine(window.size - 4, window.lines[2].runs)


def test_what_the_cap_left_out_is_counted(tmp_path: Path) -> None:
    reader = printed(tmp_path, "seq -f %09g 1 100000", cap=200_000)

    window = reader.after(0, 1_000)
    assert window.omitted == window.start > 500_000
    assert texts(window)[1] == f"{window.lines[1].offset // 10 + 1:09d}"
    assert reader.before(window.lines[2].offset).omitted == window.start


def test_it_finds_a_text_on_either_side_in_a_file_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_STEP", 1_000)
    reader = printed(tmp_path, "seq 1 3000; echo Needle; seq 3001 6000; echo NEEDLE two; seq 6001 9000")
    size = reader.tail(1).size
    first = reader.find("needle", 0)
    second = reader.find("NEEDLE", (first or 0) + 1)

    assert first is not None
    assert second is not None
    assert [texts(reader.after(at, 60))[0] for at in (first, second)] == ["Needle", "NEEDLE two"]
    assert reader.find("needle", size, backwards=True) == second
    assert reader.find("needle", second, backwards=True) == first
    assert reader.find("needle", first, backwards=True) is None
    assert reader.find("needle", second + 1) is None
    assert reader.find("", 0) is None
    assert reader.find("needle", 0, give_up=lambda: True) is None


@pytest.mark.parametrize("at", range(90, 110))
def test_what_lies_across_two_steps_is_found(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_STEP", 100)
    monkeypatch.setattr(output, "CHUNK", 16)
    folder = made(tmp_path, b"x" * at + b"\nneedle\n" + b"y" * 300)

    assert folder.find("needle", 0) == at + 1
    assert folder.find("needle", at + 308, backwards=True) == at + 1


def made(tmp_path: Path, text: bytes) -> OutputReader:
    from support.job_outputs import made_by_hand

    folder = made_by_hand(tmp_path)
    Path(folder.output).write_bytes(text)
    return OutputReader(folder.home, folder.id)


def test_an_output_that_is_not_there_reads_as_empty_and_no_other_file_is_opened(tmp_path: Path) -> None:
    reader = OutputReader(str(tmp_path), "b00000000")

    assert reader.tail() == OutputWindow()
    with pytest.raises(BadJobId):
        OutputReader(str(tmp_path), "../../etc/passwd")


@pytest.mark.req("O-04", "O-05")
def test_going_back_through_a_large_output_shows_its_head_and_what_was_left_out(tmp_path: Path) -> None:
    folder = start_job(tmp_path, "seq -f %0127.0f 20000", cap=1_000_000)
    wait_for_end(folder)
    reader = OutputReader(str(tmp_path), folder.id)

    window = reader.tail()
    seen = texts(window)
    while window.start > 0:
        window = reader.before(window.start)
        seen[:0] = texts(window)

    notes = [at for at, text in enumerate(seen) if "left out here" in text]
    numbers = [int(text) for at, text in enumerate(seen) if at not in notes]
    assert numbers[0] == 1 and numbers == sorted(set(numbers))
    assert len(notes) == 1 and numbers[notes[0]] > numbers[notes[0] - 1] + 1 == 196_608 // 128 + 1
    assert reader.find(f"{1234:0127}", 128 * 20_000, backwards=True) == 128 * 1_233
