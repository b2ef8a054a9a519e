"""A whole list moved between stores: as it was, both ways, in one step, and once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.cli import taskyard as command_line
from support.yards import write_task
from taskyard import config
from taskyard.errors import BadId, BadValue, Cycle, HookRefused, ListNotEmpty
from taskyard.tasks.transfer import parse_list_export

pytestmark = pytest.mark.req("L-22", "X-01")

#: Deeper than any verb of ours takes, and as deep as a file is read.
DEEP: Any = "bottom"
for _ in range(90):
    DEEP = {"in": [DEEP]}

OURS = {"parent": "9", "priority": 1, "labels": ["\0"]}

#: What other programs may write, and no verb of ours would make.
HOSTILE: list[dict[str, Any]] = [
    {"id": "2", "subject": "NUL \0 and \x1b[31m", "description": "lone \ud800 and \udfff", "blocks": ["5", "9"]},
    {"id": "5", "subject": "</task> \u202e ✓", "description": "x" * 1_000_000, "blockedBy": ["2"], "owner": "ada"},
    {"id": "9", "subject": "deep", "description": "", "status": "completed", "metadata": {"k": DEEP, "n": 1e300}},
    {"id": "11", "subject": "part", "activeForm": "\t\n", "status": "in_progress", "owner": "Zoë"},
]
HOSTILE[2]["blockedBy"] = ["2"]
HOSTILE[3]["metadata"] = {"taskyard": OURS}


@pytest.fixture
def files(tmp_path: Path) -> Iterator[taskyard.Yard]:
    for number, fields in enumerate(HOSTILE):
        given = {"createdAt": 1_700_000_000_000 + number, "updatedAt": 1_700_000_100_000 + number, **fields}
        write_task(tmp_path / "tasks" / "plan", given.pop("id"), **given)
    (tmp_path / "tasks" / "plan" / ".highwatermark").write_text("14")
    with taskyard.open(tasks_dir=tmp_path / "tasks", list="plan") as yard:
        yield yard


def test_a_list_moves_to_a_database_and_back_and_is_the_same(
    files: taskyard.Yard, address: str, tmp_path: Path
) -> None:
    text = files.tasks.export()
    with taskyard.open(store=address, list="plan") as shared:
        moved = shared.tasks.import_(text, keep_ids=True, agent="eve")
        assert shared.tasks.export() == text
        assert [task._replace(lease=None) for task in shared.tasks.list()] == list(moved)
        assert tuple(shared.tasks.list()) == tuple(files.tasks.list())
        [change] = shared.tasks.log()
        assert (change.act.by, change.act.cause, list(change.tasks)) == ("eve", "import", ["2", "5", "9", "11"])
        assert shared.tasks.create("Next").id == "15", "an id that was spent comes back"
        back = shared.tasks.delete("15") and shared.tasks.export()

    with taskyard.open(tasks_dir=tmp_path / "again", list="plan") as again:
        again.tasks.import_(back, keep_ids=True)
        assert json.loads(again.tasks.export())["tasks"] == json.loads(text)["tasks"]
        assert again.tasks.create("Next").id == "16"


def test_moving_twice_adds_nothing_and_a_list_with_other_tasks_is_left_alone(
    files: taskyard.Yard, address: str
) -> None:
    text = files.tasks.export()
    with taskyard.open(store=address, list="plan") as shared:
        assert len(shared.tasks.import_(text, keep_ids=True)) == 4
        assert shared.tasks.import_(text, keep_ids=True) == ()
        shared.tasks.delete("9", force=True)
        before = shared.tasks.export()
        with pytest.raises(ListNotEmpty, match="'plan' has 3 tasks") as refusal:
            shared.tasks.import_(text, keep_ids=True)
        assert (refusal.value.list, refusal.value.count, shared.tasks.export()) == ("plan", 3, before)


@pytest.mark.req("H-01")
def test_a_hook_that_refuses_one_task_keeps_the_whole_list_out(tmp_path: Path, outside: Path, address: str) -> None:
    command = f"cat >> {tmp_path}/asked; grep -q Two {tmp_path}/asked && exit 2 || exit 0"
    settings = {"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": command}]}]}}
    (outside / ".claude").mkdir()
    (outside / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    tasks = [{"id": "1", "subject": "One", "owner": "bob"}, {"id": "2", "subject": "Two"}]

    with taskyard.open(store=address, list="plan", agent="ada") as shared:
        with pytest.raises(HookRefused):
            shared.tasks.import_(json.dumps(tasks), keep_ids=True)
        assert (tuple(shared.tasks.list()), shared.tasks.store.last_id()) == ((), 0)
        (outside / ".claude" / "settings.json").unlink()
        shared.tasks.import_(json.dumps(tasks), keep_ids=True)
        assert shared.mail.take("bob") == [], "it was his before"


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        ([{"subject": "a"}], "id in tasks"),
        ([{"id": "1", "subject": "a"}, {"id": 1, "subject": "b"}], "an id twice"),
        ([{"id": "1", "subject": "a", "blockedBy": ["7"]}], "blockedBy of #1"),
        ([{"id": "1", "subject": "a", "parent": "7"}], "parent of #1"),
        ([{"id": "1", "subject": "a", "owner": "\0"}], "owner in tasks"),
        ([{"id": "1", "subject": "a", "status": "deleted"}], "it is deleted"),
        ([{"id": "1", "subject": 7}], "no subject"),
        (["x"], "an object"),
        ({"tasks": [], "last_id": -1}, "last_id"),
    ],
)
def test_what_no_list_can_be_is_refused_and_says_where(tasks: object, why: str) -> None:
    with pytest.raises(BadValue, match=why):
        parse_list_export(json.dumps(tasks))


def test_ids_that_cannot_be_and_tasks_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadId):
        parse_list_export('[{"id": "../1", "subject": "a"}]')
    with pytest.raises(Cycle):
        parse_list_export(json.dumps([{"id": a, "subject": a, "blockedBy": [b]} for a, b in ("12", "21")]))
    nested = '{"x":' * 300 + "1" + "}" * 300
    with pytest.raises(BadValue, match="nested"):
        parse_list_export(f'[{{"id": "1", "subject": "a", "metadata": {nested}}}]')
    with taskyard.open(tasks_dir=tmp_path, list="plan") as yard, pytest.raises(BadValue, match="json"):
        yard.tasks.import_("- [ ] #1 One", "markdown", keep_ids=True)


@pytest.mark.req("T-05")
def test_a_person_moves_a_team_to_the_database_by_a_pipe(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_LIST", "release")
    monkeypatch.setenv("TASKYARD_TASKS_DIR", str(tmp_path / "tasks"))
    command_line("task", "add", "One", "--owner", "ada")
    command_line("task", "add", "Two", "--blocked-by", "1", "--priority", "2")
    command_line("task", "rm", "1", "--yes")
    command_line("task", "start", "2", "--by", "bob")
    text = command_line("task", "export").out

    monkeypatch.setenv("TASKYARD_STORE", address)
    moved = command_line("task", "import", "-", "--keep-ids", stdin=text.encode())
    again = command_line("task", "import", "-", "--keep-ids", stdin=text.encode())

    assert (moved.code, "with original ids" in moved.err, "2  Two" in moved.out) == (0, True, True)
    assert (again.code, again.out.startswith("No tasks imported")) == (0, True)
    assert command_line("task", "export").out == text
    command_line("task", "add", "Three")
    refused = command_line("task", "import", "-", "--keep-ids", "--json", stdin=b'[{"id":"8","subject":"x"}]')
    assert (refused.code, refused.error["code"], refused.error["count"]) == (5, "list_not_empty", 2)
    assert config.load_settings().store == address
