"""Looking back, taking away, bringing back, and watching."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import taskyard
from support.python import run_python
from support.wait import until
from support.yards import on_disk, open_yard, write_task, yards
from taskyard.errors import Cycle, StillOpen, TaskNotFound
from taskyard.tasks.model import Change

pytestmark = pytest.mark.usefixtures("kept_in")


@pytest.fixture
def yard(tmp_path: Path) -> taskyard.Yard:
    return open_yard(tmp_path, "ada")


@pytest.mark.req("L-03")
@pytest.mark.parametrize(
    "spend",
    [
        lambda yard: yard.tasks.delete("3"),
        lambda yard: yard.tasks.archive("1", "3", force=True),
        lambda yard: yard.tasks.reset(),
        lambda yard: (yard.tasks.delete("3"), yard.tasks.restore("3")),
        lambda yard: (yard.tasks.reset(), yard.tasks.restore("1")),
    ],
    ids=["delete", "archive", "reset", "restore", "reset and restore"],
)
def test_no_id_ever_returns(tmp_path: Path, yard: taskyard.Yard, spend: Callable[[taskyard.Yard], object]) -> None:
    for subject in "abc":
        yard.tasks.create(subject)
    spend(yard)
    yard.close()

    assert yard.tasks.create("d").id == "4"
    with open_yard(tmp_path) as other:
        assert other.tasks.create("e").id == "5"


@pytest.mark.req("L-03")
def test_an_id_spent_on_a_refused_create_does_not_return(
    tmp_path: Path, yard: taskyard.Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.tasks.create("a")
    assert yard.tasks.store.reserve() == "2"
    with pytest.raises(TaskNotFound):
        yard.tasks.create("b", blocked_by=["77"])

    assert int(yard.tasks.create("c").id) > 2


@pytest.mark.in_files
@pytest.mark.req("L-11", "L-05")
def test_deleting_strips_the_task_from_both_sides_and_restoring_ties_it_in_again(
    tmp_path: Path, yard: taskyard.Yard
) -> None:
    yard.tasks.create("a")
    yard.tasks.create("b", blocked_by=["1"], metadata={"k": "v"}, priority=2)
    yard.tasks.create("c", blocked_by=["2"])
    yard.tasks.delete("2", note="a mistake")
    assert on_disk(tmp_path / "plan", "1")["blocks"] == []
    assert on_disk(tmp_path / "plan", "3")["blockedBy"] == []

    back = yard.tasks.restore("2", agent="bob")

    assert (back.subject, back.blocked_by, back.blocks) == ("b", ("1",), ("3",))
    assert back.metadata == {"k": "v", "taskyard": {"priority": 2}}
    assert on_disk(tmp_path / "plan", "1")["blocks"] == ["2"]
    assert [(c.act.cause, c.act.by, c.act.note) for c in yard.tasks.log("2")] == [
        ("create", "ada", ""),
        ("create", "ada", ""),
        ("delete", "ada", "a mistake"),
        ("restore", "bob", ""),
    ]


@pytest.mark.req("L-11")
def test_archive_puts_completed_work_away_and_nothing_else(yard: taskyard.Yard) -> None:
    for subject in "abc":
        yard.tasks.create(subject)
    yard.tasks.complete("2")

    assert [task.id for task in yard.tasks.archive()] == ["2"]
    assert [task.id for task in yard.tasks.list()] == ["1", "3"]
    assert yard.tasks.archive() == ()
    assert yard.tasks.restore("2").is_done
    with pytest.raises(StillOpen, match=r"#1 is not completed.*--force") as refused:
        yard.tasks.archive("1", "2", "1")
    assert refused.value.tasks == ("1",)
    assert [task.id for task in yard.tasks.list()] == ["1", "2", "3"], "all or none"
    assert [task.id for task in yard.tasks.archive("1", "1", force=True)] == ["1"]
    assert yard.tasks.log("1")[-1].act.note == "forced"


@pytest.mark.req("L-11")
def test_what_was_reopened_while_completed_work_is_put_away_stays(
    yard: taskyard.Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for subject in "ab":
        yard.tasks.complete(yard.tasks.create(subject).id)
    seen = yard.tasks.store.list()
    yard.tasks.update("1", status="pending")
    monkeypatch.setattr(yard.tasks.store, "list", lambda: seen)  # as if that came after the look

    assert [task.id for task in yard.tasks.archive()] == ["2"]


@pytest.mark.req("L-06")
def test_taking_away_what_is_not_there_says_so_and_an_unknown_id_is_refused(yard: taskyard.Yard) -> None:
    for subject in "abc":
        yard.tasks.create(subject)
    yard.tasks.block("3", by="1")

    with pytest.raises(TaskNotFound) as refused:
        yard.tasks.unblock("3", by=["1", "99"])
    assert refused.value.task_id == "99"
    assert yard.tasks.get("3").blocked_by == ("1",)
    assert yard.tasks.unblock("3", by="2").notes == ("Nothing changed: #3 did not wait for #2.",)
    assert yard.tasks.unblock("3", by=["1", "2"]).notes == ("#3 did not wait for #2.",)
    assert yard.tasks.unblock("3", by=[]).notes == ("Nothing changed: #3 did not wait for anything.",)


@pytest.mark.req("L-11", "L-12")
def test_reset_puts_everything_away_and_each_task_comes_back(yard: taskyard.Yard) -> None:
    yard.tasks.create("a")
    yard.tasks.create("b", blocked_by=["1"])
    yard.tasks.create("tracker", metadata={"_internal": True})
    assert len(yard.tasks.reset()) == 3
    assert (list(yard.tasks.list(internal=True)), yard.tasks.reset()) == ([], ())

    for task_id in ("2", "1", "3"):
        yard.tasks.restore(task_id)

    assert [(task.id, task.blocked_by) for task in yard.tasks.list()] == [("1", ()), ("2", ("1",))]


@pytest.mark.req("L-11")
def test_the_log_tells_who_did_what_through_which_door_and_how_it_looked_then(tmp_path: Path) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="plan", agent="ada", via="cli") as yard:
        yard.tasks.create("a")
        yard.tasks.start("1")
        yard.tasks.update("1", subject="b", agent="bob")
        yard.tasks.complete("1")
        log = yard.tasks.log()

    assert [(c.act.cause, c.act.by, c.act.via) for c in log] == [
        ("create", "ada", "cli"),
        ("start", "ada", "cli"),
        ("update", "bob", "cli"),
        ("complete", "ada", "cli"),
    ]
    looks = [task for change in log if (task := change.tasks["1"]) is not None]
    assert [(task.subject, task.status.value) for task in looks] == [
        ("a", "pending"),
        ("a", "in_progress"),
        ("b", "in_progress"),
        ("b", "completed"),
    ]
    assert log[1:] == yard.tasks.log(since=log[1].id)
    assert all(abs(change.at - time.time() * 1000) < 60_000 for change in log)


@pytest.mark.in_files
@pytest.mark.req("L-11")
def test_a_task_that_was_damaged_and_then_removed_comes_back_as_it_was_before(
    tmp_path: Path, yard: taskyard.Yard
) -> None:
    yard.tasks.create("good")
    (tmp_path / "plan" / "1.json").write_text('{"torn')
    assert [found.file for found in yard.tasks.list().damaged] == ["1.json"]
    (tmp_path / "plan" / "1.json").unlink()
    assert list(yard.tasks.list()) == []

    assert yard.tasks.restore("1").subject == "good"
    assert any("not JSON" in change.act.note for change in yard.tasks.log("1"))


@pytest.mark.in_files
@pytest.mark.req("L-11")
def test_a_task_comes_back_although_a_neighbour_cannot_be_read_and_still_waits_for_it(
    tmp_path: Path, yard: taskyard.Yard
) -> None:
    yard.tasks.create("a")
    yard.tasks.create("b", blocked_by=["1"])
    yard.tasks.delete("2")
    whole = (tmp_path / "plan" / "1.json").read_bytes()
    (tmp_path / "plan" / "1.json").write_bytes(whole[:-5])

    assert yard.tasks.restore("2").blocked_by == ("1",)


@pytest.mark.req("L-05")
def test_dependencies_are_added_and_taken_away_from_either_side_all_or_none(yard: taskyard.Yard) -> None:
    for subject in "abc":
        yard.tasks.create(subject)
    assert yard.tasks.block("3", by=["1", "2"]).blocked_by == ("1", "2")
    with pytest.raises(Cycle) as caught:
        yard.tasks.block("1", by=["2", "3"])
    assert set(caught.value.path) == {"1", "3"}
    assert yard.tasks.get("1").blocked_by == ()
    assert yard.tasks.unblock("3", by="1").blocked_by == ("2",)
    assert yard.tasks.get("1").blocks == ()
    assert yard.tasks.unblock("3", by="1").blocked_by == ("2",)


@pytest.mark.req("L-06")
def test_taking_away_a_removed_tasks_own_dependency_is_refused_as_not_found(yard: taskyard.Yard) -> None:
    yard.tasks.delete(yard.tasks.create("a").id)

    with pytest.raises(TaskNotFound):
        yard.tasks.unblock("1", by="1")


@pytest.mark.in_files
@pytest.mark.req("L-05", "L-06")
def test_an_edge_to_nowhere_holds_nothing_back_and_can_be_taken_away(tmp_path: Path, yard: taskyard.Yard) -> None:
    write_task(tmp_path / "plan", "1", blockedBy=["77"], blocks=["78"])

    assert [(task.blocked_by, task.blocks) for task in yard.tasks.list()] == [(("77",), ())]
    assert yard.tasks.claim("1").owner == "ada"
    task = yard.tasks.unblock("1", by="77")
    assert (task.blocked_by, task.notes) == ((), ())


# -- watching ------------------------------------------------------------------------------------


def watching(yard: taskyard.Yard, found: list[tuple[str, float]], *, timeout: float = 20.0) -> threading.Thread:
    """A thread that notes each change's cause and when it was heard of, until it hears of "last"."""

    start = yard.tasks.store.position()

    def listen() -> None:
        for change in yard.tasks.watch(since=start, timeout=timeout):
            found.append((change.act.cause, time.monotonic()))
            if is_last(change):
                return

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    return thread


