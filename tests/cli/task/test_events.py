"""The event log of a list as JSON lines: one shape, resumable, live."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli import LONGEST, Ran, start, taskyard
from support.wait import until

pytestmark = pytest.mark.req("L-11", "L-18")


def events(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.lines]


def causes(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["list"], event["cause"]) for event in found]


def test_each_line_says_who_did_what_and_resumes_right_behind_itself() -> None:
    taskyard("task", "add", "A", "--list", "x", "--by", "lead")
    taskyard("task", "start", "1", "--list", "x", "--by", "ada")

    first, second = events(taskyard("task", "events", "--list", "x"))

    assert (first["schema_version"], first["by"], first["cause"], first["list"]) == (1, "lead", "create", "x")
    assert second["tasks"]["1"]["status"] == "in_progress"
    assert events(taskyard("task", "events", "--list", "x", "--since", str(first["id"]))) == [second]
    assert events(taskyard("task", "events", "--list", "x", "--since", first["cursor"])) == [second]
    assert events(taskyard("task", "events", "--list", "x", "--since", second["cursor"])) == []


def test_the_cursor_of_all_lists_covers_every_list_and_those_made_later() -> None:
    taskyard("task", "add", "A", "--list", "one")
    taskyard("task", "add", "B", "--list", "two")
    before = events(taskyard("task", "events", "--all"))
    assert causes(before) == [("one", "create"), ("two", "create")]

    assert causes(events(taskyard("task", "events", "--all", "--since", before[0]["cursor"]))) == [("two", "create")]
    taskyard("task", "done", "1", "--list", "one")
    taskyard("task", "add", "C", "--list", "three")
    after = events(taskyard("task", "events", "--all", "--since", before[-1]["cursor"]))

    assert causes(after) == [("one", "complete"), ("three", "create")]
    assert (
        events(taskyard("task", "events", "--list", "one", "--since", before[-1]["cursor"]))[0]["cause"] == "complete"
    )
    assert list(after[0]) == list(before[0])


@pytest.mark.parametrize(
    "words", [("--since", "x"), ("--since", "../x:1", "--all"), ("--all", "--list", "x"), ("--now", "--since", "1")]
)
def test_a_cursor_that_is_none_is_refused(words: tuple[str, ...]) -> None:
    assert taskyard("task", "events", *words).code == 2


def test_what_another_program_did_is_told_as_external(tmp_path: Path) -> None:
    words = ("--tasks-dir", str(tmp_path), "--list", "x")
    taskyard("task", "add", "A", *words)
    (tmp_path / "x" / "5.json").write_text(
        '{"id":"5","subject":"theirs","status":"pending","blocks":[],"blockedBy":[]}', encoding="utf-8"
    )

    assert [event["cause"] for event in events(taskyard("task", "events", *words))] == ["create", "external"]


@pytest.fixture
def follower() -> Iterator[Any]:
    children = []

    def follow(*words: str) -> Any:
        child = start("task", "events", "-f", *words)
        children.append(child)
        until(lambda: len(os.listdir(f"/proc/{child.pid}/task")) > 1, what="it to follow")
        return child

    yield follow
    for child in children:
        child.kill()
        child.communicate(timeout=LONGEST)


def test_following_one_list_tells_what_happens_as_it_happens(follower: Any) -> None:
    taskyard("task", "add", "A", "--list", "x")
    child = follower("--list", "x", "--now")

    taskyard("task", "done", "1", "--list", "x")
    first = json.loads(child.stdout.readline())
    taskyard("task", "reopen", "1", "--list", "x")
    second = json.loads(child.stdout.readline())

    assert [event["cause"] for event in (first, second)] == ["complete", "reopen"]


def test_following_all_lists_hears_of_lists_made_meanwhile(follower: Any) -> None:
    taskyard("task", "add", "A", "--list", "x")
    child = follower("--all")
    assert json.loads(child.stdout.readline())["list"] == "x"

    taskyard("task", "add", "B", "--list", "new")
    first = json.loads(child.stdout.readline())
    taskyard("task", "done", "1", "--list", "new")
    second = json.loads(child.stdout.readline())

    assert [(event["list"], event["cause"]) for event in (first, second)] == [("new", "create"), ("new", "complete")]
