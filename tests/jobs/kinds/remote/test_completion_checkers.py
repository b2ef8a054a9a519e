"""Completion checkers of other people in real jobs: published by a package, set in config.toml, registered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import Ran, taskyard
from support.fake_places import FakePlace
from support.job_cli import ended
from support.wait import until

#: A session that says it is merged after a while, and would never end by itself.
PROMPT = "work\n/wait 0.2\n/meta merged true\n/forever"

CHECKER = """
def merged(metadata):
    return f"Merged for {metadata['by']}." if metadata.get("merged") else None
"""


def started(*words: str) -> str:
    ran = taskyard("agent", "-d", "--json", "--remote", "here", "--metadata", "by=ada", PROMPT, *words)
    assert ran.code == 0, ran
    job_id: str = ran.data["id"]
    return job_id


def is_complete(job_id: str) -> None:
    """It ended by its checker's word, and the notice has that."""
    job = ended(job_id)
    assert (job["status"], job["facts"]["result"]) == ("completed", "Merged for ada."), job
    until(lambda: job_id in taskyard("notices", "--json").out)
    assert 'Remote agent \\"work\\" completed: Merged for ada.' in taskyard("notices", "--json").out


def set_checker(line: str) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "taskyard" / "config.toml"
    with config.open("a") as file:
        file.write(f"[completion_checkers]\n{line}\n")


@pytest.mark.req("K-03")
def test_a_checker_that_a_package_publishes_is_asked(
    place: FakePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "site" / "mergecheck-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mergecheck\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[taskyard.completion_checkers]\nultrareview = mergecheck:merged\n")
    (info.parent / "mergecheck.py").write_text(CHECKER)
    monkeypatch.setenv("PYTHONPATH", f"{os.environ['PYTHONPATH']}:{info.parent}")

    is_complete(started("--remote-type", "ultrareview"))


@pytest.mark.req("K-03")
def test_a_checker_in_a_file_that_config_toml_names_is_asked_in_place_of_ours(place: FakePlace, tmp_path: Path) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "taskyard"
    (config / "checks.py").write_text(f"from words import SAID\n{CHECKER}")
    (config / "words.py").write_text("SAID = 1\n")  # a file beside it can be imported
    set_checker('background-pr = "checks.py:merged"')

    is_complete(started("--remote-type", "background-pr"))


@pytest.mark.req("K-03")
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('party = "checks:merged"', "party"),
        ('ultraplan = "checks"', "module:function"),
        ("ultraplan = 7", "module:function"),
    ],
)
def test_a_table_that_cannot_be_understood_starts_no_job(place: FakePlace, line: str, why: str) -> None:
    set_checker(line)

    ran: Ran = taskyard("agent", "-d", "--remote", "here", PROMPT)

    assert (ran.code, why in ran.err) == (2, True), ran


@pytest.mark.req("K-03")
def test_a_checker_that_cannot_be_loaded_is_shown_and_ends_nothing(place: FakePlace) -> None:
    set_checker('remote-agent = "nowhere.to.be.found:merged"')

    job = taskyard("agent", "-d", "--json", "--remote", "here", "work\n/wait 0.5\n/result ok").data["id"]

    shown = "ModuleNotFoundError: No module named 'nowhere'"
    until(lambda: shown in taskyard("ps", "--all", "--json").out, what=shown)
    assert ended(job)["facts"]["result"] == "ok"


@pytest.mark.req("K-03")
@pytest.mark.parametrize("module", ["checks", "mine.inner.checks"])
def test_a_checker_that_a_program_registers_is_asked_in_its_jobs_after_it_ended(
    place: FakePlace, tmp_path: Path, module: str
) -> None:
    file = tmp_path / "program" / f"{module.replace('.', '/')}.py"
    file.parent.mkdir(parents=True)
    file.write_text(CHECKER)
    for folder in file.relative_to(tmp_path / "program").parents[:-1]:
        (tmp_path / "program" / folder / "__init__.py").write_text("")
    program = tmp_path / "program" / "start.py"
    program.write_text(
        f"import taskyard\nfrom {module} import merged\n"
        'taskyard.register_completion_checker("autofix-pr", merged)\n'
        "with taskyard.open() as yard:\n"
        f"    work = taskyard.RemoteAgent({PROMPT!r}, 'here', 'autofix-pr', metadata={{'by': 'ada'}})\n"
        "    print(yard.jobs.start(work).id)\n"
    )

    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=30, check=True)

    is_complete(ran.stdout.strip())
