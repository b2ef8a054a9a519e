"""Bell and desktop find the terminal a job was started from, with nothing set but themselves."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.ended_jobs import job_folder
from support.terminal import on_a_terminal
from taskyard import config
from taskyard.jobs import environment, recovery
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.sinks import terminal_of

pytestmark = pytest.mark.req("N-08")

#: How a job comes to be started at a terminal; whoever did so is gone when it ends, or about to go.
_PROGRAMS = {
    "command line": [sys.executable, "-m", "taskyard", "run", "-d", "--", "exit 3"],
    "program": [sys.executable, "-c", "import taskyard as t\nt.open().jobs.start(t.Shell('exit 3'))"],
    "inside a job": [sys.executable, "-m", "taskyard", "run", "-d", "--", "taskyard-again"],
}


@pytest.fixture
def search_path(tmp_path: Path) -> str:
    """Programs that can be found: a shell, ourselves, and no notify-send."""
    (tmp_path / "sh").symlink_to("/bin/sh")
    (tmp_path / "bash").symlink_to("/bin/bash")
    again = tmp_path / "taskyard-again"
    lines = (
        "#!/bin/sh",
        f"{sys.executable} -m taskyard run -d -- 'exit 3'",
        f"while ! test -e {tmp_path}/heard; do /bin/sleep 0.01; done",  # at its end, all that is below it ends
    )
    again.write_text("\n".join(lines), encoding="utf-8")
    again.chmod(0o755)
    return str(tmp_path)


@pytest.mark.parametrize("starter", _PROGRAMS)
def test_the_terminal_of_the_starter_rings_and_shows_the_news(starter: str, search_path: str) -> None:
    env = {"TASKYARD_SINKS_BELL": "true", "TASKYARD_SINKS_DESKTOP": "true", "PATH": search_path}

    with on_a_terminal(env=env, argv=_PROGRAMS[starter]) as terminal:
        assert terminal.ended() == 0
        terminal.shows(b"failed with exit code 3\a")
        terminal.shows(b"\a", times=2)
        Path(search_path, "heard").touch()
        if starter == "inside a job":
            terminal.shows(b"\a", times=4)

    assert not Path(config.home(), "sinks.log").exists()


@contextmanager
def own_terminal() -> Iterator[tuple[int, str]]:
    ours, theirs = os.openpty()
    try:
        yield ours, os.ttyname(theirs)
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_lost_job_rings_where_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_SINKS_BELL", "true")
    with own_terminal() as (ours, name):
        known = environment.terminal_identity(name)
        folder = job_folder(config.home(), host="another start of this machine", terminal=known)

        recovery.recover_lost(folder, json.loads(Path(folder.record).read_bytes()))

        assert select.select([ours], [], [], 20)[0], "nothing rang"
        assert os.read(ours, 10) == b"\a"


def test_another_terminal_of_the_same_name_is_left_alone() -> None:
    with own_terminal() as (_, name):
        known = environment.terminal_identity(name)
        assert known is not None
        assert terminal_of({"terminal": list(known)}) == name
        assert terminal_of({"terminal": [name, known[1] - 1]}) == ""


@pytest.mark.parametrize("value", [None, "/dev/pts/0", [], ["/dev/null"], [7, 7], ["\0", 1], ["/nowhere", 1], {}])
def test_a_record_that_names_no_terminal_rings_nowhere(value: object) -> None:
    assert terminal_of({"terminal": value}) == ""


def test_who_has_no_terminal_is_known_by_the_one_it_logged_in_from(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    with own_terminal() as (_, name):
        monkeypatch.setenv("SSH_TTY", name)
        job = jobs.start(Shell("true"))

    record = json.loads(Path(JobPaths(jobs.home, job.id).record).read_bytes())
    assert record["terminal"][0] == name
