"""Words and rows for a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.core.text import Style, cut, duration, escape_control, padded, width
from taskyard.tasks.model import Task, TaskStatus
from taskyard.tasks.text import done_line, format_task_rows, sort_tasks

NOW = 10_000_000
PENDING, DOING, DONE = TaskStatus
WIDE = "模式迁移"


@pytest.mark.req("U-03")
@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3, "0s"),
        (8, "8s"),
        (59.9, "59s"),
        (60, "1m"),
        (3_599, "59m"),
        (3_840, "1h 04m"),
        (86_399, "23h 59m"),
        (2e5, "2d"),
    ],
)
def test_durations_are_said_in_the_largest_unit_that_matters(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.req("U-03")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 模 👩\u200d💻", "plain é 模 👩\u200d💻"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\u202eb\u2066", "a\\u202eb\\u2066"),
        ("a\r\nb\tc", "a\\x0d b c"),
        ("\x9b31m", "\\x9b31m"),
        ("\ud800", "\\ud800"),
        ("a\u2028b\u00a0c", "a b c"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_what_would_act_on_a_terminal_is_shown_instead(text: str, shown: str) -> None:
    assert escape_control(text) == shown


@pytest.mark.req("U-03")
@given(st.text(), st.booleans())
def test_safe_text_has_nothing_that_controls_a_terminal(text: str, lines: bool) -> None:
    shown = escape_control(text, lines=lines)
    allowed = {"\n"} if lines else set[str]()
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in allowed]
    assert not set(shown) & set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    shown.encode("utf-8")


@pytest.mark.req("U-03")
def test_width_counts_columns_not_characters() -> None:
    assert width("abc") == 3
    assert width(WIDE) == 8
    assert width("e\u0301") == 1
    assert width("👩\u200d") == 2


@pytest.mark.req("U-03")
@given(st.text(st.sampled_from("ab 模é\u0301👩"), max_size=20), st.integers(0, 25), st.booleans())
def test_a_cut_text_fits_and_says_that_it_was_cut(text: str, columns: int, ascii_only: bool) -> None:
    short = cut(text, columns, Style(ascii=ascii_only))
    assert width(short) <= columns
    if width(text) <= columns:
        assert short == text
    elif columns >= 3:
        assert short.endswith("..." if ascii_only else "…")


@pytest.mark.req("L-20", "U-03")
def test_a_list_reads_as_people_expect() -> None:
    tasks = [
        Task("8", "Old", status=DONE, updated_at=1),
        Task("9", "Write the release notes"),
        Task("12", "Migrate the schema", owner="ada", status=DOING, updated_at=NOW - 200_000),
        Task("13", "Switch readers", blocked_by=("12",)),
    ]
    assert format_task_rows(sort_tasks(tasks, now=NOW)[:3], now=NOW) == [
        "◐ 12  Migrate the schema       @ada   3m",
        "○  9  Write the release notes",
        "◌ 13  Switch readers                 waits for 12",
    ]
    assert done_line(8) == "✓ 8 done   (--all shows them)"
    assert done_line(0) == ""
    assert format_task_rows([], now=NOW) == []


@pytest.mark.req("U-03")
def test_columns_line_up_for_wide_characters_and_long_subjects_are_cut() -> None:
    tasks = [Task("1", WIDE, owner="张"), Task("2", "x" * 200, owner="ada")]
    first, second = format_task_rows(sort_tasks(tasks, now=NOW), now=NOW, columns=40)
    assert width(first[: first.index("→")]) == width(second[: second.index("→")])
    assert width(second) <= 40
    assert "…" in second


@pytest.mark.req("U-03")
def test_a_row_names_three_blockers_and_counts_the_rest() -> None:
    tasks = [Task(str(n), "b") for n in range(1, 6)] + [Task("6", "t", blocked_by=("1", "2", "3", "4", "5"))]
    assert format_task_rows(sort_tasks(tasks, now=NOW)[-1:], now=NOW) == ["◌ 6  t  waits for 1, 2, 3 and 2 more"]


@pytest.mark.req("L-09", "U-03")
def test_a_task_set_aside_says_so() -> None:
    held = Task("1", "t", metadata={"taskyard": {"held": True}})
    assert format_task_rows(sort_tasks([held], now=NOW), now=NOW) == ["○ 1  t  set aside"]


@pytest.mark.req("U-03")
def test_no_subject_or_owner_brings_an_escape_onto_the_screen() -> None:
    task = Task("1", "a\x1b[2Jb", owner="\x1b]0;x", status=DOING)
    [row] = format_task_rows(sort_tasks([task], now=NOW), now=NOW)
    assert "\x1b" not in row
    [coloured] = format_task_rows(sort_tasks([task], now=NOW), now=NOW, style=Style(colour=True, ascii=True))
    assert coloured.startswith("\x1b[34m*\x1b[0m 1  a")
    assert coloured.count("\x1b") == 2


@pytest.mark.req("U-03")
@given(st.text(st.sampled_from("ab模"), max_size=5))
def test_padding_reaches_the_column(text: str) -> None:
    assert width(padded(text, 12)) == 12
