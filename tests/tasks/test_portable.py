"""Export, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.portable import apply, described, json_values, line, lists_of_tasks, subjects
from taskyard.errors import BadName, BadText, BadValue, TaskyardError
from taskyard.tasks.model import Draft, Task, TaskStatus
from taskyard.tasks.transfer import EXPORT_FORMATS, IMPORT_FORMATS, export, parse_tasks, plan_import

DOING = TaskStatus.IN_PROGRESS


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", ["json", "csv"])
@given(tasks=lists_of_tasks())
def test_a_list_exported_and_imported_elsewhere_is_the_same_list(format: str, tasks: list[Task]) -> None:
    assert described(apply(parse_tasks(export(tasks, format), format))) == described(tasks)


@pytest.mark.req("L-22")
@given(tasks=lists_of_tasks())
def test_a_markdown_checklist_comes_back_as_the_same_list_with_parts_below_their_parents(tasks: list[Task]) -> None:
    back = {item.key: item for item in parse_tasks(export(tasks, "markdown", list_name="release"), "markdown")}
    assert set(back) == {task.id for task in tasks}
    for task in tasks:
        item = back[task.id]
        assert item.draft.subject == task.subject
        assert (item.draft.description or task.subject) == task.description
        assert (item.draft.owner, item.draft.status) == (task.owner, task.status)
        assert set(item.blocked_by) == set(task.blocked_by)
        assert item.parent == task.extra.get("parent")
        assert item.source == "release"
        kept = {name: value for name, value in task.extra.items() if name != "parent"}
        assert dict(item.draft.metadata.get("taskyard", {})) == kept  # type: ignore[call-overload]  # an object


@pytest.mark.req("L-22")
@given(metadata=st.dictionaries(line, json_values, max_size=4), active_form=st.none() | subjects)
def test_json_keeps_every_field_and_all_metadata(metadata: dict[str, Any], active_form: str | None) -> None:
    metadata.pop("_internal", None)
    task = Task("7", "A", "b", active_form, "ada", DOING, metadata=metadata, created_at=5, updated_at=6)
    [item] = parse_tasks(export([task], "json", list_name="x"), "json")
    assert item.key == "7"
    assert item.source == "x"
    assert item.created_at == 5
    assert item.draft == Draft("A", "b", active_form, "ada", DOING, metadata=metadata)


@pytest.mark.req("L-22")
def test_a_second_export_equals_the_first_but_for_ids_and_times() -> None:
    tasks = [
        Task("4", "Ship", "d", blocks=(), blocked_by=("9",), metadata={"a": [1, {"b": None}]}, created_at=1),
        Task("9", "Build", "e", "Building", "ada", DOING, blocks=("4",), metadata={"taskyard": {"parent": "4"}}),
    ]
    text = export(tasks, "json", list_name="release")
    again = export(apply(parse_tasks(text, "json")), "json", list_name="release")
    renamed = again.replace('"1"', '"4"').replace('"2"', '"9"')

    def timeless(text: str) -> list[str]:
        return [row.rstrip(",") for row in text.splitlines() if "createdAt" not in row]

    assert timeless(renamed) == timeless(text)


@pytest.mark.req("L-22", "L-12")
@pytest.mark.parametrize("format", EXPORT_FORMATS)
def test_trackers_and_references_nobody_can_follow_stay_behind(format: str) -> None:
    tracker = Task("1", "secret-teammate", metadata={"_internal": True})
    text = export([tracker, Task("2", "Open", blocked_by=("1", "9"))], format)
    assert "Open" in text
    assert "secret-teammate" not in text
    if format in IMPORT_FORMATS:
        assert parse_tasks(text, format)[0].blocked_by == ()


@pytest.mark.req("L-22")
@pytest.mark.parametrize(
    ("format", "text", "about"),
    [
        ("json", "[" * 200_000, "The file"),
        ("json", '{"tasks": 3}', "The file"),
        ("json", "", "The file"),
        ("json", '[{"subject":"A","metadata":{"x":NaN}}]', "The file"),
        ("json", "[" + "9" * 5_000 + "]", "The file"),
        ("json", '{"schema_version":2,"tasks":[]}', "schema_version"),
        ("json", "[3]", "tasks[0]"),
        ("json", '[{"subject":"A"},{"id":"1"}]', "subject in tasks[1]"),
        ("json", '[{"subject":3}]', "subject in tasks[0]"),
        ("json", '[{"subject":"A","status":"odd"}]', "status in tasks[0]"),
        ("json", '[{"subject":"A","status":["pending"]}]', "status in tasks[0]"),
        ("json", '[{"subject":"A","owner":{"x":1}}]', "owner in tasks[0]"),
        ("json", '[{"subject":"A","metadata":[1]}]', "metadata in tasks[0]"),
        ("json", '[{"subject":"A","blockedBy":"1"}]', "blocked_by in tasks[0]"),
        ("json", '[{"subject":"A","blockedBy":["9"]}]', "blocked_by in tasks[0]"),
        ("json", '[{"subject":"A","id":"1"},{"subject":"B","id":1}]', "id in tasks[1]"),
        ("json", '[{"subject":"A","colour":"red"}]', "The field of tasks[0]"),
        ("json", '[{"subject":"\\ud800"}]', "subject in tasks[0]"),
        ("csv", "id;title\n1;\n", "subject in line 2"),
        ("csv", "id,subject,colour\n", "The column"),
        ("csv", "id,id,subject\n", "The column"),
        ("csv", "id,status\n1,done\n", "The header"),
        ("csv", "subject,priority\n\nA,high\n", "priority in line 3"),
        ("csv", "subject,due\nA,soon\n", "due in line 2"),
        ("csv", "subject\nA,b\n", "line 2"),
        ("csv", 'subject\n"A" b\n', "line 2"),
        ("markdown", "- [?] A\n", "The box in line 1"),
        ("markdown", "# T\n\n- [ ]\n", "subject in line 3"),
        ("markdown", "- [ ] #1 A\n- [ ] #1 B\n", "id in line 2"),
        ("markdown", "- [ ] A · after #4\n", "blocked_by in line 1"),
        ("markdown", "- [ ] A · priority 0\n", "priority in line 1"),
    ],
)
def test_malformed_input_is_refused_and_the_place_named(format: str, text: str, about: str) -> None:
    with pytest.raises((BadValue, BadText)) as refusal:
        parse_tasks(text, format)
    assert refusal.value.facts()["field"] == about
    assert about in str(refusal.value)


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", IMPORT_FORMATS)
@given(text=st.text(max_size=80) | st.text(st.sampled_from(' -[]x#12A\n>{}":,'), max_size=60))
def test_random_text_is_read_or_refused_but_never_breaks_us(format: str, text: str) -> None:
    try:
        plan_import(parse_tasks(text, format), [])
    except TaskyardError:
        pass


@pytest.mark.req("L-22")
def test_a_file_too_large_to_be_a_list_is_refused_unread() -> None:
    with pytest.raises(BadValue, match="64,000,001"):
        parse_tasks(" " * 64_000_001, "json")


@pytest.mark.req("L-22")
def test_an_unknown_format_and_a_list_without_a_possible_name_are_refused() -> None:
    with pytest.raises(BadValue, match="mermaid"):
        export([], "yaml")
    with pytest.raises(BadValue, match="markdown"):
        parse_tasks("", "mermaid")
    with pytest.raises(BadName):
        export([], "json", list_name="x" * 201)


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", ["markdown", "csv"])
@pytest.mark.parametrize("list_name", ["", "release"])
def test_control_characters_of_another_program_leave_harmless_and_come_in_again(format: str, list_name: str) -> None:
    bad = "red \x1b[31m\x07 \x9b \x7f \x00 \ud800"
    ours = {"labels": [bad], "requires": ["\x1b"], "external": {"system": "git\x07hub", "id": "1\n2"}, "parent": "1"}
    tasks = [
        Task("1", bad, bad, owner="ada\t\x1b"),
        Task("2", "two\nlines", f"{bad}\nnext\tline", f"doing {bad}", metadata={"taskyard": ours}),
    ]

    text = export(tasks, format, list_name=list_name)

    assert not [char for char in text if char not in "\t\n" and (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0)]
    assert "\ud800" not in text
    [one, two] = parse_tasks(text, format)
    assert (one.draft.subject, one.draft.owner) == ("red \\x1b[31m\\x07 \\x9b \\x7f \\x00 \\ud800", "ada \\x1b")
    assert (two.draft.subject, two.draft.description[-9:]) == ("two lines", "next\tline")
    assert plan_import(parse_tasks(text, format), tasks, list_name=list_name).create == ()
    assert plan_import(parse_tasks(text, format), apply(parse_tasks(text, format)), list_name="other").create == ()
