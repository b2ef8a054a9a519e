"""Two open claims on the same paths."""

from __future__ import annotations

import pytest

from taskyard.errors import PathsOverlap
from taskyard.tasklist.memory_store import MemoryStore
from taskyard.tasklist.model import Act, Draft, Task, TaskStatus
from taskyard.tasklist.overlap import overlaps, refuse_overlap, warnings


def draft(owner: str | None, *paths: str, status: TaskStatus = TaskStatus.PENDING) -> Draft:
    return Draft("x", "x", None, owner, status, metadata={"taskyard": {"paths": list(paths)}})


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for new in (
        draft(None, "src/a.py"),
        draft("bob", "src"),
        draft("bob", "src", status=TaskStatus.COMPLETED),
        draft(None, "src"),
        draft("ada", "docs"),
    ):
        store.create(new, Act("x", "create"))
    return store


@pytest.mark.req("L-21")
def test_only_open_claims_of_others_count(store: MemoryStore) -> None:
    found = overlaps(store.get("1"), store.list(), "ada")

    assert [(one.other, one.owner, one.paths) for one in found] == [("2", "bob", ("src/a.py",))]
    assert overlaps(store.get("1"), store.list(), "bob") == []
    assert overlaps(Task("9", "x"), store.list(), "ada") == []


@pytest.mark.req("L-21")
def test_by_setting_an_overlap_is_refused_warned_of_or_nothing(store: MemoryStore) -> None:
    with pytest.raises(PathsOverlap):
        refuse_overlap(store, "1", "ada")
    refuse_overlap(store, "5", "ada")
    mine = store.get("1")._replace(owner="ada")

    assert len(warnings(store, mine, "warn")) == 1
    assert warnings(store, mine, "off") == ()
    assert warnings(store, Task("9", "x", owner="ada"), "warn") == ()
