"""Jobs from the view: run in its foreground, sent to the background, answered, paused, stopped with two presses."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from support.tui import driven, eventually, grid, type_text
from support.wait import until
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import Job
from taskyard.ui.live import LiveView
from taskyard.ui.tui import app as tui_app
from taskyard.ui.tui.app import ForegroundJob, YardApp


async def run(pilot: Pilot[str], app: YardApp, command: str) -> str:
    """Run a command in the foreground, by its key; its id."""
    before = app.foreground.job
    await pilot.press("r")
    await type_text(pilot, command)
    await pilot.press("enter")
    await eventually(pilot, lambda: app.foreground.job not in (None, before), "the job")
    assert app.foreground.job is not None
    return app.foreground.job


def job(view: LiveView, job_id: str) -> Job:
    return view.yard.jobs.get(job_id)


async def select(pilot: Pilot[str], app: YardApp, job_id: str) -> None:
    """Have a job selected, and the keys go to the list of jobs."""
    await pilot.press("2")
    await eventually(pilot, lambda: app.main.jobs.select(job_id), "its row")


@pytest.mark.req("B-11", "U-01")
@driven
async def test_a_command_runs_in_the_foreground_and_goes_to_the_background_without_restarting(
    release: LiveView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForegroundJob, "HINT_AFTER", 0.2)
    monkeypatch.delenv("TMUX", raising=False)
    app = YardApp(release)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await pilot.pause()
        job_id = await run(pilot, app, "echo it began; exec sleep 300")
        await eventually(pilot, lambda: " it began" in grid(app), "its output in the detail")
        assert not job(release, job_id).is_backgrounded
        await eventually(pilot, lambda: "Ctrl+B moves it to the background" in grid(app), "the hint")
        pid = job(release, job_id).pid
        await pilot.press("ctrl+b")
        await eventually(pilot, lambda: job(release, job_id).is_backgrounded, "the background")
        await eventually(pilot, lambda: "Ctrl+B" not in grid(app), "the end of the hint")

        assert (job(release, job_id).pid, job(release, job_id).is_final) == (pid, False)
        assert "1 shell" in grid(app).splitlines()[-1]


@pytest.mark.req("B-11", "U-01")
@driven
async def test_at_most_one_job_is_in_the_foreground(release: LiveView) -> None:
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        first = await run(pilot, app, "exec sleep 300")
        second = await run(pilot, app, "exec sleep 301")

        assert job(release, first).is_backgrounded
        assert not job(release, second).is_backgrounded


@pytest.mark.req("B-11")
@driven
async def test_leaving_sends_the_foreground_job_to_the_background_and_says_so(release: LiveView) -> None:
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        job_id = await run(pilot, app, "exec sleep 300")
        await eventually(pilot, lambda: job_id in {one.id for one in app.main.snapshot.jobs}, "its row")
        await pilot.press("q")
        await eventually(pilot, lambda: app.return_value is not None, "the farewell")

    assert job(release, job_id).is_backgrounded
    assert not job(release, job_id).is_final
    assert f"It goes on in the background: {job_id}. {job_id} keeps running." in str(app.return_value)


@driven
async def test_leaving_says_that_jobs_keep_running(release: LiveView) -> None:
    release.yard.jobs.start(Shell("exec sleep 300"))
    release.yard.jobs.start(Shell("exec sleep 301"))
    app = YardApp(release)
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(pilot, lambda: len(app.main.snapshot.jobs) == 2, "both")
        await pilot.press("q")

    assert app.return_value == "2 jobs keep running. See `taskyard ps`, or `taskyard tui` again."


@pytest.mark.req("U-01")
@driven
async def test_x_asks_in_place_and_a_second_x_stops(release: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui_app, "STOP_WITHIN", 60.0)  # the machine may be slow for a moment
    started = release.yard.jobs.start(Shell("exec sleep 300"))
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await select(pilot, app, started.id)
        await pilot.press("x")
        assert "x again to stop" in grid(app)
        assert not job(release, started.id).is_final
        await pilot.press("x")
        await eventually(pilot, lambda: job(release, started.id).is_final, "its end")
        await eventually(pilot, lambda: "■" in grid(app), "the row")

    assert job(release, started.id).end is not None


@driven
async def test_one_x_alone_stops_nothing(release: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tui_app, "STOP_WITHIN", 0.3)
    started = release.yard.jobs.start(Shell("exec sleep 300"))
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await select(pilot, app, started.id)
        await pilot.press("x")
        await eventually(pilot, lambda: "x again" not in grid(app), "the end of the question")
        await pilot.press("x")
        assert "x again to stop" in grid(app)

    assert not job(release, started.id).is_final


@pytest.mark.req("U-01")
@driven
async def test_a_job_that_asks_is_answered_in_place(release: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_STALL_AFTER", "0.3")
    import taskyard

    script = "printf 'Overwrite? (y/n) '; read said; echo got $said"
    with taskyard.open(list="release") as impatient:
        started = impatient.jobs.start(Shell(script, stdin=True, on_parent_exit="keep"))
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await eventually(pilot, lambda: "needs input" in grid(app), "that it asks")
        assert "! 1 waits" in grid(app)
        await select(pilot, app, started.id)
        await pilot.press("enter")
        await eventually(pilot, lambda: app.is_typing(), "the line for the answer")
        await eventually(pilot, lambda: "! Overwrite? (y/n)" in grid(app), "the question")
        await type_text(pilot, "yes")
        await pilot.press("enter")
        await eventually(pilot, lambda: " got yes" in grid(app), "what came of it")
        await eventually(pilot, lambda: "needs input" not in grid(app), "that it asks no longer")


@driven
async def test_a_job_is_paused_and_goes_on_by_the_same_key(release: LiveView) -> None:
    started = release.yard.jobs.start(Shell("exec sleep 300"))
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await select(pilot, app, started.id)
        await pilot.press("p")
        await eventually(pilot, lambda: "paused" in grid(app), "the pause")
        await pilot.press("p")
        await eventually(pilot, lambda: "paused" not in grid(app) and "running" in grid(app), "that it goes on")


@driven
async def test_a_failure_counts_as_seen_once_somebody_opened_it(release: LiveView) -> None:
    failed = release.yard.jobs.run(Shell("exit 3"))
    app = YardApp(release)
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(pilot, lambda: app.main.snapshot.attention == 1, "the failure")
        await select(pilot, app, failed.id)
        assert app.main.snapshot.attention == 1
        await pilot.press("enter")
        await eventually(pilot, lambda: app.main.snapshot.attention == 0, "that it was seen")


@driven
async def test_ids_and_paths_are_copied(release: LiveView) -> None:
    release.yard.tasks.create("Build")
    done = release.yard.jobs.run(Shell("echo hello"))
    app = YardApp(release)
    async with app.run_test(size=(120, 30)) as pilot:
        await pilot.pause()
        await pilot.press("y")
        assert app.clipboard == "1"
        await select(pilot, app, done.id)
        await pilot.press("y")
        assert app.clipboard == done.id
        await pilot.press("3", "y")
        assert app.clipboard == job(release, done.id).output_file


def test_the_foreground_key_is_the_one_that_the_person_can_press(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux")
    assert (ForegroundJob("").binding, ForegroundJob("ctrl+g").binding) == ("ctrl+right_square_bracket", "ctrl+g")
    monkeypatch.delenv("TMUX")
    assert (ForegroundJob("").binding, ForegroundJob("off").key) == ("ctrl+b", None)
    monkeypatch.setenv("TASKYARD_DISABLE_BACKGROUND_TASKS", "1")
    assert ForegroundJob("").key is None


def test_every_job_of_these_tests_can_be_ended(release: LiveView) -> None:
    started = release.yard.jobs.start(Shell("exec sleep 300"))
    release.yard.jobs.stop(started.id, grace=0.0)
    until(lambda: release.yard.jobs.get(started.id).is_final)


@pytest.mark.req("U-01")
@driven
async def test_a_pager_that_is_no_command_is_told(release: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "less '")
    started = release.yard.jobs.start(Shell("true"))
    app = YardApp(release)
    async with app.run_test(size=(120, 30), notifications=True) as pilot:
        await select(pilot, app, started.id)
        await pilot.press("o")
        await eventually(pilot, lambda: "which is not a command" in grid(app), "the error")


@pytest.mark.req("B-06", "Q-11")
@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
@driven
async def test_a_job_that_is_read_stays_open_when_another_program_dismisses_it(
    release: LiveView, size: tuple[int, int]
) -> None:
    other = release.yard.jobs.run(Shell("printf 'said %s' that"))
    read = release.yard.jobs.run(Shell("printf 'said %s' this"))
    app = YardApp(release)
    async with app.run_test(size=size) as pilot:
        await select(pilot, app, read.id)
        await pilot.press("enter")
        await eventually(pilot, lambda: app.place == "output" and "said this" in grid(app), "its output")

        release.yard.jobs.dismiss(read.id)
        await eventually(pilot, lambda: [one.id for one in app.main.snapshot.jobs] == [other.id], "that it left")
        assert "said this" in grid(app)

        await pilot.press("]")
        await eventually(pilot, lambda: read.id in grid(app), "its details")
        await pilot.press("escape")
        await eventually(pilot, lambda: read.id[:4] not in grid(app), "that nothing of it is left")


@pytest.mark.req("Q-11")
@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
@driven
async def test_a_job_that_is_dismissed_where_it_is_read_is_closed(release: LiveView, size: tuple[int, int]) -> None:
    release.yard.jobs.run(Shell("printf 'said %s' that"))
    read = release.yard.jobs.run(Shell("printf 'said %s' this"))
    app = YardApp(release)
    async with app.run_test(size=size) as pilot:
        await select(pilot, app, read.id)
        await pilot.press("enter")
        await eventually(pilot, lambda: app.place == "output" and "said this" in grid(app), "its output")
        await pilot.press("D")
        await eventually(pilot, lambda: app.place == "jobs" and len(app.main.snapshot.jobs) == 1, "the list")
        await eventually(pilot, lambda: "said this" not in grid(app), "that nothing of it is left")
