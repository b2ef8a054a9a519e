"""A test counts as going through a surface only if its code leads there."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.reach import surfaces


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("from taskyard.jobs.model import new_job_id as new_id\ndef test_a(): new_id('b')", set()),
        ("import taskyard\ndef test_a(yard: taskyard.Yard): pass", set()),
        ("import taskyard\ndef test_a():\n    with pytest.raises(taskyard.Blocked): pass", set()),
        ("import taskyard\ndef test_a():\n    with taskyard.open() as yard: pass", {"Python"}),
        ("from taskyard import AsyncYard\ndef test_a(): AsyncYard()", {"Python"}),
        ("import taskyard\n@pytest.fixture\ndef yard(): return taskyard.open()\ndef test_a(yard): pass", {"Python"}),
        ("from taskyard.cli.main import main\ndef run(): main(())\ndef test_a(): run()", {"CLI"}),
        ("from support.cli import taskyard\nclass TestB:\n    def test_a(self): taskyard('ps')", {"CLI"}),
        ("WORDS = [sys.executable, '-m', 'taskyard', 'ps']\ndef test_a(): subprocess.run(WORDS)", {"CLI"}),
        ("from taskyard.ui.tui.app import YardApp\ndef test_a():\n    YardApp()", {"screen"}),
        ("from taskyard.cli.main import main\ndef test_b(): main(())\ndef test_a(): pass", set()),
    ],
)
def test_what_a_test_reaches_follows_its_names(tmp_path: Path, body: str, found: set[str]) -> None:
    module = tmp_path / "test_example.py"
    module.write_text(body, encoding="utf-8")

    assert surfaces(module, "TestB::test_a" if "class TestB" in body else "test_a") == found
