"""The optional fields under `metadata.taskyard`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import BadId, BadText, BadValue
from taskyard.tasks import model
from taskyard.tasks.model import Task

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)

FULL: dict[str, Any] = {
    "priority": 2,
    "labels": ["db", "urgent"],
    "due": "2026-05-01T17:00:00Z",
    "parent": "3",
    "external": {"system": "jira", "id": "OPS-7", "url": "https://jira.example/OPS-7"},
    "requires": ["gpu"],
    "paths": ["src/db", "docs/*.md"],
    "acceptance": {"command": "make test", "cwd": "api", "timeout": 60},
}


def carrying(**fields: Any) -> Task:
    return Task("1", "A", metadata={"taskyard": fields})


@pytest.mark.req("L-21")
def test_every_field_is_stored_as_given_and_read_back() -> None:
    assert model.check_extras(**FULL) == FULL
    task = carrying(**FULL)
    assert model.priority_of(task) == 2
    assert model.labels_of(task) == ("db", "urgent")
    assert model.due_of(task) == "2026-05-01T17:00:00Z"
    assert model.parent_of(task) == "3"
    assert model.external_of(task) == ("jira", "OPS-7", "https://jira.example/OPS-7")
    assert model.requires_of(task) == ("gpu",)
    assert model.paths_of(task) == ("src/db", "docs/*.md")
    assert model.acceptance_of(task) == ("make test", "api", 60.0)


@pytest.mark.req("L-21")
def test_what_is_not_given_is_not_stored_and_reads_as_unset() -> None:
    assert model.check_extras() == {}
    bare = Task("1", "A")
    assert model.priority_of(bare) == 5
    assert model.requires_of(bare) == model.labels_of(bare) == model.paths_of(bare) == ()
    assert model.due_of(bare) is model.parent_of(bare) is None
    assert model.external_of(bare) is None
    assert model.acceptance_of(bare) is None


@pytest.mark.req("L-21")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", 0),
        ("priority", 10),
        ("priority", True),
        ("priority", "1"),
        ("labels", "db"),
        ("labels", ["a,b"]),
        ("labels", ["x"] * 51),
        ("due", "tomorrow"),
        ("due", 20260501),
        ("external", {"system": "jira", "id": "1", "url": "javascript:alert(1)"}),
        ("external", {"system": "jira", "id": "1", "colour": "red"}),
        ("external", "jira#1"),
        ("acceptance", {"command": "true", "timeout": 0}),
        ("acceptance", {"command": "true", "timeout": float("nan")}),
        ("acceptance", {"command": "true", "timeout": True}),
        ("acceptance", "true"),
    ],
)
def test_a_value_out_of_range_is_refused_and_named(field: str, value: object) -> None:
    with pytest.raises(BadValue) as refusal:
        model.check_extras(**{field: value})
    assert refusal.value.field.startswith(field)


@pytest.mark.req("L-21")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("labels", [""]),
        ("labels", [3]),
        ("requires", ["a\nb"]),
        ("paths", ["a\x00b"]),
        ("paths", ["x" * 501]),
        ("external", {"system": "", "id": "1"}),
        ("external", {"system": "jira"}),
        ("acceptance", {"command": " "}),
        ("acceptance", {}),
    ],
)
def test_a_text_nobody_can_use_is_refused(field: str, value: object) -> None:
    with pytest.raises(BadText):
        model.check_extras(**{field: value})


@pytest.mark.req("L-21")
def test_a_parent_is_a_task_id() -> None:
    assert model.check_extras(parent=12) == {"parent": "12"}
    with pytest.raises(BadId):
        model.check_extras(parent="../12")


@pytest.mark.req("L-21")
@given(st.dictionaries(st.sampled_from(model.EXTRAS), anything), anything)
def test_reading_odd_metadata_never_fails(fields: dict[str, Any], instead: object) -> None:
    for task in (carrying(**fields), Task("1", "A", metadata={"taskyard": instead})):
        assert 1 <= model.priority_of(task) <= 9
        for read in (model.labels_of, model.requires_of, model.paths_of):
            assert all(isinstance(word, str) for word in read(task))
        for look in (model.due_of, model.parent_of, model.external_of, model.acceptance_of):
            look(task)


@pytest.mark.req("L-21")
@given(st.sampled_from(model.EXTRAS), anything)
def test_whatever_the_check_lets_through_is_read_back(field: str, value: object) -> None:
    try:
        checked = model.check_extras(**{field: value})
    except (BadValue, BadText, BadId):
        return
    task = carrying(**checked)
    if value is not None and value != []:
        readers: dict[str, Any] = {name: getattr(model, f"{name}_of") for name in model.EXTRAS}
        assert readers[field](task._replace(id="999999999"))
