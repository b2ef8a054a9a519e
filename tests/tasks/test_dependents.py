"""Who waits for a task, by their own word, also where the blocker's file does not know of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.yards import open_yard, write_task
from taskyard.tasks.graph import Dependents
from taskyard.tasks.model import DamagedFile, Task
from taskyard.tasks.reader import TaskReader


@pytest.mark.req("L-05")
def test_the_index_follows_every_change_of_a_task() -> None:
    two, three = Task("2", "b", blocked_by=("1",)), Task("3", "c", blocked_by=("1", "2"))
    found = Dependents([Task("1", "a"), two, three, DamagedFile("4.json", "torn")])
    assert (found.of("1"), found.of("2"), found.of("9")) == ({"2", "3"}, {"3"}, set())

    found.replace(three, three._replace(blocked_by=("2", "9")))
    found.replace(two, None)
    assert (found.of("1"), found.of("2"), found.of("9")) == (set(), {"3"}, {"3"})


@pytest.mark.req("L-06", "L-07")
def test_completing_tells_whoever_waits_although_the_file_of_the_blocker_does_not_know(tmp_path: Path) -> None:
    write_task(tmp_path / "plan", "1")
    write_task(tmp_path / "plan", "2", blockedBy=["1"], owner="bob")
    with open_yard(tmp_path, "ada") as yard:
        done = yard.tasks.complete("1")

        assert (done.ready, done.blocks) == (("2",), ("2",))
        assert [message.text for message in yard.mail.peek("bob")] == [
            "Task #2 is ready: its last blocker, #1, is completed."
        ]


@pytest.mark.req("L-05", "L-06")
def test_one_task_and_the_whole_list_agree_on_who_waits(tmp_path: Path) -> None:
    write_task(tmp_path / "plan", "1", blocks=["3", "4"])
    write_task(tmp_path / "plan", "2", blockedBy=["1"])
    write_task(tmp_path / "plan", "3", blockedBy=["1"])
    write_task(tmp_path / "plan", "4")
    with open_yard(tmp_path, "ada") as yard:
        for _ in range(3):
            assert yard.tasks.list()[0].blocks == ("2", "3")
            assert yard.tasks.get("1").blocks == ("2", "3")
        write_task(tmp_path / "plan", "2")
        write_task(tmp_path / "plan", "4", blockedBy=["1"])
        assert yard.tasks.get("1").blocks == ("3", "4"), "the kernel told of both, and nobody listed again"
        assert yard.tasks.list()[0].blocks == ("3", "4")


@pytest.mark.req("L-13", "L-05")
def test_tasks_of_the_older_file_wait_too(tmp_path: Path) -> None:
    write_task(tmp_path / "plan", "1")
    (tmp_path / "plan" / "tasks.json").write_text(
        '{"tasks": [{"id": 2, "title": "b", "status": "pending", "dependencies": [1]}]}', encoding="utf-8"
    )
    with open_yard(tmp_path, "ada") as yard:
        assert yard.tasks.list()[0].blocks == ("2",)
        assert yard.tasks.get("1").blocks == ("2",)
        assert yard.tasks.complete("1").ready == ("2",)


@pytest.mark.req("L-05")
def test_a_look_at_one_task_does_not_read_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_yard(tmp_path, "ada") as yard:
        for _ in range(50):
            yard.tasks.create("a")
        read: list[str] = []
        real = TaskReader.get

        def get(self: TaskReader, task_id: str) -> Task | DamagedFile | None:
            read.append(task_id)
            return real(self, task_id)

        monkeypatch.setattr(TaskReader, "get", get)
        monkeypatch.setattr(TaskReader, "scan", lambda *_: pytest.fail("the whole folder was read"))
        yard.tasks.get("7")
        assert set(read) == {"7"}
        monkeypatch.undo()
        for _ in range(2):
            yard.tasks.list()
        yard.tasks.update("9", subject="b")
        monkeypatch.setattr(TaskReader, "scan", lambda *_: pytest.fail("the whole folder was read"))

        assert yard.tasks.get("7").subject == "a"
