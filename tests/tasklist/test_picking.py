"""Which free task comes next."""

from __future__ import annotations

import pytest

from taskyard.tasklist.model import Task, TaskStatus
from taskyard.tasklist.picking import in_order


def task(number: int, *, priority: int | None = None, **fields: object) -> Task:
    extra: dict[str, object] = {} if priority is None else {"priority": priority}
    if "paths" in fields:
        extra["paths"] = fields.pop("paths")
    return Task(str(number), "x", metadata={"taskyard": extra})._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.req("L-08")
def test_the_lowest_id_comes_first_as_a_number() -> None:
    assert in_order([task(10), task(9), task(2)], lambda _: True, agent="ada") == ["2", "9", "10"]


@pytest.mark.req("L-08", "L-21")
def test_priority_comes_before_id_and_none_stands_in_the_middle() -> None:
    tasks = [task(1, priority=9), task(2), task(3, priority=1), task(4, priority=5), task(5, priority=1)]

    assert in_order(tasks, lambda _: True, agent="ada") == ["3", "5", "2", "4", "1"]


@pytest.mark.req("L-08", "L-07")
def test_what_is_owned_blocked_or_unsuitable_is_not_offered() -> None:
    tasks = [
        task(1, owner="bob"),
        task(2, blocked_by=("1",)),
        task(3, blocked_by=("4",)),
        task(4, status=TaskStatus.COMPLETED),
        task(5),
    ]

    assert in_order(tasks, lambda found: found.id != "5", agent="ada") == ["3"]


@pytest.mark.req("L-21")
def test_paths_somebody_works_on_are_left_out_where_overlap_is_refused() -> None:
    tasks = [task(1, owner="bob", paths=["src"]), task(2, paths=["src/a.py"]), task(3, paths=["docs"])]

    assert in_order(tasks, lambda _: True, agent="ada", policy="refuse") == ["3"]
    assert in_order(tasks, lambda _: True, agent="ada", policy="warn") == ["2", "3"]
    assert in_order(tasks, lambda _: True, agent="bob", policy="refuse") == ["2", "3"]
