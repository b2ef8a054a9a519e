"""CSV for spreadsheets."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import Task, TaskStatus
from taskyard.tasks.transfer import export, parse_tasks

FORMULA = tuple("=+-@\t\r\n＝＋－＠")


@pytest.mark.req("L-22")
@given(
    st.sampled_from(FORMULA),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.sampled_from(["", "'"]),
)
def test_no_csv_cell_begins_like_a_formula(first: str, rest: str, quote: str) -> None:
    text = export([Task("1", "A", quote + first + rest, owner=first + "cmd")], "csv")
    for row in csv.reader(io.StringIO(text, newline="")):
        assert not any(cell.startswith(FORMULA) for cell in row)


@pytest.mark.req("L-22")
def test_a_carriage_return_begins_no_row_and_so_no_formula() -> None:
    text = export([Task("1", "A", "text\r=cmd|' /C calc'!A0")], "csv")
    rows = list(csv.reader(io.StringIO(text, newline="")))

    assert len(rows) == 2
    assert not any(cell.startswith(FORMULA) for row in rows for cell in row)
    assert parse_tasks(text, "csv")[0].draft.description == "text\r=cmd|' /C calc'!A0"


@pytest.mark.req("L-22")
def test_a_formula_in_csv_comes_back_without_its_guard() -> None:
    subjects = ["=cmd|' /C calc'!A0", "'=1", "-1", "'quoted'"]
    text = export([Task(str(n), subject) for n, subject in enumerate(subjects, 1)], "csv")
    assert [item.draft.subject for item in parse_tasks(text, "csv")] == subjects


@pytest.mark.req("L-22")
def test_csv_from_other_hands_may_use_semicolons_a_byte_order_mark_and_other_words() -> None:
    text = "\ufeffTitle;Assignee;Status;Depends on;ID\r\nB;bob;In progress;#1;2\r\nA;;done;;1\r\n;;;;\r\n"
    first, second = parse_tasks(text, "csv")
    assert (first.draft.subject, first.draft.owner, first.blocked_by) == ("B", "bob", ("1",))
    assert first.draft.status is TaskStatus.IN_PROGRESS
    assert second.draft.status is TaskStatus.COMPLETED


@pytest.mark.req("L-22")
def test_a_description_of_the_longest_kind_fits_a_csv_cell() -> None:
    long = "x\n" * 100_000
    assert parse_tasks(export([Task("1", "A", long)], "csv"), "csv")[0].draft.description == long