def has(found: list[tuple[str, float]], count: int) -> bool:
    return len(found) >= count


def is_last(change: Change) -> bool:
    return any(task is not None and task.subject == "last" for task in change.tasks.values())


@pytest.mark.in_files
@pytest.mark.req("L-18")
def test_a_change_is_heard_of_at_once_in_the_same_process_and_soon_in_another(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        found: list[tuple[str, float]] = []
        ada.tasks.create("a")
        thread = watching(bob, found)
        delays: list[float] = []
        for number in range(5):
            wanted = len(found) + 1
            began = time.monotonic()
            ada.tasks.update("1", subject=str(number))
            until(partial(has, found, wanted), timeout=4)  # well below the poll of 5 s
            delays.append(found[-1][1] - began)
        run_python(
            """
            import sys, taskyard
            taskyard.open(tasks_dir=sys.argv[1], list="plan").tasks.update("1", subject="last")
            """,
            str(tmp_path),
        )
        thread.join(4)

        assert not thread.is_alive()
        assert [cause for cause, _ in found[-6:]] == ["update"] * 6
        assert sorted(delays)[1] < 0.05 + 0.2  # debounce, and room for a loaded machine


@pytest.mark.in_files
@pytest.mark.req("L-18")
def test_a_list_folder_made_later_is_picked_up_also_when_another_program_makes_it(tmp_path: Path) -> None:
    with open_yard(tmp_path / "later", "bob") as yard:
        found: list[tuple[str, float]] = []
        thread = watching(yard, found)
        write_task(tmp_path / "later" / "plan", "1", subject="last")
        thread.join(10)

        assert [cause for cause, _ in found] == ["external"]


@pytest.mark.req("L-18")
def test_watching_resumes_after_any_entry_and_ends_when_nothing_comes(yard: taskyard.Yard) -> None:
    for subject in "abc":
        yard.tasks.create(subject)
    first = next(iter(yard.tasks.watch(since=0, timeout=5)))
    rest = list(yard.tasks.watch(since=first.id + 1, timeout=0.05))

    assert [list(change.tasks) for change in (first, *rest)] == [["1"], ["2"], ["3"]]
    assert list(yard.tasks.watch(timeout=0.05)) == []


@pytest.mark.req("L-18", "L-09")
def test_a_watcher_looks_by_itself_while_something_is_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_POLL_INTERVAL", "0.05")
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        ada.tasks.create("a")
        ada.tasks.claim("1", lease=0.2)
        lost = next(iter(bob.tasks.watch(timeout=10)))

        assert lost.act.cause == "lease_lost"


@pytest.mark.req("L-12", "L-18")
def test_a_tracker_is_no_unfinished_work_to_look_for(yard: taskyard.Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    class Asleep(Exception):
        pass

    def wait(timeout: float) -> bool:
        raise Asleep(timeout)

    def pause() -> float:
        with pytest.raises(Asleep) as slept:
            next(yard.tasks.watch())
        return float(slept.value.args[0])

    monkeypatch.setattr(yard.tasks.store, "wait", wait)
    yard.tasks.start(yard.tasks.create("bob", metadata={"_internal": True}).id)
    assert pause() > yard.settings.poll_interval
    yard.tasks.create("work")
    assert pause() == yard.settings.poll_interval


@pytest.mark.req("L-18")
def test_two_threads_that_watch_one_yard_both_hear_of_everything(tmp_path: Path) -> None:
    with yards(tmp_path, "ada", "bob") as (ada, bob):
        heard: list[list[tuple[str, float]]] = [[], []]
        ada.tasks.create("a")
        threads = [watching(bob, found) for found in heard]
        for number in range(10):
            ada.tasks.update("1", subject=str(number))
        ada.tasks.update("1", subject="last")
        for thread in threads:
            thread.join(10)

        assert all(not thread.is_alive() for thread in threads)
