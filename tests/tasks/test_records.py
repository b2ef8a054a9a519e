"""Records as JSON."""

from __future__ import annotations

import json

import pytest

from taskyard.tasks.model import Act, Change, Lease, Task, TaskStatus
from taskyard.tasks.text import change_json, task_json

LEASE = Lease("ada", "i1", "secret", "time", 5, 9)
TASK = Task(
    "1", "A", "d", "Doing A", "ada", TaskStatus.IN_PROGRESS, ("2",), ("3",), {"x": [1]}, 1, 2, LEASE, ("4",), ("look",)
)


@pytest.mark.req("T-05", "L-01")
def test_a_task_has_every_field_under_its_name_in_plain_json() -> None:
    assert json.loads(json.dumps(task_json(TASK, open_blockers=["3"]))) == {
        "id": "1",
        "subject": "A",
        "description": "d",
        "active_form": "Doing A",
        "owner": "ada",
        "status": "in_progress",
        "blocks": ["2"],
        "blocked_by": ["3"],
        "open_blockers": ["3"],
        "metadata": {"x": [1]},
        "created_at": 1,
        "updated_at": 2,
        "lease": {"owner": "ada", "instance": "i1", "kind": "time", "since": 5, "expires": 9, "host": None},
        "ready": ["4"],
        "notes": ["look"],
    }
    bare = task_json(Task("1", "A"))
    assert bare["lease"] is None
    assert bare["owner"] is None
    assert "open_blockers" not in bare
    assert type(bare["status"]) is str


@pytest.mark.req("L-09")
def test_the_token_of_a_claim_is_shown_only_to_its_holder() -> None:
    assert "secret" not in json.dumps(task_json(TASK))
    assert "secret" in json.dumps(task_json(TASK, with_token=True))


@pytest.mark.req("L-11")
def test_a_change_says_who_did_what_to_which_tasks() -> None:
    change = Change(7, 99, Act("ada", "delete", "cli"), {"1": TASK, "2": None})
    record = json.loads(json.dumps(change_json(change)))
    assert record["tasks"].pop("1")["subject"] == "A"
    assert record == {
        "id": 7,
        "at": 99,
        "by": "ada",
        "cause": "delete",
        "via": "cli",
        "note": None,
        "tasks": {"2": None},
        "aborted": False,
    }
