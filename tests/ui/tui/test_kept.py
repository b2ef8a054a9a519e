"""The lines of an output that are in hand."""

from __future__ import annotations

from taskyard.ui.ansi import Pen, Run, plain_text
from taskyard.ui.output import OutputLine, OutputWindow
from taskyard.ui.tui.output_view import OutputBuffer


def window(first: int, count: int, *, size: int | None = None, **more: object) -> OutputWindow:
    """Lines of ten bytes each, the first of them at an offset."""
    lines = tuple(OutputLine(first + 10 * at, (Run(f"at {first + 10 * at}"),)) for at in range(count))
    end = first + 10 * count
    return OutputWindow(lines, first, end, size=end if size is None else size)._replace(**more)  # type: ignore[arg-type]


def texts(kept: OutputBuffer) -> list[str]:
    return [plain_text(line.runs) for line in kept.lines]


def test_what_comes_is_added_and_an_open_line_comes_again() -> None:
    kept = OutputBuffer()
    kept.begin(window(0, 2, is_open=True)._replace(end=10))
    new = kept.add(window(10, 2), at=7, follows=True)

    assert (texts(kept), new, kept.end) == (["at 0", "at 10", "at 20"], 1, 30)
    assert kept.times == {10: 7, 20: 7}


def test_of_too_many_the_oldest_go_while_somebody_follows() -> None:
    kept = OutputBuffer(most=5)
    kept.begin(window(0, 4))
    kept.add(window(40, 4), at=1, follows=True)

    assert (texts(kept)[0], len(kept.lines), kept.start, kept.unseen) == ("at 30", 5, 30, 0)


def test_what_is_being_read_stays_and_what_comes_is_counted() -> None:
    kept = OutputBuffer(most=5)
    kept.begin(window(0, 4))
    kept.add(window(40, 4), at=1, follows=False)
    kept.add(window(80, 2), at=2, follows=False)

    assert texts(kept) == ["at 0", "at 10", "at 20", "at 30", "at 40"]
    assert (kept.unseen, kept.is_cut, kept.end, kept.size) == (6, True, 50, 100)


def test_of_a_flood_the_end_is_shown_or_counted() -> None:
    followed, read = OutputBuffer(), OutputBuffer()
    for kept, follows in ((followed, True), (read, False)):
        kept.begin(window(0, 2))
        kept.add(window(9_000, 3), at=1, follows=follows, skipped=True)

    assert (texts(followed), followed.is_more) == (["at 9000", "at 9010", "at 9020"], False)
    assert (texts(read), read.unseen, read.is_more, read.is_cut) == (["at 0", "at 10"], 3, True, True)


def test_what_stands_before_is_put_before_and_the_rest_may_go() -> None:
    kept = OutputBuffer(most=5)
    kept.begin(window(40, 4))
    moved = kept.prepend_window(window(10, 3))

    assert (moved, texts(kept)[0], len(kept.lines), kept.start, kept.is_cut) == (3, "at 10", 5, 10, True)


def test_what_is_no_longer_there_is_told_where_it_was() -> None:
    kept = OutputBuffer()
    kept.begin(window(3_100_000, 2, omitted=3_100_000))

    assert texts(kept)[0] == "… 3.1 MB omitted …"
    kept.prepend_window(window(3_099_990, 1, omitted=3_099_990))
    assert texts(kept)[:3] == ["… 3.1 MB omitted …", "at 3099990", "at 3100000"]


def test_of_a_window_from_the_middle_its_first_lines_are_kept() -> None:
    kept = OutputBuffer(most=5)
    kept.begin(window(0, 8), from_start=True)

    assert (texts(kept)[0], len(kept.lines), kept.end, kept.is_cut) == ("at 0", 5, 50, True)


def test_where_something_between_was_not_read_nothing_is_added_as_if_it_followed() -> None:
    kept = OutputBuffer()
    kept.begin(window(0, 2))
    kept.add(window(90, 1), at=1, follows=False)

    assert (texts(kept), kept.unseen, kept.is_cut) == (["at 0", "at 10"], 1, True)


def test_an_output_that_began_anew_is_shown_anew() -> None:
    kept = OutputBuffer()
    kept.begin(window(0, 4))
    kept.add(window(0, 1, restarted=True), at=1, follows=False)

    assert texts(kept) == ["at 0"]


def test_lines_are_found_by_offset() -> None:
    kept = OutputBuffer()
    kept.begin(window(100, 3))

    assert [kept.place_of(offset) for offset in (0, 100, 105, 120, 999)] == [0, 0, 1, 2, 2]


def test_tabs_are_spaces_up_to_the_next_stop_whatever_colours_change_between() -> None:
    kept = OutputBuffer()
    kept.begin(OutputWindow((OutputLine(0, (Run("日\tb"), Run("c\td", Pen(fg=1)))),), 0, 9, size=9))

    assert texts(kept) == ["日      bc      d"]
    assert [run.pen.fg for run in kept.lines[0].runs] == [None, 1]
