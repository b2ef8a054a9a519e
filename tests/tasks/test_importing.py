"""Importing is creating: the same hooks, the same mail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import taskyard
from support.yards import open_yard
from taskyard.errors import HookRefused

pytestmark = pytest.mark.usefixtures("kept_in")


def hooks(outside: Path, **commands: str) -> None:
    """Hooks of the user's own, which need no trust."""
    settings = {"hooks": {event: [{"hooks": [{"type": "command", "command": c}]}] for event, c in commands.items()}}
    (outside / ".claude").mkdir(exist_ok=True)
    (outside / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


PLAN = "- [ ] #1 One · @bob\n- [x] #2 Two · @bob\n- [ ] #3 Three · @ada\n- [ ] #4 Four · @eve · after #1\n"


@pytest.mark.req("L-22", "L-16")
def test_owners_of_imported_tasks_get_mail_unless_it_is_done_or_their_own_act(tmp_path: Path) -> None:
    with open_yard(tmp_path, "ada") as yard:
        yard.tasks.import_(PLAN, "markdown")
        told = {name: [message.data["subject"] for message in yard.mail.take(name)] for name in ("ada", "bob", "eve")}
        assert told == {"ada": [], "bob": ["One"], "eve": ["Four"]}
        yard.tasks.import_(PLAN, "markdown")
        assert yard.mail.take("bob") == []


@pytest.mark.req("L-22", "H-01")
def test_hooks_are_asked_about_each_imported_task_and_about_the_completion_of_those_done(
    tmp_path: Path, outside: Path
) -> None:
    hooks(outside, TaskCreated=f"cat >> {tmp_path}/created", TaskCompleted=f"cat >> {tmp_path}/completed")
    with open_yard(tmp_path / "tasks", "ada") as yard:
        added = yard.tasks.import_(PLAN, "markdown")

    def asked(file: str) -> list[tuple[str, str]]:
        lines = (tmp_path / file).read_text(encoding="utf-8").splitlines()
        return [(body["task_id"], body["task_subject"]) for body in map(json.loads, lines)]

    assert asked("created") == [(task.id, task.subject) for task in added]
    assert asked("completed") == [("2", "Two")]


@pytest.mark.req("L-22", "H-01", "L-03")
@pytest.mark.parametrize(("event", "what"), [("TaskCreated", "Three"), ("TaskCompleted", "Two")])
def test_a_hook_that_refuses_stops_the_import_and_what_was_added_before_stays_and_is_named(
    tmp_path: Path, outside: Path, event: str, what: str
) -> None:
    hooks(outside, **{event: f"grep -q {what} && echo 'not now' >&2 && exit 2 || exit 0"})
    with open_yard(tmp_path, "ada") as yard:
        with pytest.raises(HookRefused, match="not now") as refusal:
            yard.tasks.import_(PLAN, "markdown")
        before = [task.subject for task in yard.tasks.list()]
        assert before == (["One", "Two"] if what == "Three" else ["One"])
        assert refusal.value.added == tuple(task.id for task in yard.tasks.list())
        assert all(f"#{task_id}" in str(refusal.value) for task_id in refusal.value.added)

        hooks(outside)
        yard.tasks.import_(PLAN, "markdown")
        after = {task.subject: task for task in yard.tasks.list()}
        assert list(after)[: len(before)] == before
        assert after["Four"].blocked_by == (after["One"].id,)
        assert len(after) == 4


@pytest.mark.req("L-22", "L-21")
def test_acceptance_is_not_run_for_what_comes_in_as_done(tmp_path: Path) -> None:
    task = {"subject": "A", "status": "completed", "metadata": {"taskyard": {"acceptance": {"command": "false"}}}}
    with open_yard(tmp_path, "ada") as yard:
        [added] = yard.tasks.import_(json.dumps([task]))
    assert added.is_done


@pytest.mark.req("L-22", "H-01")
def test_the_command_line_names_what_was_added_before_a_refusal_and_what_was_left_out(
    tmp_path: Path, outside: Path
) -> None:
    (tmp_path / "plan.md").write_text(PLAN, encoding="utf-8")
    hooks(outside, TaskCreated="grep -q Three && exit 2 || exit 0")
    refused = taskyard("task", "import", str(tmp_path / "plan.md"), "--json")
    assert (refused.code, refused.error["code"], refused.error["added"]) == (5, "hook_refused", ["1", "2"])

    hooks(outside)
    (tmp_path / "circle.md").write_text("- [ ] #1 A · part of #2\n- [ ] #2 B · part of #1\n", encoding="utf-8")
    assert "was left out" in taskyard("task", "import", str(tmp_path / "circle.md")).out
