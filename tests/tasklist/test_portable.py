"""Export, import, and import again."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import BadName, BadText, BadValue, Cycle, TaskyardError
from taskyard.tasklist.memory_store import MemoryStore
from taskyard.tasklist.model import Act, Draft, Task, TaskStatus
from taskyard.tasklist.portable import READ, WRITTEN, Imported, export, parse, plan_import

if TYPE_CHECKING:
    from collections.abc import Sequence

PENDING, DOING, DONE = TaskStatus


def apply(imported: Sequence[Imported], existing: Sequence[Task] = (), *, list_name: str = "") -> list[Task]:
    """Carry out a plan as a store would: ids counted on, edges kept on both sides."""
    tasks = {task.id: task for task in existing}
    plan = plan_import(imported, existing, list_name=list_name)
    ids, numbers = plan.known_ids(), count(max(map(int, tasks), default=0) + 1)
    for item in plan.create:
        draft: Draft = plan.draft(item, ids)
        made = Task(str(next(numbers)), *draft)
        ids[item.key] = made.id
        tasks[made.id] = made._replace(description=made.description or made.subject, created_at=1000 + int(made.id))
        for other in made.blocks:
            tasks[other] = tasks[other]._replace(blocked_by=(*tasks[other].blocked_by, made.id))
        for other in made.blocked_by:
            tasks[other] = tasks[other]._replace(blocks=(*tasks[other].blocks, made.id))
    for key, parent in plan.late_parents:
        task = tasks[ids[key]]
        ours = dict(task.extra) | {"parent": ids[parent]}
        tasks[task.id] = task._replace(metadata={**task.metadata, "taskyard": ours})
    return list(tasks.values())


line = st.text(st.characters(exclude_categories=("Cc", "Cs"), include_characters="\t"), max_size=30)
subjects = line.filter(lambda text: bool(text.strip())).map(str.strip)
prose = st.lists(line, max_size=4).map("\n".join)
names = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=10).map(str.strip).filter(bool)
words = st.lists(
    st.text(st.sampled_from("ab ·\\<=+-@'é"), min_size=1, max_size=5).map(str.strip).filter(bool),
    max_size=3,
    unique=True,
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | line,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(line, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def lists_of_tasks(draw: st.DrawFn) -> list[Task]:
    """A list as the store would hold it: any fields, no circles, both sides of every edge."""
    size = draw(st.integers(0, 5))
    ids = draw(st.lists(st.integers(1, 30).map(str), min_size=size, max_size=size, unique=True).map(sorted))
    tasks: dict[str, Task] = {}
    order = draw(st.permutations(ids))
    for place, task_id in enumerate(order):
        ours: dict[str, Any] = {}
        if draw(st.booleans()):
            ours = {"priority": draw(st.integers(1, 9)), "due": "2026-05-01T17:00:00+02:00"}
        if labels := draw(words):
            ours["labels"] = labels
        if place and draw(st.booleans()):
            ours["parent"] = order[draw(st.integers(0, place - 1))]
        blockers = tuple(draw(st.lists(st.sampled_from(order[:place]), unique=True, max_size=2))) if place else ()
        subject = draw(subjects)
        tasks[task_id] = Task(
            task_id,
            subject,
            draw(prose) or subject,
            owner=draw(st.none() | names),
            status=draw(st.sampled_from(TaskStatus)),
            blocked_by=blockers,
            metadata={"taskyard": ours} if ours else {},
            created_at=draw(st.integers(1, 10**14)),
        )
    return [tasks[task_id] for task_id in ids]


def described(tasks: Sequence[Task]) -> list[object]:
    """What must survive: everything but the numbers themselves, with references by place."""
    place = {task.id: at for at, task in enumerate(tasks)}
    found: list[object] = []
    for task in tasks:
        metadata: dict[str, Any] = json.loads(json.dumps(task.metadata))
        ours = metadata.get("taskyard", {})
        ours.pop("imported", None)
        if "parent" in ours:
            ours["parent"] = place[ours["parent"]]
        if not ours:
            metadata.pop("taskyard", None)
        blockers = sorted(place[blocker] for blocker in task.blocked_by)
        description = task.description or task.subject
        found.append((task.subject, description, task.active_form, task.owner, task.status, blockers, metadata))
    return found


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", ["json", "csv"])
@given(tasks=lists_of_tasks())
def test_a_list_exported_and_imported_elsewhere_is_the_same_list(format: str, tasks: list[Task]) -> None:
    assert described(apply(parse(export(tasks, format), format))) == described(tasks)


@pytest.mark.req("L-22")
@given(tasks=lists_of_tasks())
def test_a_markdown_checklist_comes_back_as_the_same_list_with_parts_below_their_parents(tasks: list[Task]) -> None:
    back = {item.key: item for item in parse(export(tasks, "markdown", list_name="release"), "markdown")}
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
    [item] = parse(export([task], "json", list_name="x"), "json")
    assert item.key == "7"
    assert item.source == "x"
    assert item.created_at == 5
    assert item.draft == Draft("A", "b", active_form, "ada", DOING, metadata=metadata)


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", READ)
@pytest.mark.parametrize("list_name", ["", "release"])
@given(tasks=lists_of_tasks())
def test_importing_twice_adds_nothing(format: str, list_name: str, tasks: list[Task]) -> None:
    text = export(tasks, format, list_name=list_name)
    once = apply(parse(text, format), list_name="other")
    plan = plan_import(parse(text, format), once, list_name="other")
    assert plan.create == ()
    assert len(plan.skip) == len(tasks)
    assert plan_import(parse(text, format), tasks, list_name=list_name).create == ()


@pytest.mark.req("L-22")
def test_a_second_export_equals_the_first_but_for_ids_and_times() -> None:
    tasks = [
        Task("4", "Ship", "d", blocks=(), blocked_by=("9",), metadata={"a": [1, {"b": None}]}, created_at=1),
        Task("9", "Build", "e", "Building", "ada", DOING, blocks=("4",), metadata={"taskyard": {"parent": "4"}}),
    ]
    text = export(tasks, "json", list_name="release")
    again = export(apply(parse(text, "json")), "json", list_name="release")
    renamed = again.replace('"1"', '"4"').replace('"2"', '"9"')

    def timeless(text: str) -> list[str]:
        return [row.rstrip(",") for row in text.splitlines() if "createdAt" not in row]

    assert timeless(renamed) == timeless(text)


@pytest.mark.req("L-22")
def test_an_interrupted_import_is_finished_by_the_next_with_its_edges() -> None:
    tasks = [
        Task("1", "A", "a", blocked_by=("2",)),
        Task("2", "B", "b", blocks=("1",)),
        Task("3", "C", blocked_by=("1",)),
    ]
    text = export(tasks, "json", list_name="far")
    whole = apply(parse(text, "json"))
    for survivors in ([whole[0]], [whole[1]], [whole[0], whole[2]]):
        bare = [task._replace(blocks=(), blocked_by=()) for task in survivors]
        finished = {task.subject: task for task in apply(parse(text, "json"), bare)}
        assert len(finished) == 3
        if survivors[0].subject == "A":
            assert finished["A"].blocked_by == (finished["B"].id,)


@pytest.mark.req("L-22")
def test_a_task_is_recognised_by_its_twin_in_another_system_whatever_it_is_called_now() -> None:
    def mirrored(task_id: str, subject: str, number: str) -> Task:
        return Task(task_id, subject, metadata={"taskyard": {"external": {"system": "github", "id": number}}})

    plan = plan_import(
        parse(export([mirrored("1", "Old name", "77")], "json"), "json"), [mirrored("5", "New name", "77")]
    )
    assert [(skipped.task_id, skipped.why) for skipped in plan.skip] == [("5", "external")]
    plan = plan_import(parse(export([mirrored("1", "Same", "77")], "json"), "json"), [mirrored("5", "Same", "78")])
    assert len(plan.create) == 1


@pytest.mark.req("L-22")
def test_a_renamed_task_is_still_known_by_the_list_and_id_it_came_from() -> None:
    text = export([Task("3", "Old", created_at=10)], "json", list_name="far")
    [copy] = apply(parse(text, "json"))
    renamed = copy._replace(subject="New", description="changed")
    assert plan_import(parse(text, "json"), [renamed]).create == ()
    other_machine = export([Task("3", "Unrelated", created_at=99)], "json", list_name="far")
    assert len(plan_import(parse(other_machine, "json"), [renamed]).create) == 1


@pytest.mark.req("L-22")
def test_two_tasks_that_look_alike_stay_two() -> None:
    text = "- [ ] Fix the tests\n- [ ] Fix the tests\n"
    once = apply(parse(text, "markdown"))
    assert len(once) == 2
    assert len(apply(parse(text, "markdown"), once)) == 2
    assert len(apply(parse(text, "markdown"), once[:1])) == 2


@pytest.mark.req("L-22", "L-12")
@pytest.mark.parametrize("format", WRITTEN)
def test_trackers_and_references_nobody_can_follow_stay_behind(format: str) -> None:
    tracker = Task("1", "secret-teammate", metadata={"_internal": True})
    text = export([tracker, Task("2", "Open", blocked_by=("1", "9"))], format)
    assert "Open" in text
    assert "secret-teammate" not in text
    if format in READ:
        assert parse(text, format)[0].blocked_by == ()


@pytest.mark.req("L-22", "L-06")
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("json", '[{"id":1,"subject":"A","blockedBy":[2]},{"id":2,"subject":"B","blockedBy":["1"]}]'),
        ("csv", "id,subject,blocked_by\n1,A,2\n2,B,1\n"),
        ("markdown", "- [ ] #1 A · after #2\n- [ ] #2 B · after #1\n"),
        ("markdown", "- [ ] #1 A · part of #2\n- [ ] #2 B · part of #1\n"),
    ],
)
def test_a_circle_in_the_input_is_refused_with_its_path(format: str, text: str) -> None:
    with pytest.raises(Cycle) as refusal:
        plan_import(parse(text, format), [])
    assert sorted(set(refusal.value.path)) == ["1", "2"]


@pytest.mark.req("L-22", "L-06")
def test_a_circle_through_tasks_already_there_is_refused() -> None:
    text = "- [ ] #1 A · after #2\n- [ ] #2 New · after #3\n- [ ] #3 B\n"
    there = [Task("7", "A"), Task("8", "B", blocked_by=("7",))]
    with pytest.raises(Cycle) as refusal:
        plan_import(parse(text, "markdown"), there)
    assert {"7", "8", "2 (new)"} == set(refusal.value.path)


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
        parse(text, format)
    assert refusal.value.facts()["field"] == about
    assert about in str(refusal.value)


@pytest.mark.req("L-22")
@pytest.mark.parametrize("format", READ)
@given(text=st.text(max_size=80) | st.text(st.sampled_from(' -[]x#12A\n>{}":,'), max_size=60))
def test_random_text_is_read_or_refused_but_never_breaks_us(format: str, text: str) -> None:
    try:
        plan_import(parse(text, format), [])
    except TaskyardError:
        pass


@pytest.mark.req("L-22")
def test_a_file_too_large_to_be_a_list_is_refused_unread() -> None:
    with pytest.raises(BadValue, match="64,000,001"):
        parse(" " * 64_000_001, "json")


@pytest.mark.req("L-22")
def test_an_unknown_format_and_a_list_without_a_possible_name_are_refused() -> None:
    with pytest.raises(BadValue, match="mermaid"):
        export([], "yaml")
    with pytest.raises(BadValue, match="markdown"):
        parse("", "mermaid")
    with pytest.raises(BadName):
        export([], "json", list_name="x" * 201)


@pytest.mark.req("L-22")
@given(tasks=lists_of_tasks())
def test_a_plan_is_carried_out_by_a_store_as_it_stands(tasks: list[Task]) -> None:
    store = MemoryStore("copy")
    text = export(tasks, "json", list_name="release")
    for _ in range(2):
        plan = plan_import(parse(text, "json"), store.list(), list_name=store.name)
        ids = plan.known_ids()
        for item in plan.create:
            ids[item.key] = store.create(plan.draft(item, ids), Act("me", "import")).id
    made = {task.subject: task for task in store.list()}
    assert len(store.list()) == len(tasks)
    if len(made) == len(tasks):
        numbers = {task.id: made[task.subject].id for task in tasks}
        for task in tasks:
            assert set(made[task.subject].blocked_by) == {numbers[blocker] for blocker in task.blocked_by}
