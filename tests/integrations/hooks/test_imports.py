"""Whoever has no hooks does not pay for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("subprocess", "hashlib", "json", "re", "asyncio", "logging", "dataclasses", "pathlib", "tomllib")


@pytest.mark.req("H-02")
def test_looking_for_hooks_where_there_are_none_loads_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from taskyard.integrations import acceptance; from taskyard.integrations import hooks\n"
        "from taskyard.storage import trust\n"
        "book = hooks.load_hooks('/nowhere', {'HOME': '/nowhere'})\n"
        "assert not book.any_for('TaskCreated')\n"
        f"print(*(name for name in {HEAVY} if name in sys.modules and name not in before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert set(done.stdout.split()) <= {"re"}  # `typing` itself may bring it
