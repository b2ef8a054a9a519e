"""All lists there are, counted by a plain look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import taskyard
from taskyard.tasks.lists import ListCount, ListsInFolder


@pytest.mark.req("U-04")
def test_every_list_is_counted_and_nothing_is_made_by_it(tmp_path: Path) -> None:
    for name in ("beta", "alpha"):
        with taskyard.open(tasks_dir=tmp_path, list=name) as yard:
            done = yard.tasks.create("Done")
            yard.tasks.start(done.id, agent="ada")
            yard.tasks.complete(done.id, agent="ada")
            yard.tasks.create("Open")
    foreign = tmp_path / "gamma"
    foreign.mkdir()
    (foreign / "1.json").write_text("{", encoding="utf-8")
    before = sorted(os.listdir(foreign))

    lists = ListsInFolder(str(tmp_path))
    found = [lists.count(name) for name in lists.names()]

    assert [one._replace(changed_at=0) for one in found] == [
        ListCount("alpha", 1, 1, 0, 0, ready=1),
        ListCount("beta", 1, 1, 0, 0, ready=1),
        ListCount("gamma", 0, 0, 1, 0),
    ]
    assert sorted(os.listdir(foreign)) == before
    assert ListsInFolder(str(tmp_path / "nowhere")).names() == []
