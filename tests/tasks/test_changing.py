"""Changing single tasks, where several threads do it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.yards import open_yard
from taskyard.tasks.file_changes import FileStoreWriter
from taskyard.tasks.file_store import FileStore
from taskyard.tasks.model import Act, Decision, Task


class Raced(list[Task]):
    """What was set aside, when another thread tells of it between our look and our grasp."""

    def __bool__(self) -> bool:
        found = len(self) > 0
        self.clear()
        return found


@pytest.mark.req("L-09")
def test_two_threads_that_tell_of_what_was_set_aside_do_not_trip_over_each_other(tmp_path: Path) -> None:
    told: list[Task] = []
    with open_yard(tmp_path, "ada") as yard:
        task = yard.tasks.create("a")
        assert isinstance(yard.tasks.store, FileStore)
        changing = FileStoreWriter(yard.tasks.store._files, told.append)
        for aside in (Raced([task]), [task]):
            changing._quarantined = aside
            changing.update(
                "1",
                lambda facts: Decision(facts.task, facts.lease),
                Act("ada", "look"),
                with_blockers=False,
                whole_list=False,
            )

    assert told[-1] == task
