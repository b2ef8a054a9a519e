"""What each format looks like."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasklist.model import Task, TaskStatus
from taskyard.tasklist.portable import export, parse

HOSTILE = 'a"] --> x; \\" } <script> `b` #quot; %% \n end'
FORMULA = tuple("=+-@\t\r\n＝＋－＠")


@pytest.mark.req("L-22")
def test_markdown_reads_like_a_checklist_somebody_wrote() -> None:
    tasks = [
        Task("1", "Freeze the API", "Freeze the API", owner="ada", status=TaskStatus.COMPLETED),
        Task("2", "Migrate · the <schema>", "- [ ] no task\n\nend", status=TaskStatus.IN_PROGRESS, blocked_by=("1",)),
        Task("3", "Backfill", metadata={"taskyard": {"parent": "2", "priority": 2, "labels": ["db"]}}),
    ]
    assert export(tasks, "markdown", list_name="release") == (
        "# release\n<!-- taskyard list: release -->\n\n"
        "- [x] #1 Freeze the API · @ada\n"
        "- [ ] #2 Migrate \\· the \\<schema> · in progress · after #1\n"
        "  > - [ ] no task\n  >\n  > end\n"
        "  - [ ] #3 Backfill · priority 2 · label db\n"
    )


@pytest.mark.req("L-22")
def test_a_checklist_written_by_hand_needs_no_ids_and_other_text_is_left_alone() -> None:
    text = (
        "# Plan\n\nSome words.\n\n* [ ] Call Ada · tomorrow\n\n    about the schema\n"
        "\t- [X] Find her number\n- no task\n\n```\n- [ ] an example\n```\n- [~] #7 Write · @bob\r\n"
    )
    call, find, write = parse(text, "markdown")
    assert (call.draft.subject, call.draft.description) == ("Call Ada · tomorrow", "about the schema")
    assert (find.draft.status, find.parent) == (TaskStatus.COMPLETED, call.key)
    assert (write.key, write.draft.owner, write.draft.status) == ("7", "bob", TaskStatus.IN_PROGRESS)
    assert write.parent is None


@pytest.mark.req("L-22")
def test_a_chain_of_parents_deeper_than_a_page_is_written_at_the_margin_and_found_again() -> None:
    tasks = [Task("1", "t")]
    tasks += [Task(str(n), f"t{n}", metadata={"taskyard": {"parent": str(n - 1)}}) for n in range(2, 101)]
    text = export(tasks, "markdown")
    assert max(len(row) - len(row.lstrip()) for row in text.splitlines()) <= 40
    assert [item.parent for item in parse(text, "markdown")] == [None, *(str(n) for n in range(1, 100))]


@pytest.mark.req("L-22")
def test_parents_in_a_loop_do_not_loop_the_export() -> None:
    tasks = [Task(a, f"t{a}", metadata={"taskyard": {"parent": b}}) for a, b in ("12", "21")]
    assert export(tasks, "markdown") == "- [ ] #1 t1 · part of #2\n  - [ ] #2 t2\n"


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
def test_a_formula_in_csv_comes_back_without_its_guard() -> None:
    subjects = ["=cmd|' /C calc'!A0", "'=1", "-1", "'quoted'"]
    text = export([Task(str(n), subject) for n, subject in enumerate(subjects, 1)], "csv")
    assert [item.draft.subject for item in parse(text, "csv")] == subjects


@pytest.mark.req("L-22")
def test_csv_from_other_hands_may_use_semicolons_a_byte_order_mark_and_other_words() -> None:
    text = "\ufeffTitle;Assignee;Status;Depends on;ID\r\nB;bob;In progress;#1;2\r\nA;;done;;1\r\n;;;;\r\n"
    first, second = parse(text, "csv")
    assert (first.draft.subject, first.draft.owner, first.blocked_by) == ("B", "bob", ("1",))
    assert first.draft.status is TaskStatus.IN_PROGRESS
    assert second.draft.status is TaskStatus.COMPLETED


@pytest.mark.req("L-22")
def test_a_description_of_the_longest_kind_fits_a_csv_cell() -> None:
    long = "x\n" * 100_000
    assert parse(export([Task("1", "A", long)], "csv"), "csv")[0].draft.description == long


@pytest.mark.req("L-22")
def test_json_is_read_from_task_files_and_from_the_command_line_too() -> None:
    printed = '{"schema_version":1,"data":[{"id":"1","subject":"A","active_form":null,"blocked_by":[],"lease":null}]}'
    assert parse(printed, "json")[0].draft.subject == "A"
    older = '[{"id":1,"title":"A"},{"id":2,"title":"B","dependencies":[1],"blocks":[]}]'
    assert parse(older, "json")[1].blocked_by == ("1",)


@pytest.mark.req("L-22")
def test_lone_surrogates_in_foreign_metadata_leave_as_ascii_escapes() -> None:
    text = export([Task("1", "A", metadata={"x": "\ud800"})], "json")
    assert "\\ud800" in text
    text.encode("utf-8")


@pytest.mark.req("L-22")
def test_dot_draws_blockers_and_parts_and_quotes_what_is_hostile() -> None:
    parent = {"taskyard": {"parent": "1"}}
    text = export([Task("1", HOSTILE), Task("2", "B", blocked_by=("1",), metadata=parent)], "dot", list_name="r")
    assert text.splitlines()[0] == 'digraph "r" {'
    assert '  "1" -> "2";' in text
    assert '  "1" -> "2" [style=dotted, arrowhead=none];' in text
    label = text.splitlines()[3]
    assert label.startswith('  "1" [label="#1 a\\"] --> x; \\\\\\" } <script>')
    assert len(text.splitlines()) == 8


@pytest.mark.req("L-22")
@given(st.text(max_size=120).filter(lambda text: bool(text.strip())))
def test_no_subject_breaks_out_of_a_mermaid_label(subject: str) -> None:
    first, label, *rest = export([Task("1", subject), Task("2", "B", blocked_by=("1",))], "mermaid").split("\n")
    assert first == "flowchart LR"
    assert label.startswith('  t1["#35;1 ')
    assert label.endswith('"]:::pending')
    assert not set(label[6:-13]) & set('"`<>[]{}|\\&%\n')
    assert rest[1] == "  t1 --> t2"
