"""Getting about with keys alone; and what changes moves nothing under the person's hands."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from support.tui import (
    JOBS,
    LONG_OUTPUT,
    NOW,
    RELEASE,
    Scenery,
    driven,
    eventually,
    grid,
    home_of,
    printed,
    scene,
    type_text,
    view_of,
)
from taskyard.tasks.model import Task
from taskyard.ui.output import OutputReader
from taskyard.ui.tui.app import YardApp
from taskyard.ui.tui.feed import DetailTarget
from taskyard.ui.tui.keys import HelpScreen
from taskyard.ui.tui.output_view import OutputUpdate
from taskyard.ui.tui.screens import DetailScreen

WIDE, NARROW, TINY = (120, 40), (80, 24), (50, 20)


def view(tmp_path: Path) -> YardApp:
    home = home_of(tmp_path)
    for job in JOBS:
        printed(home, job.id, LONG_OUTPUT)
    return view_of(Scenery(scene(), home))


def over(app: YardApp) -> type | None:
    """What lies over the lists."""
    return None if app.screen is app.main else type(app.screen)


def follows(app: YardApp) -> bool:
    return app.main.detail.output.follows


def selected(app: YardApp) -> str | None:
    return app.main.list_of(app.main.active).selected


@driven
async def test_rows_are_walked_and_the_detail_shows_the_selected_one(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        for key, wanted in (("j", "14"), ("down", "9"), ("k", "14"), ("G", "11"), ("g", "12"), ("up", "12")):
            await pilot.press(key)
            assert selected(app) == wanted, key
        assert app.main.detail.subject == DetailTarget("task", "12")
        await pilot.press("G", "j")
        assert (app.place, selected(app)) == ("people", "ada")
        await pilot.press("k")
        assert (app.place, selected(app)) == ("tasks", "11")


@driven
async def test_panes_have_numbers_and_esc_goes_one_step_back(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("2")
        assert (app.place, app.main.detail.subject) == ("jobs", DetailTarget("job", "b9qx4t7za"))
        await pilot.press("j", "3")
        assert app.place == "output"
        await pilot.press("right_square_bracket")
        assert app.place == "details"
        await pilot.press("right_square_bracket")
        assert app.place == "graph"
        await pilot.press("left_square_bracket", "escape")
        assert app.place == "jobs"
        await pilot.press("1")
        assert app.place == "tasks"
        await pilot.press("escape", "escape")
        assert app.is_running


@driven
async def test_in_a_narrow_window_the_detail_comes_over_the_lists_and_goes_with_esc(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        assert over(app) is DetailScreen
        assert app.place == "details"
        await pilot.press("escape")
        assert over(app) is None
        await pilot.press("enter")
        await pilot.resize_terminal(*WIDE)
        await eventually(pilot, lambda: app.screen is app.main, "the wide view")
        assert app.main.detail.display


@pytest.mark.req("U-02")
@driven
async def test_in_a_tiny_window_the_pill_leads_to_the_jobs(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=TINY) as pilot:
        await pilot.pause()
        assert "Background" not in grid(app)
        assert "3 background tasks (2)" in grid(app)
        await pilot.press("2")
        await eventually(pilot, lambda: "npm test" in grid(app), "the jobs")
        assert "Migrate" not in grid(app)
        await pilot.press("1")
        await eventually(pilot, lambda: "Migrat" in grid(app), "the tasks")


@driven
async def test_a_line_of_the_details_leads_to_another_task(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("3")
        facts = app.main.detail.facts
        while facts.link_id != "13":
            await pilot.press("j")
        await pilot.press("enter")
        assert (app.main.detail.subject, selected(app)) == (DetailTarget("task", "13"), "13")


@driven
async def test_the_cursor_of_the_graph_goes_along_its_lines(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("3", "right_square_bracket")
        graph = app.main.detail.graph
        for key, wanted in (
            ("l", "13"),
            ("j", "17"),
            ("k", "13"),
            ("right", "16"),
            ("h", "13"),
            ("left", "12"),
            ("h", "11"),
        ):
            await pilot.press(key)
            assert graph.cursor == wanted, key
        await pilot.press("enter")
        assert app.main.detail.subject == DetailTarget("task", "11")


@driven
async def test_rows_are_filtered_as_one_types_and_all_are_there_again_with_esc(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("slash")
        await type_text(pilot, "@ada")
        assert [app.main.tasks.key_of(task) for task in app.main.tasks.items] == ["12", "11"]
        await pilot.press("enter", "a", "escape")  # another line to type into is no filter
        assert len(app.main.tasks.items) == 2
        await pilot.press("escape")
        assert len(app.main.tasks.items) == len(RELEASE)
        await pilot.press("2", "slash")
        await type_text(pilot, "!npm")
        assert [app.main.jobs.key_of(job) for job in app.main.jobs.items] == ["a3f0c9d1e", "b5dd81k2j"]


@driven
async def test_while_a_line_is_typed_its_letters_are_no_keys(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("a", "q", "x", "j", "question_mark", "ctrl+b")
        assert app.front.prompt.line.value == "qxj?"
        assert (app.is_running, selected(app)) == (True, "12")


async def open_output(pilot: Pilot[str], app: YardApp) -> None:
    await pilot.press("2")
    app.main.jobs.select("b7k2m3x0q")
    await pilot.press("3")
    await eventually(pilot, lambda: len(app.main.detail.output.kept.lines) == 1_204, "its output")


@pytest.mark.req("U-01")
@driven
async def test_an_output_is_followed_left_wrapped_timed_and_searched_by_keys(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await open_output(pilot, app)
        output = app.main.detail.output
        assert follows(app)
        assert output.scroll_offset.y == output.max_scroll_y > 1_000
        await pilot.press("k")
        assert not follows(app)
        await pilot.press("f")
        assert follows(app)
        await pilot.press("w", "t")
        assert (output.wraps, output.shows_times) == (True, True)
        await pilot.press("g")
        await eventually(pilot, lambda: "setup 1:" in grid(app), "its first line")
        await pilot.press("G")
        await eventually(pilot, lambda: "keeps unknown columns" in grid(app), "its end")
        assert follows(app)


@driven
async def test_find_goes_through_the_whole_file_and_n_to_the_next(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await open_output(pilot, app)
        output = app.main.detail.output
        await pilot.press("slash")
        await type_text(pilot, "SETUP 11:")
        await pilot.press("enter")
        await eventually(pilot, lambda: "setup 11:" in grid(app), "the line")
        await pilot.press("slash")
        await type_text(pilot, "setup 11")
        await pilot.press("enter")
        await eventually(pilot, lambda: output.found == "setup 11" and output.found_at is not None, "the first")
        first = output.found_at
        await pilot.press("n")
        await eventually(pilot, lambda: output.found_at not in (None, first), "the next")
        await pilot.press("N")
        await eventually(pilot, lambda: output.found_at == first, "the one before")


@driven
async def test_what_is_found_in_the_last_line_is_seen_and_nothing_is_marked_after_an_empty_find(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await open_output(pilot, app)
        output, heights = app.main.detail.output, set[int]()
        app.main.watch(output, "size", lambda size: heights.add(size.height), init=False)
        for text in ("setup 5:", "keeps unknown"):
            await pilot.press("slash")
            await type_text(pilot, text)
            await pilot.press("enter")
            await eventually(pilot, lambda text=text: text in grid(app), text)  # type: ignore[misc]
        assert not heights  # a line to type into stands in place of another: nothing moves for it
        await pilot.press("slash")
        await type_text(pilot, "nowhere")
        await pilot.press("enter")
        await eventually(pilot, lambda: "No 'nowhere' in this output." in grid(app), "the answer")
        await pilot.press("slash")
        await type_text(pilot, "")
        await pilot.press("enter")
        assert (output.found, "/nowhere" in grid(app)) == ("", False)


@driven
async def test_who_has_scrolled_back_is_not_taken_to_the_end_by_what_was_asked_for_before(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await open_output(pilot, app)
        pane = app.main.detail
        await pilot.press("l", "k")
        assert pane.job is not None
        pane.hear(OutputUpdate(pane.job.id, OutputReader(app.feed.yard.home, pane.job.id).tail(10), is_first=True))
        await pilot.pause()
        assert (follows(app), len(pane.output.kept.lines) > 10) == (False, True)


@driven
async def test_help_closes_with_any_key_and_the_palette_does_what_is_chosen(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("question_mark")
        assert over(app) is HelpScreen
        await pilot.press("z")
        assert over(app) is None
        await pilot.press("ctrl+p")
        await type_text(pilot, "add a task")
        await eventually(pilot, lambda: "Add a task" in grid(app), "the command")
        await pilot.press("enter")
        await eventually(pilot, lambda: app.front.prompt.is_open, "the line to type into")


@pytest.mark.req("U-03")
@driven
async def test_only_what_changed_is_drawn_and_the_selection_stays_with_its_row(tmp_path: Path) -> None:
    feed = Scenery(scene(), home_of(tmp_path))
    app = view_of(feed)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()
        await pilot.press("j", "j")
        tasks, jobs = app.main.tasks, app.main.jobs
        before = (tasks.redrawn, jobs.redrawn)
        changed = [task._replace(subject="Write them") if task.id == "15" else task for task in RELEASE]
        feed.turn(scene(tasks=changed))
        await eventually(pilot, lambda: "Write them" in grid(app), "the change")
        assert (tasks.redrawn - before[0], jobs.redrawn - before[1]) == (1, 0)
        first = Task("3", "New and first", owner="ada", status=RELEASE[2].status, updated_at=NOW - 999_000)
        feed.turn(scene(tasks=(*changed, first)))
        await eventually(pilot, lambda: "New and first" in grid(app), "the new row")
        assert (tasks.selected, tasks.current) == ("9", next(task for task in tasks.items if tasks.key_of(task) == "9"))
        feed.turn(scene(tasks=[task for task in changed if task.id != "9"]))
        await eventually(pilot, lambda: "release notes" not in grid(app), "that it is gone")
        assert tasks.selected is not None


@driven
async def test_a_flood_of_snapshots_is_drawn_ten_times_a_second_and_nothing_while_nothing_happens(
    tmp_path: Path,
) -> None:
    feed = Scenery(scene(tasks=(), jobs=()), home_of(tmp_path))
    app = view_of(feed)
    async with app.run_test(size=NARROW) as pilot:
        await pilot.pause(0.3)
        drawings = app.drawings
        for number in range(200):
            feed.turn(scene(tasks=(Task("1", f"Take {number}"),)))
        await eventually(pilot, lambda: "Take 199" in grid(app), "the last")
        assert app.drawings - drawings <= 4
        rest = (app.drawings, app.main.tasks.redrawn)
        await pilot.pause(0.5)
        assert (app.drawings, app.main.tasks.redrawn) == rest


@driven
async def test_who_types_fast_acts_on_the_pane_that_was_named(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await pilot.pause()

        app.action_focus_pane(2)  # and nothing else had its turn yet

        assert app.subject() == DetailTarget("job", JOBS[0].id)


@driven
async def test_keys_work_on_when_what_had_the_focus_is_hidden(tmp_path: Path) -> None:
    app = view(tmp_path)
    async with app.run_test(size=WIDE) as pilot:
        await open_output(pilot, app)
        await pilot.resize_terminal(*NARROW)
        await eventually(pilot, lambda: over(app) is DetailScreen, "the detail, over the lists")
        assert app.subject() == app.main.subject()
        await pilot.press("escape", "1", "G", "j")  # to the team, below the tasks
        assert app.place == "people"
        await pilot.resize_terminal(80, 9)
        await eventually(pilot, lambda: app.place == "tasks" and app.main.tasks.has_focus, "the tasks")
        assert "2 Background" in grid(app)
        await pilot.press("g", "j")
        assert selected(app) == "14"
