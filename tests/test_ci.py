"""`.ci/run` runs the checks, the tests and a test of each agent program; each can fail it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.repo import ROOT


@pytest.mark.parametrize(
    ("failing", "ran", "passes"),
    [
        ("none", ["setup", "check", "test", "clients", "test-clients"], True),
        ("check", ["setup", "check", "test", "clients", "test-clients"], False),
        ("test", ["setup", "check", "test", "clients", "test-clients"], False),
        ("clients", ["setup", "check", "test", "clients"], False),
        ("test-clients", ["setup", "check", "test", "clients", "test-clients"], False),
        ("setup", ["setup"], False),
    ],
)
def test_checks_and_tests_all_run_and_each_can_fail_the_whole(
    tmp_path: Path, failing: str, ran: list[str], passes: bool
) -> None:
    make = tmp_path / "make"
    make.write_text(f'#!/bin/sh\necho "ran $2"\ncat\n[ "$2" != {failing} ]\n', encoding="utf-8")
    make.chmod(0o755)

    done = subprocess.run(
        [ROOT / ".ci" / "run"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        input="nobody reads this\n",
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert [line[4:] for line in done.stdout.splitlines() if line.startswith("ran ")] == ran
    assert "nobody reads this" not in done.stdout
    assert (done.returncode == 0) is passes
