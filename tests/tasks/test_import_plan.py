"""What an import would add."""

from __future__ import annotations

import pytest
from hypothesis import given

from support.portable import apply, lists_of_tasks
from taskyard.errors import Cycle
from taskyard.tasks.memory_store import MemoryStore
from taskyard.tasks.model import Act, Task
from taskyard.tasks.transfer import IMPORT_FORMATS, export, parse_tasks, plan_import


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", IMPORT_FORMATS)
@pytest.mark.parametrize("list_name", ["", "release"])
@given(tasks=lists_of_tasks())
def test_importing_twice_adds_nothing(format: str, list_name: str, tasks: list[Task]) -> None:
    text = export(tasks, format, list_name=list_name)
    once = apply(parse_tasks(text, format), list_name="other")
    plan = plan_import(parse_tasks(text, format), once, list_name="other")
    assert plan.create == ()
    assert len(plan.skip) == len(tasks)
    assert plan_import(parse_tasks(text, format), tasks, list_name=list_name).create == ()


@pytest.mark.req("L-22")
def test_an_interrupted_import_is_finished_by_the_next_with_its_edges() -> None:
    tasks = [
        Task("1", "A", "a", blocked_by=("2",)),
        Task("2", "B", "b", blocks=("1",)),
        Task("3", "C", blocked_by=("1",)),
    ]
    text = export(tasks, "json", list_name="far")
    whole = apply(parse_tasks(text, "json"))
    for survivors in ([whole[0]], [whole[1]], [whole[0], whole[2]]):
        bare = [task._replace(blocks=(), blocked_by=()) for task in survivors]
        finished = {task.subject: task for task in apply(parse_tasks(text, "json"), bare)}
        assert len(finished) == 3
        if survivors[0].subject == "A":
            assert finished["A"].blocked_by == (finished["B"].id,)


@pytest.mark.req("L-22")
def test_a_task_is_recognised_by_its_twin_in_another_system_whatever_it_is_called_now() -> None:
    def mirrored(task_id: str, subject: str, number: str) -> Task:
        return Task(task_id, subject, metadata={"taskyard": {"external": {"system": "github", "id": number}}})

    plan = plan_import(
        parse_tasks(export([mirrored("1", "Old name", "77")], "json"), "json"), [mirrored("5", "New name", "77")]
    )
    assert [(skipped.task_id, skipped.why) for skipped in plan.skip] == [("5", "external")]
    plan = plan_import(
        parse_tasks(export([mirrored("1", "Same", "77")], "json"), "json"), [mirrored("5", "Same", "78")]
    )
    assert len(plan.create) == 1


@pytest.mark.req("L-22")
def test_a_renamed_task_is_still_known_by_the_list_and_id_it_came_from() -> None:
    text = export([Task("3", "Old", created_at=10)], "json", list_name="far")
    [copy] = apply(parse_tasks(text, "json"))
    renamed = copy._replace(subject="New", description="changed")
    assert plan_import(parse_tasks(text, "json"), [renamed]).create == ()
    other_machine = export([Task("3", "Unrelated", created_at=99)], "json", list_name="far")
    assert len(plan_import(parse_tasks(other_machine, "json"), [renamed]).create) == 1


@pytest.mark.req("L-22")
def test_two_tasks_that_look_alike_stay_two() -> None:
    text = "- [ ] Fix the tests\n- [ ] Fix the tests\n"
    once = apply(parse_tasks(text, "markdown"))
    assert len(once) == 2
    assert len(apply(parse_tasks(text, "markdown"), once)) == 2
    assert len(apply(parse_tasks(text, "markdown"), once[:1])) == 2


@pytest.mark.req("L-22", "L-06")
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("json", '[{"id":1,"subject":"A","blockedBy":[2]},{"id":2,"subject":"B","blockedBy":["1"]}]'),
        ("csv", "id,subject,blocked_by\n1,A,2\n2,B,1\n"),
        ("markdown", "- [ ] #1 A · after #2\n- [ ] #2 B · after #1\n"),
    ],
)
def test_a_circle_in_the_input_is_refused_with_its_path(format: str, text: str) -> None:
    with pytest.raises(Cycle) as refusal:
        plan_import(parse_tasks(text, format), [])
    assert sorted(set(refusal.value.path)) == ["1", "2"]


@pytest.mark.req("L-22", "L-06")
def test_a_circle_through_tasks_already_there_is_refused() -> None:
    text = "- [ ] #1 A · after #2\n- [ ] #2 New · after #3\n- [ ] #3 B\n"
    there = [Task("7", "A"), Task("8", "B", blocked_by=("7",))]
    with pytest.raises(Cycle) as refusal:
        plan_import(parse_tasks(text, "markdown"), there)
    assert {"7", "8", "2 (new)"} == set(refusal.value.path)


@pytest.mark.req("L-22")
@given(tasks=lists_of_tasks())
def test_a_plan_is_carried_out_by_a_store_as_it_stands(tasks: list[Task]) -> None:
    store = MemoryStore("copy")
    text = export(tasks, "json", list_name="release")
    for _ in range(2):
        plan = plan_import(parse_tasks(text, "json"), store.list(), list_name=store.name)
        ids = plan.known_ids()
        for item in plan.create:
            ids[item.key] = store.create(plan.draft(item, ids), Act("me", "import")).id
    made = {task.subject: task for task in store.list()}
    assert len(store.list()) == len(tasks)
    if len(made) == len(tasks):
        numbers = {task.id: made[task.subject].id for task in tasks}
        for task in tasks:
            assert set(made[task.subject].blocked_by) == {numbers[blocker] for blocker in task.blocked_by}
