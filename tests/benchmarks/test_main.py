"""The whole bench, small: it runs, prints what was agreed, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from bench.folders import DISK, MEMORY
from bench.processes import NODE_FOLDER, ROOT

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not os.path.isdir(os.path.join(NODE_FOLDER, "node_modules")),
    reason="needs Node, and `npm ci --prefix tests/node`",
)


def bench(*args: str) -> tuple[int, list[dict[str, Any]]]:
    command = [sys.executable, "-m", "bench", *args]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def folders() -> set[str]:
    return {name for base in (MEMORY, DISK) for name in os.listdir(base) if name.startswith("taskyard-bench-")}


@needs_node
@pytest.mark.serial
@pytest.mark.req("L-08")
def test_a_quick_run_gives_every_task_one_winner_misses_no_change_and_leaves_nothing() -> None:
    before = folders()
    code, records = bench("claim.10proc", "list.10k.warm", "--quick", "--json")
    assert code == 0
    assert [record["name"] for record in records] == ["claim.10proc", "list.10k.warm"]
    assert not [record["faults"] for record in records if "faults" in record]
    assert all(record["ours"] > 0 and record["yardstick"] > 0 for record in records)
    assert folders() <= before


@needs_node
@pytest.mark.serial
@pytest.mark.req("M-02")
def test_a_quick_run_of_the_mail_loses_nothing() -> None:
    code, [record] = bench("mail.10x500", "--quick", "--json")
    assert (code, record["lost"]) == (0, 0)
    assert "faults" not in record


@pytest.mark.serial
@pytest.mark.req("U-04")
def test_a_quick_run_of_the_screens_shows_every_change_and_leaves_nothing() -> None:
    before = folders()
    code, records = bench("view.update", "web.fanout", "--quick", "--json")
    assert [record["name"] for record in records] == ["view.update", "web.fanout"]
    assert all(record["ours"] > 0 and record["yardstick"] > 0 for record in records), (code, records)
    assert folders() <= before


def test_an_unknown_row_is_a_usage_error() -> None:
    assert bench("clam.10proc") == (2, [])
