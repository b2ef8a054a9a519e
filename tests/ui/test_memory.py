"""What was made of tasks before saves work, and changes nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks.model import Task, TaskStatus
from taskyard.ui.snapshot import ViewInput, build_snapshot
from taskyard.ui.tasks import ViewCache

IDS = [str(number) for number in range(1, 6)]


@st.composite
def lists(draw: st.DrawFn) -> list[Task]:
    """Any list of a few tasks, with edges of any kind."""
    return [
        Task(
            task_id,
            draw(st.sampled_from(["one", "two"])),
            owner=draw(st.sampled_from([None, "ada", "eve"])),
            status=draw(st.sampled_from(TaskStatus)),
            blocked_by=tuple(draw(st.lists(st.sampled_from(IDS), max_size=2, unique=True))),
            metadata=draw(st.sampled_from([{}, {"_internal": True}, {"taskyard": {"priority": 1, "labels": ["x"]}}])),
        )
        for task_id in draw(st.lists(st.sampled_from(IDS), unique=True))
    ]


@given(st.lists(st.tuples(lists(), st.sampled_from([None, "ada"])), max_size=5))
def test_a_snapshot_is_the_same_with_and_without_it(scenes: list[tuple[list[Task], str | None]]) -> None:
    memory = ViewCache()
    for tasks, me in scenes:
        scene = ViewInput("plan", tasks, me=me, now=1)
        assert build_snapshot(scene, memory=memory) == build_snapshot(scene)


def test_what_did_not_change_is_not_made_again() -> None:
    memory = ViewCache()
    tasks = [Task(task_id, "one") for task_id in IDS]
    before = build_snapshot(ViewInput("plan", tasks), memory=memory)
    after = build_snapshot(ViewInput("plan", [Task("1", "two"), *tasks[1:]]), memory=memory)
    assert after.tasks[0] != before.tasks[0]
    assert all(one is other for one, other in zip(before.tasks[1:], after.tasks[1:], strict=True))
