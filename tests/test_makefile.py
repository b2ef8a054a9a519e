"""`make test` counts both groups; `make help` knows every verb. Run with a stand-in for pytest."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.repo import ROOT

SERIAL = "mark" + ".serial"
VERBS = {"help", "setup", "setup-ray", "clients", "demo", "test", "test-clients", "check", "bench", "soak", "docs"}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", "--no-print-directory", "PYTHON=true", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )


def stand_in(folder: Path, *, parallel: int, alone: int) -> str:
    """A pytest that ends as told: with `parallel` for the group run by two, else with `alone`."""
    script = folder / "pytest"
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*"\n[ "$1" = -n ] && exit {parallel}\nexit {alone}\n', encoding="utf-8"
    )
    script.chmod(0o755)
    return f"PYTEST={script}"


@pytest.mark.parametrize(
    ("parallel", "alone", "passes"),
    [(0, 0, True), (1, 0, False), (0, 1, False), (1, 1, False), (0, 5, True), (5, 0, False)],
)
def test_both_groups_of_tests_run_and_either_can_fail_the_whole(
    tmp_path: Path, parallel: int, alone: int, passes: bool
) -> None:
    done = make("test", stand_in(tmp_path, parallel=parallel, alone=alone))

    assert "-n 3 --dist worksteal -m not serial and not soak and not client\n" in done.stdout
    assert "\n-m serial and not soak and not client tests/" in done.stdout
    assert (done.returncode == 0) is passes


def test_whoever_runs_alone_is_found_by_a_word_in_its_file(tmp_path: Path) -> None:
    done = make("test", stand_in(tmp_path, parallel=0, alone=0))
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("-m serial")]
    said = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py") if SERIAL in path.read_text()}

    assert len(said) > 1
    assert set(line.split()[8:]) == said, "only files of tests may say it: others are not looked into"


def test_help_is_the_default_and_lists_every_verb() -> None:
    assert set(re.findall(r"^  make ([\w-]+)", make().stdout, re.MULTILINE)) == VERBS
