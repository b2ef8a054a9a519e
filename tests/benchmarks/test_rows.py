"""The rows and goals are those that were promised."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.folders import list_folder, scratch
from bench.rows import all_rows, chosen

GOALS = {
    "create.seq": "≥ 10×",
    "create.10proc": "≥ 8×",
    "create.flat": "≤ 1.2×",
    "claim.10proc": "≥ 20×",
    "list.10k.warm": "≥ 12×",
    "list.10k.cold": "≥ 2×",
    "mail.10x500": "≥ 10×",
    "cli.start": "≤ 4×",
    "job.start_end": "≥ 0.2×",
    "job.notice": "≥ 20×",
    "job.output": "≥ 0.95×",
    "job.output.capped": "≥ 0.6×",
    "idle": "≤ 1×",
    "mem.keeper": "≤ 1×",
    "mem.keeper.alone": "≤ 1×",
    "mem.team": "≤ 1×",
    "mcp.call": "≤ 3×",
    "mcp.start": "≤ 1.5×",
    "view.update": "≥ 3×",
    "web.fanout": "≤ 5×",
    "pg.create": "≥ 0.5×",
    "pg.claim": "≥ 0.5×",
    "pg.notify": "≤ 5×",
}


def test_every_promised_row_is_there_with_its_goal_and_no_other_is_judged(tmp_path: Path) -> None:
    rows = all_rows(str(tmp_path), str(tmp_path))
    assert {row.name: str(row.goal) for row in rows if row.goal} == GOALS


def test_a_name_picks_its_row_or_all_below_it(tmp_path: Path) -> None:
    rows = all_rows(str(tmp_path), str(tmp_path))
    beside = ["claim.10proc.alone", "claim.10proc.disk", "claim.10proc.lean"]
    assert [row.name for row in chosen(rows, ["claim"])] == ["claim.10proc", *beside]
    assert [row.name for row in chosen(rows, ["create.seq"])] == ["create.seq"]
    assert chosen(rows, []) == rows
    with pytest.raises(KeyError, match="clam"):
        chosen(rows, ["clam"])


def test_a_scratch_folder_is_gone_afterwards_also_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), scratch(str(tmp_path)) as folder:
        list_folder(folder, tasks=3)
        assert sorted(os.listdir(os.path.join(folder, "bench"))) == [
            ".highwatermark",
            ".lock",
            "1.json",
            "2.json",
            "3.json",
        ]
        raise RuntimeError
    assert os.listdir(tmp_path) == []
