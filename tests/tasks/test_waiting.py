"""Nothing that happens between a look and the first sleep is slept through."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskyard


@pytest.mark.req("L-18")
def test_the_first_wait_of_a_process_does_not_sleep_through_what_happened_before_it(tmp_path: Path) -> None:
    with taskyard.open(tasks_dir=tmp_path, list="x") as ours, taskyard.open(tasks_dir=tmp_path, list="x") as theirs:
        task = ours.tasks.create("A")
        ours.tasks.list()
        theirs.tasks.complete(task.id)  # after our look, before anybody listens

        assert ours.tasks.store.wait(5.0) is True
        assert ours.tasks.list()[0].is_done
        assert ours.tasks.store.wait(0.01) is False
