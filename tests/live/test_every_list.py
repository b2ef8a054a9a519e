"""All lists there are, counted by a plain look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import taskyard
from taskyard.live.every_list import ListCount, counted, names_of


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

    found = [counted(str(tmp_path), name) for name in names_of(str(tmp_path))]

    assert [one._replace(changed_at=0) for one in found] == [
        ListCount("alpha", 1, 1, 0, 0, ready=1),
        ListCount("beta", 1, 1, 0, 0, ready=1),
        ListCount("gamma", 0, 0, 1, 0),
    ]
    assert sorted(os.listdir(foreign)) == before
    assert names_of(str(tmp_path / "nowhere")) == ()
