"""
kill -9 between any two system calls of every change to the list, and what the next process finds.

The next process is one that starts afterwards or, at every other place of death, one that had the list open all along.
It touches every task, forwards or backwards; the state must then be the old one or the new one, whole.
An ordinary run tries every place of a few changes, and a sample of the others'.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import taskyard
from support.claude_rules import unseen
from support.crash_scene import OPERATIONS, Operation, Scene
from support.killing import calls_of, killed_before
from support.list_truth import entries, ever_used, faults, leases, open_intents
from support.scale import FULL

#: Nobody waits longer than this (seconds) for what a dead process left behind.
AT_ONCE = 1.0

#: Without the full count, these die before every single call, the others before every fifth, beside others every ninth:
#: odd steps, so that both next processes come, and other places for each change.
EVERY_CALL = ("create", "update", "block", "delete")

#: Fewer calls than this, and the counting itself is broken.
PLAUSIBLE = 10


@pytest.mark.req("L-11", "L-05", "L-03")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("foreign", [False, True], ids=["alone", "beside others"])
def test_death_before_any_system_call_leaves_the_old_state_or_the_new_one(
    memory: Path, name: str, foreign: bool
) -> None:
    operation, scene = OPERATIONS[name], Scene(memory, foreign=foreign)
    old, new, calls = _run_whole(scene, operation)
    assert len(calls) > PLAUSIBLE
    began = time.monotonic()
    thorough = FULL or (name in EVERY_CALL and not foreign)
    stride = 1 if thorough else 9 if foreign else 5
    deaths, number, died = 0, list(OPERATIONS).index(name) % stride, True
    while died:
        died, unsettled = _die_and_go_on(scene, operation, number, number & 1, (old, new), (*calls, "the end"))
        deaths += died
        if FULL or (unsettled and thorough):
            died, _ = _die_and_go_on(scene, operation, number, not number & 1, (old, new), (*calls, "the end"))
            deaths += died
        number += stride
    print(f"{name}: {deaths} deaths among {len(calls)} calls in {time.monotonic() - began:.1f} s")


def _die_and_go_on(
    scene: Scene,
    operation: Operation,
    number: int,
    fresh: bool | int,
    states: tuple[object, object],
    calls: Sequence[str],
) -> tuple[bool, bool]:
    """One death, and all that must be true after it; whether it came to it, and whether it left something open."""
    _build(scene, operation)
    with scene.open("standing") as standing:
        standing.tasks.store.position()  # it has the list open, and has settled what there was
        died = killed_before(number, lambda: _prepared(scene, operation))
        where = f"killed before call {number} ({calls[min(number, len(calls) - 1)]})"
        unsettled = bool(open_intents(scene.folder))
        _go_on(scene, None if fresh else standing, bool(number & 2), where)
    state = scene.state()
    assert state in states, f"{where}: neither old nor new\n{state}\nold {states[0]}\nnew {states[1]}"
    _check_ids(scene, where)
    assert faults(scene.folder) == [], where
    assert leases(scene.folder).get("5") == ({"losses": 1} if "5" in state else None), where
    return died, unsettled


def _run_whole(scene: Scene, operation: Operation) -> tuple[object, object, list[str]]:
    """The state before and after the operation when nobody dies, and its system calls."""
    _build(scene, operation)
    _touch_all(scene, "fresh", backwards=False)
    old = scene.state()
    _build(scene, operation)
    calls = calls_of(lambda: _prepared(scene, operation))
    _touch_all(scene, "fresh", backwards=False)
    return old, scene.state(), calls


def _build(scene: Scene, operation: Operation) -> None:
    scene.build()
    operation.before(scene.folder)


def _prepared(scene: Scene, operation: Operation) -> Callable[[], object]:
    tasks = scene.open().tasks
    tasks.store.position()
    return lambda: operation.act(tasks)


def _go_on(scene: Scene, standing: taskyard.Yard | None, backwards: bool, where: str) -> None:
    assert unseen(scene.folder) == [], where
    if standing is None:
        with scene.open("fresh") as fresh:
            assert fresh.tasks.list().damaged == (), where
            _touch(fresh, where, backwards=backwards)
        return
    _touch(standing, where, backwards=backwards)
    written = [entry_id for entry_id, entry in entries(scene.folder) if entry["cause"] != "aborted"]
    assert standing.tasks.log()[-1].id == written[-1], f"{where}: the log does not go on"


def _touch_all(scene: Scene, agent: str, *, backwards: bool) -> None:
    with scene.open(agent) as yard:
        _touch(yard, "nobody died", backwards=backwards)


def _touch(yard: taskyard.Yard, where: str, *, backwards: bool) -> None:
    """Write to every task, each at once."""
    ids = [task.id for task in yard.tasks.list()]
    for task_id in reversed(ids) if backwards else ids:
        began = time.monotonic()
        try:
            yard.tasks.update(task_id, metadata={"touched": yard.agent})
        except taskyard.TaskNotFound:
            pass  # a half-done removal was completed by the touch before
        took = time.monotonic() - began
        assert took < AT_ONCE, f"{where}: the next process waited {took:.2f} s for #{task_id}"


def _check_ids(scene: Scene, where: str) -> None:
    """A new task gets an id that nobody ever had; also the first look of a process that starts now."""
    used = ever_used(scene.folder)
    with scene.open("last") as yard:
        began = time.monotonic()
        assert yard.tasks.create("Last").id not in used, where
        assert time.monotonic() - began < AT_ONCE, where
        assert yard.tasks.list().damaged == (), where


@pytest.mark.req("L-11", "L-05")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OPERATIONS if FULL else ["block"])
def test_whoever_repairs_may_die_too(memory: Path, name: str) -> None:
    operation, scene = OPERATIONS[name], Scene(memory, foreign=False)
    old, new, _ = _run_whole(scene, operation)
    places = _unsettled_places(scene, operation)
    assert places
    places = places if FULL else places[1 :: len(places) // 2]
    deaths, step = 0, 1 if FULL else 11
    for number in places:
        second, died = 0, True
        while died:
            _build(scene, operation)
            killed_before(number, lambda: _prepared(scene, operation))
            died = killed_before(second, lambda: scene.open().tasks.list)
            where = f"{name}, killed before call {number}; its repairer before call {second}"
            assert unseen(scene.folder) == [], where
            with scene.open("standing") as yard:
                _touch(yard, where, backwards=bool(second & 1))
                yard.tasks.create("Last")
            state = scene.state()
            state.popitem()
            assert state in (old, new), f"{where}: neither old nor new\n{state}\nold {old}\nnew {new}"
            assert faults(scene.folder) == [], where
            second += step
            deaths += died
    print(f"{name}: {deaths} second deaths after {len(places)} first ones")


def _unsettled_places(scene: Scene, operation: Operation) -> list[int]:
    """The places of death that leave something to repair."""
    found, number, died = [], 0, True
    while died:
        _build(scene, operation)
        died = killed_before(number, lambda: _prepared(scene, operation))
        if open_intents(scene.folder):
            found.append(number)
        number += 1
    return found
