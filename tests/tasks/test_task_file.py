"""A task as bytes, both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import BadValue
from taskyard.tasks.model import Task, TaskStatus
from taskyard.tasks.reader import (
    DeletedMarker,
    UnreadableTask,
    check_metadata,
    decode_task,
    encode_task,
    parse_object,
)

TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
IDS = st.lists(st.integers(1, 999_999_999).map(str), max_size=4, unique=True).map(tuple)
TASKS = st.builds(
    Task,
    st.integers(1, 999_999_999).map(str),
    TEXT,
    TEXT,
    st.none() | TEXT,
    st.none() | TEXT.filter(bool),
    st.sampled_from(TaskStatus),
    IDS,
    IDS,
    st.dictionaries(TEXT, JSON, max_size=4),
    st.none() | st.integers(1, 10**14),
    st.none() | st.integers(1, 10**14),
)


@pytest.mark.req("L-02")
@given(TASKS, st.dictionaries(TEXT.map(lambda text: f"x{text}"), JSON, max_size=3))
def test_every_task_reads_back_as_it_was_with_what_others_keep_in_its_file(task: Task, keep: dict[str, Any]) -> None:
    data = encode_task(task, keep)
    raw = parse_object(data)

    assert decode_task(task.id, raw) == task
    assert {key: raw[key] for key in keep} == keep
    assert encode_task(decode_task(task.id, raw), raw) == data


@pytest.mark.req("L-02")
@given(TASKS)
def test_the_layout_is_that_of_json_with_two_spaces_and_absent_optionals_are_absent(task: Task) -> None:
    data = encode_task(task)
    raw = json.loads(data)

    assert data == json.dumps(raw, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
    assert None not in raw.values()
    assert ("owner" in raw, "activeForm" in raw) == (task.owner is not None, task.active_form is not None)
    assert not data.endswith(b"\n")


@pytest.mark.req("L-02")
def test_a_lone_surrogate_another_program_escaped_goes_back_as_the_escape_it_was() -> None:
    fields = [b'"id": "1"', b'"subject": "\\ud800"', b'"description": ""', b'"status": "pending"']
    data = b"{\n  " + b",\n  ".join([*fields, b'"blocks": []', b'"blockedBy": []']) + b"\n}"

    assert encode_task(decode_task("1", parse_object(data))) == data


@pytest.mark.req("L-02")
def test_what_older_writers_left_out_is_filled_in() -> None:
    task = decode_task("7", parse_object(b'{"id": 7, "subject": "x", "metadata": null, "owner": "", "blocks": null}'))

    assert task == Task("7", "x")


@pytest.mark.req("L-02")
def test_ids_in_dependencies_may_be_numbers_and_what_is_no_id_blocks_nothing() -> None:
    raw = parse_object(
        b'{"subject": "x", "blockedBy": [3, "4", "4", "x", "01", null, -1, true, 1.5], "createdAt": 1.7e12}'
    )
    task = decode_task("1", raw)

    assert (task.blocked_by, task.created_at) == (("3", "4"), 1_700_000_000_000)


@pytest.mark.req("L-11")
def test_a_file_that_marks_a_deletion_is_no_task_and_no_damage() -> None:
    with pytest.raises(DeletedMarker):
        decode_task("1", {"status": "deleted"})


@pytest.mark.req("L-02")
@pytest.mark.parametrize(
    ("data", "why"), [(b"", "empty"), (b"\0\0 \n", "empty"), (b"{", "not JSON"), (b"[]", "no object")]
)
def test_what_is_no_task_says_why(data: bytes, why: str) -> None:
    with pytest.raises(UnreadableTask, match=why):
        parse_object(data)


@pytest.mark.req("L-02")
def test_nesting_is_read_up_to_what_can_be_written_back() -> None:
    def nested(levels: int) -> bytes:
        return b'{"subject": "x", "metadata": {"a": ' + b"[" * levels + b"]" * levels + b"}}"

    deep = parse_object(nested(190))
    assert parse_object(encode_task(decode_task("1", deep)))["metadata"] == deep["metadata"]
    with pytest.raises(UnreadableTask, match="deeper than 200"):
        parse_object(nested(300))
    wide = parse_object(b'{"subject": "x", "metadata": {"a": [' + b",".join([b"[]"] * 500) + b"]}}")
    assert decode_task("1", wide).subject == "x"


@given(st.dictionaries(TEXT, JSON, max_size=5))
def test_metadata_that_is_accepted_can_be_stored(metadata: dict[str, Any]) -> None:
    try:
        found = check_metadata(metadata)
    except BadValue:
        return
    assert parse_object(encode_task(Task("1", "x", metadata=found)))
