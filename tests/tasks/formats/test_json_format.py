"""The JSON format."""

from __future__ import annotations

import pytest

from taskyard.tasks.model import Task
from taskyard.tasks.transfer import export, parse_tasks


@pytest.mark.req("L-22")
def test_json_is_read_from_task_files_and_from_the_command_line_too() -> None:
    printed = '{"schema_version":1,"data":[{"id":"1","subject":"A","active_form":null,"blocked_by":[],"lease":null}]}'
    assert parse_tasks(printed, "json")[0].draft.subject == "A"
    older = '[{"id":1,"title":"A"},{"id":2,"title":"B","dependencies":[1],"blocks":[]}]'
    assert parse_tasks(older, "json")[1].blocked_by == ("1",)


@pytest.mark.req("L-22")
def test_lone_surrogates_in_foreign_metadata_leave_as_ascii_escapes() -> None:
    text = export([Task("1", "A", metadata={"x": "\ud800"})], "json")
    assert "\\ud800" in text
    text.encode("utf-8")
