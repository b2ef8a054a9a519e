"""The graph as lines of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.core.text import Style, width
from taskyard.tasks.model import Task, TaskStatus
from taskyard.ui.graph import MAX_TASKS, Drawing, adjacent_task, draw_graph
from taskyard.ui.snapshot import ViewInput, build_snapshot

PLAN = [
    Task("9", "Release notes"),
    Task("11", "Freeze API", status=TaskStatus.COMPLETED, blocks=("12",)),
    Task("12", "Migrate", status=TaskStatus.IN_PROGRESS, blocked_by=("11",)),
    Task("13", "Switch readers", blocked_by=("12",)),
    Task("16", "Drop the old table", blocked_by=("12", "13")),
    Task("17", "Backfill", blocked_by=("12",)),
]


def drawing(*tasks: Task, ascii: bool = False) -> Drawing:
    return draw_graph(build_snapshot(ViewInput(tasks=tasks, now=10**6)).tasks, Style(ascii=ascii))


def picture(*lines: str) -> tuple[str, ...]:
    return tuple(line.rstrip() for line in lines)


def test_levels_are_columns_and_what_follows_from_other_lines_is_left_out() -> None:
    assert drawing(*PLAN).lines == picture(
        " level 0              level 1           level 2                level 3",
        " ○ 9 Release notes",
        " ✓ 11 Freeze API ───▶ ◐ 12 Migrate ─┬─▶ ◌ 13 Switch readers ─▶ ◌ 16 Drop the old table",
        "                                    └─▶ ◌ 17 Backfill",
    )


def test_a_line_that_passes_a_level_has_a_row_of_its_own_there() -> None:
    tasks = [Task("1", "A"), Task("2", "B", blocked_by=("1",)), Task("3", "C"), Task("4", "D", blocked_by=("2", "3"))]

    assert drawing(*tasks).lines == picture(
        " level 0    level 1      level 2",
        " ○ 1 A ───▶ ◌ 2 B ───┬─▶ ◌ 4 D",
        " ○ 3 C ──────────────┘",
    )


def test_with_ascii_alone_it_is_the_same_picture() -> None:
    lines = drawing(*PLAN, ascii=True).lines

    assert all(line.isascii() for line in lines)
    assert lines[2].split() == [
        "+", "11", "Freeze", "API", "--->", "*", "12", "Migrate", "-+->", ".", "13", "Switch", "readers", "->",
        ".", "16", "Drop", "the", "old", "table",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("start", "across", "down", "to"),
    [
        ("12", 1, 0, "13"),
        ("13", 0, 1, "17"),
        ("17", 0, 1, "17"),
        ("16", -1, 0, "13"),
        ("16", 1, 0, "16"),
        ("9", 0, 1, "11"),
        ("gone", 1, 0, "9"),
    ],
)
def test_a_cursor_goes_along_the_lines(start: str, across: int, down: int, to: str) -> None:
    assert adjacent_task(drawing(*PLAN), start, across, down) == to


def test_nothing_is_drawn_of_nothing_and_of_too_much_the_first() -> None:
    many = drawing(*(Task(str(number), "x") for number in range(1, MAX_TASKS + 8)))

    assert drawing() == Drawing()
    assert (len(many.nodes), many.left_out) == (MAX_TASKS, 7)


@given(st.lists(st.lists(st.integers(1, 12), max_size=4), min_size=1, max_size=12))
def test_every_task_is_where_the_drawing_says_and_no_two_are_at_one_place(blockers: list[list[int]]) -> None:
    """Whatever waits for whatever, circles too."""
    tasks = [
        Task(str(at), f"Täsk {at} 表", blocked_by=tuple(dict.fromkeys(str(one) for one in found if one != at)))
        for at, found in enumerate(blockers, 1)
    ]
    made = drawing(*tasks)

    assert set(made.nodes) == {task.id for task in tasks}
    assert len({(node.row, node.column) for node in made.nodes.values()}) == len(tasks)
    for node in made.nodes.values():
        line, before = made.lines[node.row], ""
        while width(before) < node.column:
            before += line[len(before)]
        assert line[len(before) + 2 :].startswith(f"{node.id} "), (node, line)
