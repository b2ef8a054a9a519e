"""`taskyard doctor` from a shell: sentences, JSON, and a number that says whether all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.command import Shell
from support.sick_list import SickList

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def sick(tmp_path: Path) -> Iterator[SickList]:
    found = SickList(tmp_path)
    with found.yard, found.doctor:
        yield found


@pytest.fixture
def doctor(sick: SickList, capsys: pytest.CaptureFixture[str]) -> Shell:
    del sick
    return Shell(capsys)


def words(sick: SickList, *more: str) -> tuple[str, ...]:
    return ("doctor", "--tasks-dir", str(sick.root / "tasks"), "--list", "crew", *more)


@pytest.mark.req("L-06")
def test_a_healthy_list_is_called_so_and_ends_with_0(sick: SickList, doctor: Shell) -> None:
    sick.tasks(1)

    ran = doctor(*words(sick))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"No problems found in {sick.folder}.\n"
    assert doctor(*words(sick, "--json")).data["healthy"] is True


@pytest.mark.req("L-06")
def test_each_problem_has_a_name_a_file_a_reason_and_a_way_out(sick: SickList, doctor: Shell) -> None:
    sick.tasks(2)
    sick.write("1", blocks=...)
    sick.write("2", status="done")

    ran = doctor(*words(sick))

    assert ran.code == 1
    assert f"hidden-task  {sick.file('1')}\n    Claude Code does not see it: it has no blocks.\n    --fix: " in ran.out
    assert f"damaged-task  {sick.file('2')}\n    Its status is 'done'.\n    --fix damaged-task: " in ran.out
    assert "2 problems" in ran.out
    assert "`taskyard doctor --fix` repairs 1" in ran.out


@pytest.mark.req("L-06", "L-11")
def test_a_repair_says_what_it_did_and_the_number_says_what_is_left(sick: SickList, doctor: Shell) -> None:
    sick.tasks(2)
    sick.write("1", blocks=...)
    sick.write("2", status="done")

    first = doctor(*words(sick, "--fix", "--json"))
    second = doctor(*words(sick, "--fix", "damaged-task", "--by", "eve"))

    assert (first.code, [repair["name"] for repair in first.data["repairs"]]) == (1, ["hidden-task"])
    assert [finding["name"] for finding in first.data["findings"]] == ["damaged-task"]
    assert first.data["findings"][0]["repair"] == "named"
    assert second.code == 0
    assert "repaired damaged-task" in second.out
    assert "the original is kept in" in second.out
    assert sick.yard.tasks.log("2")[-1].act.by == "eve"


def test_notes_alone_are_no_reason_to_fail(sick: SickList, doctor: Shell) -> None:
    sick.tasks(1)
    (sick.folder / "notes.txt").touch()

    ran = doctor(*words(sick))

    assert ran.code == 0
    assert "other-file" in ran.out


def test_many_of_a_kind_are_counted_for_people_and_listed_for_machines(sick: SickList, doctor: Shell) -> None:
    sick.tasks(8)
    for task_id in range(1, 9):
        sick.write(str(task_id), owner=None)

    assert "… and 3 more of hidden-task" in doctor(*words(sick)).out
    assert len(doctor(*words(sick, "--json")).data["findings"]) == 8


def test_a_name_that_is_no_repair_is_refused_with_those_that_are(sick: SickList, doctor: Shell) -> None:
    ran = doctor(*words(sick, "--fix", "cycle", "--json"))

    assert (ran.code, ran.error["code"]) == (2, "bad_value")
    assert "damaged-task" in ran.error["message"]


def test_file_names_of_others_cannot_act_on_the_terminal(sick: SickList, doctor: Shell) -> None:
    sick.tasks(1)
    (sick.folder / "\x1b[2J.txt").touch()

    assert "\x1b" not in doctor(*words(sick)).out


def test_a_repair_the_disk_refuses_is_told_and_fails(
    sick: SickList, doctor: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from taskyard.errors import StorageError
    from taskyard.tasks.doctor.repairs import Backup

    def full(self: Backup, path: str) -> str:
        raise StorageError(path, "the disk is full")

    sick.tasks(1)
    sick.write("1", blocks=...)
    monkeypatch.setattr(Backup, "copy", full)

    ran = doctor(*words(sick, "--fix"))

    assert ran.code == 1
    assert "not repaired hidden-task" in ran.out
    assert "the disk is full" in ran.out
