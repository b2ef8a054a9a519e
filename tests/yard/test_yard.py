"""What meets in a yard: new owners get mail, the unblocked are told once, whoever leaves gives back."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

import taskyard
from taskyard.agents.teams import team_folder
from taskyard.tasks import task_list

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskyard.agents.mail import Message
    from taskyard.tasks.model import Task
    from taskyard.tasks.task_list import TaskList
    from taskyard.yard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    with taskyard.open(tasks_dir=tmp_path / "tasks", list="crew", agent="lead", is_person=True) as found:
        yield found


def mail_of(yard: Yard, agent: str) -> list[Message]:
    return yard.mail.take(agent)


@pytest.mark.req("L-16")
def test_a_new_owner_gets_the_whole_assignment_by_mail(yard: Yard) -> None:
    task = yard.tasks.create("Port the importer", description="All of it", owner="ada")

    [message] = mail_of(yard, "ada")
    data = dict(message.data)

    assert str(data.pop("timestamp")).endswith("Z")
    assert (message.type, message.sender) == ("task_assignment", "lead")
    assert data == {
        "taskId": task.id,
        "subject": "Port the importer",
        "description": "All of it",
        "assignedBy": "lead",
    }


@pytest.mark.req("L-16")
def test_nobody_gets_mail_about_their_own_act(yard: Yard) -> None:
    task = yard.tasks.create("Port the importer", owner="lead")
    yard.tasks.claim(yard.tasks.create("Another").id)
    yard.tasks.assign(task.id, "lead")

    assert mail_of(yard, "lead") == []


@pytest.mark.req("L-16")
def test_an_assignment_stands_although_its_mail_cannot_be_sent(
    tmp_path: Path, yard: Yard, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.makedirs(yard.home, mode=0o700, exist_ok=True)
    os.symlink(tmp_path / "elsewhere", f"{yard.home}/mail")

    task = yard.tasks.create("Port the importer", owner="ada")

    assert yard.tasks.get(task.id).owner == "ada"
    assert "No mail to 'ada' about task #1" in capsys.readouterr().err


@pytest.mark.req("L-16", "M-02")
def test_an_owner_that_claude_code_runs_is_told_in_its_own_inbox(yard: Yard, outside: Path) -> None:
    folder = team_folder(str(outside / ".claude"), "crew")
    os.makedirs(folder)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as file:
        file.write('{"name": "crew", "createdAt": 1, "leadAgentId": "l@crew", "members": [{"name": "alice"}]}')

    yard.tasks.create("Port the importer", owner="alice")

    with open(f"{folder}/inboxes/alice.json", encoding="utf-8") as file:
        assert "task_assignment" in file.read()
    assert not os.path.exists(f"{yard.home}/mail/crew/alice/new")


@pytest.mark.req("L-07")
def test_whoever_waited_for_the_last_blocker_is_told_once(yard: Yard) -> None:
    first, second = yard.tasks.create("First"), yard.tasks.create("Second")
    third = yard.tasks.create("Third", blocked_by=[first.id, second.id], owner="ada")
    mail_of(yard, "ada")

    yard.tasks.complete(first.id, agent="bob")
    assert mail_of(yard, "ada") == []
    assert yard.tasks.complete(second.id, agent="bob").ready == (third.id,)

    assert [message.text for message in mail_of(yard, "ada")] == [
        "Task #3 is ready: its last blocker, #2, is completed."
    ]


@pytest.mark.req("L-07")
def test_of_two_who_complete_the_last_blockers_together_one_tells(
    tmp_path: Path, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = [yard.tasks.create(f"Blocker {n}").id for n in range(2)]
    yard.tasks.create("Waiting", blocked_by=pair, owner="ada")
    mail_of(yard, "ada")
    both_done, look_around = threading.Barrier(2), task_list.after_completion

    def aftermath(tasks: TaskList, done: Task, by: str | None) -> Task:
        both_done.wait(timeout=10)  # each finds the other's blocker done as well
        return look_around(tasks, done, by)

    def complete(task_id: str) -> None:
        with taskyard.open(tasks_dir=tmp_path / "tasks", list="crew", agent="bob", is_person=True) as mine:
            mine.tasks.complete(task_id)

    monkeypatch.setattr(task_list, "after_completion", aftermath)
    threads = [threading.Thread(target=complete, args=(task_id,)) for task_id in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)

    assert len(mail_of(yard, "ada")) == 1


@pytest.mark.req("L-10", "M-01")
def test_a_member_that_leaves_gives_its_unfinished_tasks_back(yard: Yard) -> None:
    teams = yard.teams
    teams.create("crew", lead="lead")
    teams.join("crew", "ada", kind="external")
    done, doing, others = (yard.tasks.create(name).id for name in ("Done", "Doing", "Another's"))
    yard.tasks.complete(done, agent="ada")
    yard.tasks.start(doing, agent="ada")
    yard.tasks.start(others, agent="bob")

    teams.leave("crew", "ada")

    assert teams.released == (doing,)
    assert [(task.owner, task.status.value) for task in yard.tasks.list()] == [
        (None, "completed"),
        (None, "pending"),
        ("bob", "in_progress"),
    ]


@pytest.mark.req("L-10", "M-01")
def test_a_removed_team_gives_everyones_tasks_back_from_whichever_list_it_is_removed(
    tmp_path: Path, yard: Yard
) -> None:
    yard.teams.create("crew", lead="lead")
    yard.teams.join("crew", "ada", kind="external")
    for agent in ("lead", "ada"):
        yard.tasks.start(yard.tasks.create(f"Of {agent}").id, agent=agent)

    with taskyard.open(tasks_dir=tmp_path / "tasks", list="another", is_person=True) as beside:
        teams = beside.teams
        teams.remove("crew", force=True)

    assert teams.released == ("1", "2")
    assert [task.owner for task in yard.tasks.list()] == [None, None]


@pytest.mark.req("L-10")
def test_what_was_finished_or_handed_on_meanwhile_is_left_alone(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (yard.tasks.create(name).id for name in ("First", "Second"))
    for task_id in (first, second):
        yard.tasks.start(task_id, agent="ada")
    seen = yard.tasks.store.list()
    monkeypatch.setattr(yard.tasks.store, "list", lambda: seen)  # as it was a moment ago
    yard.tasks.complete(first, agent="ada")

    assert [task.id for task in yard.tasks.release_all("ada")] == [second]
    assert yard.tasks.get(first).is_done
