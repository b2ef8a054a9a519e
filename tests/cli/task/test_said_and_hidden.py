"""What commands about tasks say: removals with their undo, the log without noise, urgency, and whose a task is."""

from __future__ import annotations

import pytest

from support.cli import taskyard


@pytest.fixture(autouse=True)
def plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of its own."""
    monkeypatch.setenv("TASKYARD_LIST", "plan")


def add(*words: str) -> str:
    """Make a task; its id."""
    found = taskyard("task", "add", *words, "--json").data["id"]
    assert isinstance(found, str)
    return found


@pytest.mark.req("L-11")
def test_a_removal_says_what_it_did_and_how_to_undo_it() -> None:
    for subject in ("one", "two", "three"):
        add(subject)
    assert taskyard("task", "rm", "1", "--yes").lines == ["Removed #1 one.", "Undo: `taskyard task restore 1`"]
    ran = taskyard("task", "reset", "--yes")
    assert ran.lines == ["Removed 2 tasks:", "  #2 two", "  #3 three", "Undo: `taskyard task restore --last-reset`"]
    assert taskyard("task", "restore", "--last-reset").code == 0
    assert taskyard("task", "restore", "1").code == 0
    taskyard("task", "done", "2", "--by", "ada")
    assert taskyard("task", "archive", "--yes").lines == ["Archived #2 two.", "Undo: `taskyard task restore 2`"]


@pytest.mark.req("L-11")
def test_the_log_tells_of_a_creation_once() -> None:
    add("one")
    add("two", "--blocked-by", "1")
    add("three", "--blocked-by", "1")
    whole = taskyard("task", "log").lines
    assert [line.split("  ", 2)[2] for line in whole] == ["create  #1 one", "create  #2 two", "create  #3 three"]
    of_first = [line.split("  ", 2)[2] for line in taskyard("task", "log", "1").lines]
    assert of_first == ["create  #1 one", "with create of #2:  #1 one", "with create of #3:  #1 one"]
    taskyard("task", "rm", "2", "--yes")
    assert "with delete of #2:  #1 one" in taskyard("task", "log", "1").lines[-1]


@pytest.mark.req("L-12")
def test_the_log_leaves_trackers_out_unless_asked() -> None:
    import taskyard as product

    add("one")
    with product.open(list="plan") as yard:
        yard.tasks.create("helper", metadata={"_internal": True})
        yard.tasks.update("2", status="in_progress")
    ran = taskyard("task", "log")
    assert [line.rpartition("  ")[2] for line in ran.lines] == ["#1 one"]
    assert ran.err == "2 changes of trackers (hidden tasks of team members) not shown; use --all.\n"
    assert len(taskyard("task", "log", "--all").lines) == 3
    assert len(taskyard("task", "log", "2").lines) == 2
    assert add("three") == "3"


@pytest.mark.req("L-21", "L-15")
def test_a_list_shows_urgency_and_tells_assigned_from_claimed() -> None:
    add("urgent", "--priority", "1", "--due", "2027-01-01")
    add("meant for bob")
    add("claimed by ada")
    taskyard("task", "assign", "2", "bob")
    taskyard("task", "claim", "3", "--by", "ada")
    lines = {line.split()[1]: line for line in taskyard("task", "list").lines}
    assert lines["1"].endswith("P1  due 2027-01-01")
    assert lines["2"].endswith("→bob")
    assert lines["3"].endswith("@ada")


@pytest.mark.req("L-09")
@pytest.mark.parametrize("verb", ["done", "reopen", "release", "start"])
def test_without_a_name_nobody_moves_what_another_claimed(verb: str) -> None:
    add("one")
    taskyard("task", "claim", "1", "--by", "ada")
    taskyard("task", "start", "1", "--by", "ada")
    ran = taskyard("task", verb, "1")
    assert ran.code == 5
    assert "already claimed by 'ada'" in ran.err and "`--by ada`" in ran.err and "--force" in ran.err
    assert taskyard("task", verb, "1", "--by", "ada").code == 0


@pytest.mark.req("L-09")
def test_a_person_may_insist_on_what_another_claimed() -> None:
    add("one")
    taskyard("task", "claim", "1", "--by", "ada")
    assert taskyard("task", "done", "1", "--force").code == 0
    assert "(forced)" in taskyard("task", "log", "1").lines[-1]
