"""The lead's round, where timing decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskyard.crew.founding import founded
from taskyard.crew.leading import Course, Lead
from taskyard.crew.plan_file import read_file
from taskyard.crew.wish import Wish
from taskyard.errors import StorageError


@pytest.mark.req("M-01", "M-02")
def test_a_member_that_leaves_while_it_is_asked_to_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise StorageError(str(tmp_path), "No such file or directory")

    plan = tmp_path / "plan.json"
    plan.write_text('{"tasks": ["One"]}', encoding="utf-8")
    with founded("shop", read_file(str(plan)), agent="lead", report=lambda _: None) as yard:
        wish = Wish("shop", engine="command", command=("sh", "-c", "read x; echo done"), on_parent_exit="kill")
        lead = Lead(yard, Course(wish, 1), tell=lambda _: None)
        monkeypatch.setattr(type(yard.mail), "send", gone)
        outcome = lead.lead()
    assert (outcome.open, outcome.faults) == ((), ())
