"""What a program said is cut out of Ray's log: whole, once, and nothing but that."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taskyard.errors import BadValue
from taskyard.jobs.remote import ray as ray_log
from taskyard.jobs.remote.ray import LogChunk, LogCursor, LogReader, LogTail, mark_replaced, parse_cursor

JOB, COMMAND = "r1", "my-agent --json"
SETTING_UP = b"2026-11-16 21:07:53,497\tINFO job_manager.py:581 -- Runtime env is setting up.\n"
ANNOUNCED = f"Running entrypoint for job {JOB}: {COMMAND}\n".encode()


def told(log: bytes, cursor: LogCursor | None = None, *, is_over: bool = False, piece: int = 7) -> LogChunk | None:
    """What a reading of `log`, in pieces, tells."""
    reading = LogReader(cursor or LogCursor(), COMMAND, JOB)
    for at in range(0, len(log), piece):
        if not reading.take(log[at : at + piece]):
            break
    return reading.told(is_over=is_over)


def followed(log: bytes, looks: list[int], *, piece: int) -> str:
    """What is told in all while a log grows, looked at when it has so many bytes, and once more when it is over."""
    cursor, text = LogCursor(), ""
    for length in [*sorted(length % (len(log) + 1) for length in looks), -1]:
        grown = log if length < 0 else log[:length]
        found = told(grown, parse_cursor(str(cursor)), is_over=length < 0, piece=piece)
        assert found is not None
        assert length < 0 or not found.text or found.text.endswith("\n"), "half a line before the end"
        cursor, text = found.cursor, text + found.text
    return text


def test_the_lines_of_ray_itself_are_left_out() -> None:
    found = told(SETTING_UP + ANNOUNCED + b"hello\n")

    assert found is not None and found.text == "hello\n"


def test_the_announcement_is_left_out_also_where_it_tears_a_line_of_the_program() -> None:
    found = told(SETTING_UP + b"hel" + ANNOUNCED + b"lo\nbye\n")

    assert found is not None and found.text == "hello\nbye\n"


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12).map(str.encode)


@given(
    st.lists(LINE, max_size=12), st.booleans(), st.integers(0, 99), st.lists(st.integers(0, 999)), st.integers(1, 50)
)
@example([b"one", b"two"], True, 2, [3], 1)
def test_whenever_one_looks_each_line_is_told_whole_and_once(
    lines: list[bytes], ends: bool, announced_at: int, looks: list[int], piece: int
) -> None:
    said = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    at = announced_at % (len(said) + 1)
    log = SETTING_UP + said[:at] + ANNOUNCED + said[at:]
    # Ray writes its line at once, so that nobody ever sees a part of it
    cut = range(len(SETTING_UP) + at + 1, len(SETTING_UP) + at + len(ANNOUNCED))
    seen = [length for length in looks if length % (len(log) + 1) not in cut]

    assert followed(log, seen, piece=piece) == said.decode()


@given(st.binary(max_size=200), st.lists(st.integers(0, 999)), st.integers(1, 50))
def test_any_bytes_are_told_as_text(log: bytes, looks: list[int], piece: int) -> None:
    assert followed(log, looks, piece=piece) == log.decode("utf-8", "replace")


def test_a_log_that_is_shorter_than_what_was_told_is_another_one() -> None:
    first = told(b"one\ntwo\nthree\n")
    assert first is not None

    assert told(b"one\n", first.cursor) is None


def test_a_log_that_says_something_else_is_another_one() -> None:
    first = told(b"one\ntwo\n")
    assert first is not None

    assert told(b"one\ntoo\nthree\n", first.cursor) is None


def test_one_that_begins_anew_says_so() -> None:
    assert mark_replaced(LogChunk("one\n", LogCursor(4))).text.splitlines()[1:] == ["one"]


def test_more_than_fits_comes_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_log, "MAX_POLL_BYTES", 10)
    log = b"".join(b"line %d\n" % number for number in range(20))
    cursor, text = LogCursor(), ""
    while (found := told(log, cursor, is_over=True)) is not None and not found.is_all:
        cursor, text = found.cursor, text + found.text
        assert text.endswith("\n")

    assert found is not None and text + found.text == log.decode()


def test_a_line_that_is_too_long_is_torn_between_two_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_log, "MAX_POLL_BYTES", 10)
    log, cursor, parts = "✓✓✓✓✓✓✓é\n".encode(), LogCursor(), list[str]()
    while (found := told(log, cursor)) is not None and not found.is_all:
        cursor = found.cursor
        parts.append(found.text)

    assert found is not None and "".join([*parts, found.text]).replace("\n", "") == "✓✓✓✓✓✓✓é"
    assert all(part.endswith("\n") for part in parts)


def test_of_what_is_too_long_to_follow_the_last_whole_lines_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_log, "TAIL_BYTES", 20)
    last = LogTail()
    for number in range(100):
        assert last.take(b"line %d\n" % number)
    found = last.told(LogCursor(5), JOB)

    assert found.text.splitlines()[1:] == ["line 98", "line 99"]
    assert "ray job logs r1" in found.text
    assert found.cursor == LogCursor(5, 0, is_end=True)


@given(st.builds(LogCursor, st.integers(0, 10**17), st.integers(0, 2**32 - 1), st.booleans()))
def test_a_cursor_is_read_as_it_was_written(cursor: LogCursor) -> None:
    assert parse_cursor(str(cursor)) == cursor


@pytest.mark.parametrize("text", ["x", "12", "-1-00000000", "1-0000000g", "1-00000000 ", "9" * 30 + "-00000000"])
def test_a_cursor_of_somebody_elses_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        parse_cursor(text)
