"""Who waits for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.tasks import graph, model, rules
from taskyard.tasks.model import Task, TaskStatus


def tasks(**blocked_by: str) -> dict[str, Task]:
    """`tasks(t1="2 3")`: task 1 waits for 2 and 3."""
    return {name[1:]: Task(name[1:], name, blocked_by=tuple(by.split())) for name, by in blocked_by.items()}


CHAIN = tasks(t1="", t2="1", t3="2", t10="3")


@pytest.mark.req("L-06")
def test_the_path_of_waiting_is_named_from_end_to_end() -> None:
    assert graph.wait_path(CHAIN, "10", "1") == ("10", "3", "2", "1")
    assert graph.wait_path(CHAIN, "1", "10") is None
    assert graph.wait_path(CHAIN, "2", "2") == ("2",)
    assert graph.cycle_path(CHAIN, ("10", "1")) == ("1", "10", "3", "2", "1")
    assert graph.cycle_path(CHAIN, ("1", "10")) is None


@pytest.mark.req("L-06")
def test_a_chain_of_many_thousands_is_walked_without_recursion() -> None:
    long = {str(n): Task(str(n), "x", blocked_by=(str(n - 1),) if n > 1 else ()) for n in range(1, 20_001)}

    found = graph.cycle_path(long, ("20000", "1"))

    assert found is not None
    assert len(found) == 20_001
    assert graph.find_cycles(long) == []


@pytest.mark.req("L-06")
def test_cycles_another_program_wrote_are_each_named_once_and_loop_nobody() -> None:
    bad = tasks(t1="1", t2="3", t3="2", t4="2 9", t5="")

    assert graph.find_cycles(bad) == [("1", "1"), ("2", "3", "2")]
    assert graph.wait_path(bad, "4", "5") is None
    assert graph.levels(bad) == {"5": 0, "1": 1, "2": 1, "3": 1, "4": 1}


@pytest.mark.req("L-05", "L-06")
def test_half_edges_are_found_from_either_side() -> None:
    known = {
        "1": Task("1", "a", blocks=("2", "3", "99")),
        "2": Task("2", "b", blocked_by=("1",)),
        "3": Task("3", "c", blocked_by=("2",)),
    }

    assert graph.half_edges(known) == [("1", "3"), ("2", "3")]


@pytest.mark.req("L-05")
def test_what_a_task_blocks_follows_from_who_waits_for_it() -> None:
    shown = model.mirror_blocks(
        [
            Task("1", "a", blocks=("9", "3", "2")),
            Task("2", "b", blocked_by=("1",)),
            Task("3", "c", blocked_by=("1",), blocks=("1",)),
        ]
    )
    assert [task.blocks for task in shown] == [("2", "3"), (), ()]
    kept = model.mirror_blocks([Task("1", "a", blocks=("3", "2")), *shown[1:]])
    assert kept[0].blocks == ("3", "2"), "the order in which they were added stays"


@pytest.mark.req("L-05")
def test_done_and_deleted_blockers_hold_nothing_back() -> None:
    known = tasks(t1="", t2="", t3="1 2 77")
    known["1"] = known["1"]._replace(status=TaskStatus.COMPLETED)

    assert model.open_blockers(known["3"], known) == ("2",)
    assert not model.is_ready(known["3"], known)
    assert model.is_ready(known["2"], known)
    assert not model.is_ready(known["1"], known)


def test_ids_sort_as_numbers() -> None:
    assert [task.id for task in model.sort_by_id(CHAIN.values())] == ["1", "2", "3", "10"]
    assert graph.levels(CHAIN) == {"1": 0, "2": 1, "3": 2, "10": 3}


@pytest.mark.req("L-06")
@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=25))
def test_edges_accepted_one_by_one_never_close_a_circle_and_refused_ones_would(edges: list[tuple[int, int]]) -> None:
    known = {str(n): Task(str(n), "x") for n in range(1, 9)}
    for blocker, blocked in edges:
        edge = (str(blocker), str(blocked))
        trail = graph.cycle_path(known, edge)
        after = {**known, edge[1]: known[edge[1]]._replace(blocked_by=(*known[edge[1]].blocked_by, edge[0]))}
        if trail is None:
            known = after
            assert graph.find_cycles(known) == []
        else:
            assert trail[0] == trail[-1] == edge[1]
            assert graph.find_cycles(after) != []


@pytest.mark.req("L-07")
def test_made_ready_are_those_who_waited_for_nothing_else() -> None:
    done = Task("1", "a", status=TaskStatus.COMPLETED)
    other, finished = Task("2", "b"), Task("3", "c", status=TaskStatus.COMPLETED)
    waiting = [
        Task("4", "d", blocked_by=("1",)),
        Task("5", "e", blocked_by=("1", "2")),
        Task("6", "f", blocked_by=("1", "3", "99")),
        Task("7", "g", blocked_by=("3",)),
        Task("8", "h", blocked_by=("1",), status=TaskStatus.IN_PROGRESS),
    ]
    ready = rules.newly_ready(done, waiting, {"1": done, "2": other, "3": finished})
    assert [task.id for task in ready] == ["4", "6"]
