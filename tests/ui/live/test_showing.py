"""Snapshots of lists and jobs, as they change: by whomever, soon, and only when they do."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import taskyard
from support.jobs import kill_keeper
from support.python import run_python
from support.scale import scale
from support.wait import until
from taskyard.core import files
from taskyard.jobs.job_dir import JobPaths, live_folder
from taskyard.jobs.model import Job
from taskyard.tasks.text import HIDE_AFTER_MS
from taskyard.ui.live import LiveFeed, LiveView
from taskyard.ui.snapshot import Snapshot


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[taskyard.Yard]:
    with taskyard.open(tasks_dir=tmp_path / "tasks", list="release", agent="ada") as found:
        yield found
        found.jobs.stop(*(job.id for job in found.jobs.list()))


@pytest.fixture
def live(yard: taskyard.Yard) -> Iterator[LiveFeed]:
    with LiveFeed(yard) as found:
        yield found


def until_shown(view: LiveView, shows: Callable[[Snapshot], object], *, timeout: float = 10.0) -> Snapshot:
    until(lambda: shows(view.snapshot), timeout=timeout)
    return view.snapshot


def subjects(snapshot: Snapshot) -> list[str]:
    return [task.subject for task in snapshot.tasks]


def written_by_another(tasks_dir: Path, task_id: str, subject: str) -> None:
    """As another program does: in place, without a lock of ours."""
    folder = tasks_dir / "release"
    folder.mkdir(parents=True, exist_ok=True)
    fields = {"id": task_id, "subject": subject, "description": "", "status": "pending", "blocks": [], "blockedBy": []}
    (folder / f"{task_id}.json").write_text(json.dumps(fields), encoding="utf-8")


@pytest.mark.req("L-18")
def test_the_first_snapshot_is_there_at_once(yard: taskyard.Yard, live: LiveFeed) -> None:
    yard.tasks.create("Write the notes")

    assert subjects(live.watch().snapshot) == ["Write the notes"]


@pytest.mark.req("L-18")
def test_what_another_program_writes_shows_within_a_second(tmp_path: Path, yard: taskyard.Yard, live: LiveFeed) -> None:
    yard.tasks.create("Ours")
    view = live.watch()

    written_by_another(tmp_path / "tasks", "7", "Theirs")
    until_shown(view, lambda snapshot: "Theirs" in subjects(snapshot), timeout=1.0)

    os.unlink(tmp_path / "tasks" / "release" / "7.json")
    until_shown(view, lambda snapshot: subjects(snapshot) == ["Ours"], timeout=1.0)


@pytest.mark.req("L-18")
def test_a_list_whose_folder_is_made_later_is_picked_up(tmp_path: Path, live: LiveFeed) -> None:
    view = live.watch("later")
    assert view.snapshot.tasks == ()
    assert not view.snapshot.is_panel_shown

    with taskyard.open(tasks_dir=tmp_path / "tasks", list="later") as other:
        other.tasks.create("First")
    until_shown(view, lambda snapshot: snapshot.is_panel_shown and snapshot.lists == ("later",))


def remove(folder: Path) -> None:
    """Remove a folder for good, also if somebody writes into it at that moment."""
    while folder.exists():
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)


@pytest.mark.req("L-18")
@pytest.mark.parametrize("is_seen", [False, True], ids=["at once", "later"])
def test_a_list_that_is_removed_and_made_again_is_seen_each_time(
    tmp_path: Path, yard: taskyard.Yard, live: LiveFeed, is_seen: bool
) -> None:
    yard.tasks.create("First")
    view = live.watch()
    for number in range(3):
        remove(tmp_path / "tasks" / "release")
        if is_seen:
            until_shown(view, lambda snapshot: not snapshot.tasks, timeout=1.0)
        written_by_another(tmp_path / "tasks", "1", f"Again {number}")
        until_shown(view, lambda snapshot, number=number: subjects(snapshot) == [f"Again {number}"], timeout=1.0)  # type: ignore[misc]


@pytest.mark.req("L-18")
def test_who_listens_hears_of_what_this_process_does_and_of_nothing_twice(yard: taskyard.Yard, live: LiveFeed) -> None:
    view = live.watch()
    heard: list[Snapshot] = []
    stop = view.listen(heard.append)

    yard.tasks.create("One")
    until(lambda: heard)
    view.look()
    yard.tasks.create("Two")
    until(lambda: len(heard[-1].tasks) == 2)
    assert all(a != b for a, b in itertools.pairwise(heard))

    stop()
    count = len(heard)
    yard.tasks.create("Three")
    until_shown(view, lambda snapshot: len(snapshot.tasks) == 3)
    assert len(heard) == count


@pytest.mark.req("L-18")
def test_one_who_cannot_bear_the_news_hears_no_more_and_the_others_do(
    yard: taskyard.Yard, live: LiveFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.excepthook", lambda *what: told.append(what[1]))
    view = live.watch()
    heard: list[Snapshot] = []

    def fails(_: Snapshot) -> None:
        raise ValueError("cannot draw")

    view.listen(fails)
    view.listen(heard.append)
    yard.tasks.create("One")
    until(lambda: heard)
    yard.tasks.create("Two")
    until(lambda: heard[-1].counts.total == 2)
    assert [str(error) for error in told] == ["cannot draw"]


@pytest.mark.req("L-20", "U-03")
def test_the_log_says_when_a_task_was_done_whatever_touched_its_file_since(yard: taskyard.Yard, live: LiveFeed) -> None:
    old, new = yard.tasks.create("Old"), yard.tasks.create("New")
    yard.tasks.create("Open")
    for task in (old, new):
        yard.tasks.start(task.id)
        yard.tasks.complete(task.id)
    yard.tasks.update(old.id, description="touched later")

    assert subjects(live.watch().snapshot) == ["New", "Old", "Open"]


@pytest.mark.req("L-19")
def test_a_finished_list_leaves_the_panel_by_itself_and_its_files_stay(
    yard: taskyard.Yard, live: LiveFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = yard.tasks.create("Only")
    view = live.watch()
    yard.tasks.start(task.id)
    yard.tasks.complete(task.id)
    until_shown(view, lambda snapshot: snapshot.done_since is not None)
    assert view.snapshot.is_panel_shown

    later = time.time_ns() // 1_000_000 + HIDE_AFTER_MS  # as if five seconds had passed
    monkeypatch.setattr("taskyard.ui.live.now_ms", lambda: later)
    view.look()
    until_shown(view, lambda snapshot: not snapshot.is_panel_shown)
    assert yard.tasks.get(task.id).is_done


@pytest.mark.req("U-01", "U-02")
def test_a_jobs_life_shows_from_its_start_to_its_end(tmp_path: Path, yard: taskyard.Yard, live: LiveFeed) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    view = live.watch()

    job = yard.jobs.start(taskyard.Shell(f"echo one; read -r _ < {gate}; echo two; exit 3"))
    shown = until_shown(view, lambda snapshot: snapshot.jobs and snapshot.jobs[0].last_line == "one")
    assert (shown.jobs[0].word, shown.pill.text) == ("running", "1 shell")

    gate.write_text("\n", encoding="ascii")
    shown = until_shown(view, lambda snapshot: snapshot.jobs[0].is_over and snapshot.jobs[0].last_line == "two")
    assert (shown.jobs[0].word, shown.pill.text, shown.pill.flash[0], shown.attention) == ("exit 3", "", "✗", 1)

    view.see(job.id)
    shown = until_shown(view, lambda snapshot: not snapshot.attention)
    assert shown.pill.flash == ""


@pytest.mark.req("U-01", "B-05")
def test_a_keeper_that_is_killed_shows_as_lost_without_a_look_from_anybody(yard: taskyard.Yard, live: LiveFeed) -> None:
    view = live.watch()
    job = yard.jobs.start(taskyard.Shell("sleep 60"))
    until_shown(view, lambda snapshot: snapshot.jobs)

    kill_keeper(yard.jobs, job)

    assert until_shown(view, lambda snapshot: snapshot.jobs[0].is_over).jobs[0].word == "lost"


@pytest.mark.req("U-04")
def test_several_lists_are_watched_by_one_thread_and_share_the_jobs(
    tmp_path: Path, yard: taskyard.Yard, live: LiveFeed
) -> None:
    yard.tasks.create("Here")
    first, second, again = live.watch(), live.watch("other"), live.watch("release")
    assert first is again
    with taskyard.open(tasks_dir=tmp_path / "tasks", list="other") as other:
        other.tasks.create("There")
    yard.jobs.start(taskyard.Shell("true"))

    until_shown(second, lambda snapshot: subjects(snapshot) == ["There"] and snapshot.jobs)
    until_shown(first, lambda snapshot: subjects(snapshot) == ["Here"] and snapshot.jobs)
    assert [thread.name for thread in threading.enumerate()].count("taskyard-live") == 1

    again.close()
    yard.tasks.create("Still watched")
    until_shown(first, lambda snapshot: "Still watched" in subjects(snapshot))


@pytest.mark.req("U-04")
def test_acts_on_a_list_beside_ones_own_go_through_its_own_yard(live: LiveFeed) -> None:
    view = live.watch("other")

    view.yard.tasks.create("Made from the screen")

    shown = until_shown(view, lambda snapshot: snapshot.tasks)
    assert view.history(shown.tasks[0].id)[0].act.by == "ada"


@pytest.mark.req("L-18")
def test_a_list_in_memory_is_watched_as_well() -> None:
    with taskyard.open(store="memory:", list="release") as yard, LiveFeed(yard) as live:
        view = live.watch()
        yard.tasks.create("In memory")
        until_shown(view, lambda snapshot: subjects(snapshot) == ["In memory"])


@pytest.mark.req("L-18")
def test_of_a_list_in_memory_nothing_is_missed_while_another_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_POLL_INTERVAL", "3600")
    with taskyard.open(store="memory:", list="release") as yard, LiveFeed(yard) as live:
        view = live.watch()
        live.watch("beside")  # looked at after it, and whoever looks answers the bell for all

        def at_once(snapshot: Snapshot) -> None:
            if len(snapshot.tasks) == 1:
                yard.tasks.create("Second")
                until(lambda: view.feed.has_news)

        view.listen(at_once)
        yard.tasks.create("First")
        until_shown(view, lambda snapshot: subjects(snapshot) == ["First", "Second"])


@pytest.mark.req("L-18")
def test_a_damaged_file_is_named_and_hides_nothing_else(tmp_path: Path, yard: taskyard.Yard, live: LiveFeed) -> None:
    yard.tasks.create("Fine")
    view = live.watch()

    (tmp_path / "tasks" / "release" / "9.json").write_text("{", encoding="utf-8")

    shown = until_shown(view, lambda snapshot: snapshot.problems)
    assert subjects(shown) == ["Fine"]
    assert "9.json" in shown.problems[0]


@pytest.mark.req("L-18")
def test_a_folder_of_lists_that_is_a_link_for_a_while_is_told_and_then_shown_again(
    tmp_path: Path, yard: taskyard.Yard, live: LiveFeed
) -> None:
    yard.tasks.create("Before")
    view = live.watch()
    (tmp_path / "tasks").rename(tmp_path / "moved")
    (tmp_path / "tasks").symlink_to(tmp_path / "moved")
    [problem] = until_shown(view, lambda snapshot: snapshot.problems).problems
    assert "symbolic link" in problem

    (tmp_path / "tasks").unlink()
    (tmp_path / "moved").rename(tmp_path / "tasks")
    yard.tasks.create("After")
    until_shown(view, lambda snapshot: not snapshot.problems and subjects(snapshot) == ["Before", "After"])


@pytest.mark.req("L-18")
def test_a_round_that_fails_is_told_and_is_not_the_last(
    yard: taskyard.Yard, live: LiveFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.excepthook", lambda *what: told.append(what[1]))
    view = live.watch()
    with monkeypatch.context() as broken:
        broken.setattr("taskyard.ui.live.build_snapshot", lambda *_, **__: 1 / 0)
        yard.tasks.create("Hard to show")
        until(lambda: told)
    assert isinstance(told[0], ZeroDivisionError)
    view.look()
    yard.tasks.create("Easy")
    until_shown(view, lambda snapshot: subjects(snapshot) == ["Hard to show", "Easy"])


@pytest.mark.req("L-18")
def test_nothing_of_it_delays_the_end_of_a_program(tmp_path: Path) -> None:
    program = """
        import sys, taskyard
        from taskyard.ui.live import LiveFeed as Live
        yard = taskyard.open(tasks_dir=sys.argv[1], list="release")
        yard.tasks.create("Unfinished")
        view = Live(yard).watch()
        view.listen(lambda _: None)
        print(len(view.snapshot.tasks))
    """
    began = time.monotonic()

    assert run_python(program, str(tmp_path / "tasks")).strip() == "1"
    assert time.monotonic() - began < 5  # it looks by itself every five seconds


@pytest.mark.req("U-04")
def test_the_timeline_tells_who_had_a_task_and_which_jobs_ran(yard: taskyard.Yard, live: LiveFeed) -> None:
    task = yard.tasks.create("Port")
    yard.tasks.start(task.id)
    view = live.watch()
    yard.jobs.start(taskyard.Shell("true"))
    until_shown(view, lambda snapshot: snapshot.jobs)

    assert [lane.name for lane in view.timeline().lanes] == ["ada", "shells"]


def living_of(yard: taskyard.Yard, jobs: list[str]) -> int:
    return sum(not yard.jobs.get(job).is_final for job in jobs)


@pytest.mark.req("U-02")
def test_the_pill_counts_what_lives_after_any_sequence_of_acts(yard: taskyard.Yard, live: LiveFeed) -> None:
    view = live.watch()
    chance = random.Random(20)
    mine: list[str] = []
    for _ in range(scale(300, least=25)):
        living = [job for job in mine if not yard.jobs.get(job).is_final]
        act = chance.choice(("start", "start", "stop", "die", "pause", "resume", "end"))
        if act == "start" or not living:
            mine.append(yard.jobs.start(taskyard.Shell("sleep 60")).id)
        elif act == "stop":
            yard.jobs.stop(chance.choice(living))
        elif act == "die":
            kill_keeper(yard.jobs, yard.jobs.get(chance.choice(living)))
        elif act == "end":
            mine.append(yard.jobs.run(taskyard.Shell("true")).id)
        else:
            getattr(yard.jobs, act)(chance.choice(living))
        until_shown(view, lambda snapshot: snapshot.pill.running == living_of(yard, mine))
    yard.jobs.stop(*mine)
    until_shown(view, lambda snapshot: snapshot.pill.text == "")


@pytest.mark.req("Q-11")
def test_jobs_of_other_projects_are_counted_and_shown_on_request(
    yard: taskyard.Yard, live: LiveFeed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = live.watch()
    here = yard.jobs.start(taskyard.Shell("sleep 60"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    there = yard.jobs.start(taskyard.Shell("sleep 60"))

    shown = until_shown(view, lambda seen: seen.jobs and seen.elsewhere)
    assert ([job.id for job in shown.jobs], shown.elsewhere) == ([here.id], 1)

    view.show_all_projects(True)
    shown = until_shown(view, lambda seen: len(seen.jobs) == 2)
    assert {job.id for job in shown.jobs} == {here.id, there.id} and not shown.elsewhere


@pytest.mark.req("Q-11")
def test_an_ended_job_that_is_dismissed_elsewhere_leaves_the_view(yard: taskyard.Yard, live: LiveFeed) -> None:
    view = live.watch()
    job = yard.jobs.run(taskyard.Shell("exit 1"), timeout=20)
    until_shown(view, lambda seen: [one.id for one in seen.jobs] == [job.id])

    yard.jobs.dismiss(job.id)

    until_shown(view, lambda seen: not seen.jobs)


@pytest.mark.req("B-04")
def test_a_job_that_was_read_again_and_is_as_it_was_makes_no_news(yard: taskyard.Yard, live: LiveFeed) -> None:
    view = live.watch()
    job = yard.jobs.start(taskyard.Shell("sleep 60"))
    until_shown(view, lambda seen: seen.jobs and seen.jobs[0].pid)
    until(lambda: not live._has_news())
    heard: list[Snapshot] = []
    view.listen(heard.append)
    folder = JobPaths(yard.home, job.id)

    files.replace(folder.record, Path(folder.record).read_bytes())
    Path(live_folder(yard.home), "b00000000").touch()  # no job has this id
    until(lambda: not live._has_news())
    assert heard == []

    yard.jobs.pause(job.id)
    until(lambda: heard and heard[-1].jobs[0].is_paused)


@pytest.mark.req("B-06")
def test_a_program_keeps_nothing_in_memory_of_the_jobs_it_started(yard: taskyard.Yard, live: LiveFeed) -> None:
    def in_memory() -> int:
        gc.collect()
        return sum(isinstance(found, Job) for found in gc.get_objects())

    before = in_memory()
    started = [yard.jobs.start(taskyard.Shell("true")).id for _ in range(20)]
    yard.jobs.wait_all(started, timeout=60)
    assert in_memory() == before

    view = live.watch()
    until_shown(view, lambda seen: len(seen.jobs) == 20 and all(job.is_over for job in seen.jobs))
    yard.jobs.dismiss(*started)
    until_shown(view, lambda seen: not seen.jobs)
    assert yard.jobs.get(started[0]).is_dismissed, "an id that was issued is always known"
