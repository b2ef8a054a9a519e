"""`task next`: one step to the next task, or a wait for it."""

from __future__ import annotations

import json

import pytest

from support.cli import LONGEST, start, taskyard
from support.wait import until

pytestmark = pytest.mark.req("L-08")


def test_nothing_free_ends_with_4_and_says_why() -> None:
    taskyard("task", "add", "A")
    taskyard("task", "add", "B", "--blocked-by", "1")
    taskyard("task", "claim", "1", "--by", "ada")

    ran = taskyard("task", "next", "--by", "bob")

    assert ran.code == 4
    assert ran.err.endswith("2 open, of which 1 taken and 1 blocked or not for you.\n")
    assert taskyard("task", "next", "--by", "bob", "--json").error["code"] == "nothing_free"
    assert taskyard("task", "next", "--by", "bob", "--list", "new").err.endswith("everything on the list is done.\n")


@pytest.mark.req("L-21")
def test_priority_goes_before_the_lowest_id_and_capabilities_and_labels_filter() -> None:
    taskyard("task", "add", "needs a gpu", "--require", "gpu", "--priority", "1")
    taskyard("task", "add", "plain")
    taskyard("task", "add", "urgent", "--priority", "1", "--label", "x")

    def claimed(*words: str) -> str:
        return str(taskyard("task", "next", "--by", "ada", *words, "--json").data["id"])

    assert claimed("--label", "x") == "3"
    assert claimed("--require", "gpu", "docker") == "1"
    assert claimed("--start") == "2"
    assert taskyard("task", "show", "2", "--json").data["status"] == "in_progress"


def test_waiting_ends_as_soon_as_something_is_free() -> None:
    taskyard("task", "add", "A")
    taskyard("task", "add", "B", "--blocked-by", "1")
    taskyard("task", "start", "1", "--by", "ada")
    child = start("task", "next", "--by", "bob", "--wait", "20s", "--json")
    until(lambda: _threads(child.pid) > 1, what="it to wait")

    taskyard("task", "done", "1", "--by", "ada")
    out, err = child.communicate(timeout=LONGEST)

    assert child.returncode == 0, err
    assert json.loads(out)["data"]["id"] == "2"


def test_waiting_has_an_end_if_one_was_given() -> None:
    assert taskyard("task", "next", "--by", "bob", "--wait", "0.05s").code == 4


def _threads(pid: int) -> int:
    import os

    return len(os.listdir(f"/proc/{pid}/task"))


def test_busy_agents_can_be_refused_by_request() -> None:
    taskyard("task", "add", "A")
    taskyard("task", "add", "B")
    assert taskyard("task", "next", "--by", "ada", "--check-busy").code == 0

    refused = taskyard("task", "next", "--by", "ada", "--check-busy", "--wait", "--json")

    assert (refused.code, refused.error["code"], refused.error["tasks"]) == (5, "agent_busy", ["1"])
    assert taskyard("task", "next", "--by", "ada", "--json").data["id"] == "2"
