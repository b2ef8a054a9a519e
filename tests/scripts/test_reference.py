"""The reference pages say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from support.cli import taskyard
from support.repo import ROOT
from taskyard.jobs.notice import Notice, to_json
from taskyard.tasks.model import Act, Change, Lease, Task
from taskyard.tasks.text import change_json, lease_json, task_json

pytestmark = pytest.mark.req("T-05")


def test_the_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def documented(heading: str) -> list[str]:
    """The keys that the page on JSON lists under a heading."""
    page = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    section = page.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)


def test_every_key_of_every_record_is_documented() -> None:
    lease = Lease("ada", "i", "t", "manual", 0)
    change = Change(0, 0, Act(None, "create"), {})
    taskyard("task", "add", "A", "--list", "x")

    assert documented("A task") == list(task_json(Task("1", "A"), open_blockers=()))
    assert set(documented("A lease")) == set(lease_json(lease, with_token=True))
    assert documented("A notice") == list(to_json(Notice("n", "me", "later", "b00000000", "done")))
    assert documented("A change") == list(change_json(change))
    assert documented("A list") == list(taskyard("lists", "--json").data[0])
