"""The Markdown checklist."""

from __future__ import annotations

import pytest

from taskyard.tasks.model import Task, TaskStatus
from taskyard.tasks.transfer import export, parse_tasks


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
    call, find, write = parse_tasks(text, "markdown")
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
    assert [item.parent for item in parse_tasks(text, "markdown")] == [None, *(str(n) for n in range(1, 100))]


@pytest.mark.req("L-22")
def test_parents_in_a_loop_do_not_loop_the_export() -> None:
    tasks = [Task(a, f"t{a}", metadata={"taskyard": {"parent": b}}) for a, b in ("12", "21")]
    assert export(tasks, "markdown") == "- [ ] #1 t1 · part of #2\n  - [ ] #2 t2\n"
