"""A parent is there, and nobody is a part of himself."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import taskyard
from support.yards import on_disk, open_yard, write_task
from taskyard.errors import Conflict, Cycle, TaskNotFound
from taskyard.tasks.model import parent_of

pytestmark = pytest.mark.usefixtures("kept_in")


@pytest.fixture(params=["files", "memory:"])
def yard(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[taskyard.Yard]:
    with taskyard.open(tasks_dir=tmp_path, list="plan", agent="ada", store=request.param) as yard:
        for subject in "abc":
            yard.tasks.create(subject)
        yield yard


def parents(yard: taskyard.Yard) -> dict[str, str | None]:
    return {task.id: parent_of(task) for task in yard.tasks.list()}


@pytest.mark.req("L-21", "L-06")
@pytest.mark.parametrize(
    "call",
    [
        lambda tasks: tasks.create("d", parent="77"),
        lambda tasks: tasks.create("d", metadata={"taskyard": {"parent": "77"}}),
        lambda tasks: tasks.update("1", parent="77"),
        lambda tasks: tasks.update("1", metadata={"taskyard": {"parent": "77"}}),
        lambda tasks: tasks.update("1", status="completed", parent="77"),
    ],
)
def test_a_parent_that_is_not_there_is_refused(yard: taskyard.Yard, call: Callable[[object], object]) -> None:
    before = tuple(yard.tasks.list())
    with pytest.raises(TaskNotFound) as refusal:
        call(yard.tasks)

    assert (refusal.value.task_id, refusal.value.nearest) == ("77", ("3", "2", "1"))
    assert tuple(yard.tasks.list()) == before


@pytest.mark.req("L-21", "L-06")
def test_a_circle_of_parents_is_refused_with_its_path(yard: taskyard.Yard) -> None:
    yard.tasks.update("2", parent="1")
    yard.tasks.update("3", parent="2")
    for task_id, parent, path in (
        ("1", "1", ("1", "1")),
        ("1", "2", ("1", "2", "1")),
        ("1", "3", ("1", "3", "2", "1")),
    ):
        with pytest.raises(Cycle) as refusal:
            yard.tasks.update(task_id, parent=parent)
        assert refusal.value.path == path

    assert parents(yard) == {"1": None, "2": "1", "3": "2"}
    assert parent_of(yard.tasks.update("3", parent="1")) == "1"
    assert parent_of(yard.tasks.create("d", parent="3", blocked_by=["1"])) == "3"


@pytest.mark.req("L-21")
def test_a_task_whose_parent_was_deleted_is_changed_as_before(yard: taskyard.Yard) -> None:
    yard.tasks.update("2", parent="1")
    yard.tasks.delete("1")

    assert yard.tasks.update("2", subject="B", priority=3).subject == "B"
    assert yard.tasks.update("2", parent="1").extra["parent"] == "1"


@pytest.mark.req("L-21", "L-11")
def test_a_task_that_comes_back_below_its_own_parts_comes_back_without_its_parent(yard: taskyard.Yard) -> None:
    yard.tasks.update("2", parent="1", priority=2)
    yard.tasks.update("3", parent="2")
    yard.tasks.delete("2")
    yard.tasks.update("1", parent="3")

    assert yard.tasks.restore("2").extra == {"priority": 2}
    assert parents(yard) == {"1": "3", "2": None, "3": "2"}


@pytest.mark.in_files
@pytest.mark.req("L-21", "L-06")
def test_parents_that_another_program_wrote_in_a_circle_never_loop_us(tmp_path: Path) -> None:
    for task_id, parent in (("1", "2"), ("2", "1"), ("3", "9"), ("4", "4")):
        write_task(tmp_path / "plan", task_id, metadata={"taskyard": {"parent": parent}})
    with open_yard(tmp_path, "ada") as yard:
        assert parent_of(yard.tasks.create("five", parent="1")) == "1"
        assert parent_of(yard.tasks.update("3", parent="4")) == "4"
        assert yard.tasks.update("1", subject="still there").extra["parent"] == "2"
        yard.tasks.store.reserve()


@pytest.mark.in_files
@pytest.mark.req("L-21", "L-06")
def test_a_new_task_does_not_close_a_circle_over_an_id_that_was_named_before_it(tmp_path: Path) -> None:
    write_task(tmp_path / "plan", "1", metadata={"taskyard": {"parent": "2"}})
    with open_yard(tmp_path, "ada") as yard, pytest.raises(Cycle):
        yard.tasks.create("two", parent="1")
    assert not (tmp_path / "plan" / "2.json").exists()


@pytest.mark.in_files
@pytest.mark.req("L-21", "L-06", "L-04")
def test_two_who_make_each_others_task_the_parent_at_once_form_no_circle(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        for _ in range(20):
            pair = [yard.tasks.create("a").id, yard.tasks.create("b").id]
            start = threading.Barrier(2)
            refused: list[Conflict] = []

            def tie(one: str, other: str, start: threading.Barrier = start, refused: list[Conflict] = refused) -> None:
                with open_yard(tmp_path, f"agent-{one}") as mine:
                    start.wait(10)
                    try:
                        mine.tasks.update(one, parent=other)
                    except Cycle as error:
                        refused.append(error)

            threads = [threading.Thread(target=tie, args=(a, b)) for a, b in (pair, pair[::-1])]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(20)
            assert len(refused) == 1
            assert sorted("metadata" in on_disk(tmp_path / "plan", task_id) for task_id in pair) == [False, True]


@pytest.mark.in_files
@pytest.mark.req("L-21", "L-22")
@pytest.mark.parametrize("format", ["json", "markdown", "csv"])
def test_a_foreign_circle_of_parents_is_imported_without_one_of_them_and_says_so(tmp_path: Path, format: str) -> None:
    for task_id, parent in (("1", "3"), ("2", "1"), ("3", "2"), ("4", "3")):
        write_task(tmp_path / "plan", task_id, metadata={"taskyard": {"parent": parent}})
    with open_yard(tmp_path, "ada") as yard:
        text = yard.tasks.export(format)
    with open_yard(tmp_path, "ada", list="copy") as copy:
        added = copy.tasks.import_(text, format)
        assert {task.subject: parent_of(task) for task in added} == {
            task.subject: parent_of(task) for task in copy.tasks.list()
        }
        by_subject = {task.subject: task for task in copy.tasks.list()}
        names = {task.id: task.subject for task in copy.tasks.list()}
        tied = {subject: names.get(parent_of(task) or "") for subject, task in by_subject.items()}
        assert tied == {"Task 1": None, "Task 2": "Task 1", "Task 3": "Task 2", "Task 4": "Task 3"}
        assert [(task.subject, "parent in the file, 3," in note) for task in added for note in task.notes] == [
            ("Task 1", True)
        ]
        assert copy.tasks.import_(text, format) == ()


@pytest.mark.req("L-21", "L-22")
def test_a_file_whose_task_is_its_own_parent_is_imported(tmp_path: Path) -> None:
    text = json.dumps([{"id": "1", "subject": "A", "parent": "1"}])
    with open_yard(tmp_path, "ada") as yard:
        [task] = yard.tasks.import_(text)
    assert (parent_of(task), len(task.notes)) == (None, 1)
