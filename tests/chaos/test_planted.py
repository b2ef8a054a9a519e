"""
Something planted in every place of a job: links, pipes, folders, devices.

Every verb answers, in words; nothing outside is followed to, written or signalled; jobs beside it go on.
"""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.cli import taskyard
from support.scale import FULL
from support.wait import until
from taskyard.core.system import process_alive, process_start
from taskyard.errors import TaskyardError
from taskyard.jobs.job_dir import JobPaths, supervisor_pid
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

#: Places of one job, below `jobs/<id>`; "" is the folder itself.
OF_A_JOB = ("", "job.json", "end.json", "notice", "output", "keeper.lock", "control", "children")

#: Places of all jobs together.
OF_ALL = (
    "jobs",
    "jobs/.living",
    "jobs/.living/{id}",
    "jobs/ended.jsonl",
    "jobs/.gc.lock",
    "jobs/.gc-stamp",
    "outbox",
    "outbox/me",
    "outbox/me/new",
    "outbox/me/taken",
    "outbox/me/cur",
    "outbox/me/tmp",
    "slots",
    "slots/jobs",
    "slots/local_bash",
    "notice.key",
)

PLACES = [f"jobs/{{id}}/{name}".rstrip("/") for name in OF_A_JOB] + list(OF_ALL)


#: In an ordinary run every eleventh of all combinations: most places, each thing in some of them.
EVERY = 1 if FULL else 11


class Scene(NamedTuple):
    """A home with a job that runs, one that is over, and a world outside that must not change."""

    home: Path
    running: str
    ended: str
    pid: int  #: of the command that runs
    keeper: int
    outside: Path


def a_device(path: Path, _: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))  # /dev/full
    except PermissionError:
        pytest.skip("only root makes devices")


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a link to a file": lambda path, outside: path.symlink_to(outside / "file"),
    "a link to a folder": lambda path, outside: path.symlink_to(outside / "folder"),
    "a link to what was there": lambda path, outside: path.symlink_to(outside / "aside"),
    "a link to nowhere": lambda path, outside: path.symlink_to(outside / "nowhere"),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a folder": lambda path, _: path.mkdir(),
    "a file": lambda path, _: path.write_bytes(b"\0 not ours"),
    "a device": a_device,
}


@pytest.fixture
def jobs(outside: Path) -> Iterator[Jobs]:
    found = Jobs(str(outside / "taskyard"))
    yield found
    found.close()


@pytest.fixture
def scene(jobs: Jobs, tmp_path: Path) -> Scene:
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "folder" / "kept").write_text("kept", encoding="utf-8")
    (outside / "file").write_text("kept", encoding="utf-8")
    ended = jobs.start(Shell("echo over"))
    running = jobs.start(Shell("exec sleep 60", grace=0.1))
    jobs.wait(ended.id, timeout=10)
    until(lambda: supervisor_pid(JobPaths(jobs.home, ended.id)) is None)
    until(lambda: jobs.get(running.id).pid is not None)
    pid, keeper = jobs.get(running.id).pid, supervisor_pid(JobPaths(jobs.home, running.id))
    assert pid and keeper
    return Scene(Path(jobs.home), running.id, ended.id, pid, keeper, outside)


def look_of(folder: Path) -> dict[str, object]:
    """Everything outside, with its content and mode."""
    return {
        str(path.relative_to(folder)): (oct(path.lstat().st_mode), path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    }


def verbs(job_id: str) -> list[list[str]]:
    return [
        ["ps", "--all"],
        ["wait", job_id, "--timeout", "0.01s"],
        ["logs", job_id],
        ["pause", job_id],
        ["resume", job_id],
        ["send", job_id, "x"],
        ["notices"],
        ["notices", "take"],
        ["stop", job_id, "--grace", "0.1s"],
        ["gc", "--older-than", "0.001s"],
        ["run", "-d", "--", "true"],
    ]


def plant(planted: str, path: Path, scene: Scene) -> None:
    """Put something in a place, and what was there aside."""
    if path.exists():
        shutil.move(path, scene.outside / "aside")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    PLANTED[planted](path, scene.outside)


def let_it_end(scene: Scene) -> None:
    """End the command where no verb could; its keeper writes down what it may, and ends."""
    try:
        os.kill(scene.pid, 9)
    except ProcessLookupError:
        pass
    until(lambda: not process_alive(scene.keeper, process_start(scene.keeper)), what="the keeper's end")


def causes(jobs: Jobs, job_id: str) -> str:
    """How a job ended; "refused" where that cannot be said."""
    try:
        end = jobs.get(job_id).end
    except TaskyardError:
        return "refused"
    return "" if end is None else end.cause


@pytest.mark.req("O-02", "B-08")
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("which", "place", "planted"), list(itertools.product(("running", "ended"), PLACES, PLANTED))[::EVERY]
)
def test_whatever_is_planted_every_verb_answers_and_nothing_outside_changes(
    jobs: Jobs, scene: Scene, which: str, planted: str, place: str
) -> None:
    job_id, other = (scene.running, scene.ended) if which == "running" else (scene.ended, scene.running)
    plant(planted, scene.home / place.format(id=job_id), scene)
    before = look_of(scene.outside)

    for words in verbs(job_id):
        ran = taskyard(*words, "--json")
        if words[0] == "ps" and place.startswith("jobs/{id}"):
            assert other in [row["id"] for row in ran.data]
        assert ran.code in (0, 1, 4, 5, 75, 124, 125, 128 + 9, 128 + 15), (words, ran)
        if planted == "a file" and place.endswith("/control"):
            assert (scene.home / place.format(id=job_id)).read_bytes() == b"\0 not ours"
    let_it_end(scene)

    assert causes(jobs, scene.ended) in ("exited", "refused", "error")  # error: how it ended cannot be read
    if place in ("jobs/{id}/job.json", "jobs/{id}/end.json"):
        assert causes(jobs, scene.running) == ("stopped" if which == "running" else "signal")
    assert causes(jobs, scene.running) in ("stopped", "signal", "refused", "error", "lost")
    assert look_of(scene.outside) == before


@pytest.mark.req("O-02")
@pytest.mark.parametrize("which", ["running", "ended"])
def test_the_folder_of_another_user_is_refused_and_hides_nothing(jobs: Jobs, scene: Scene, which: str) -> None:
    if os.geteuid():
        pytest.skip("only root gives folders away")
    job_id, other = (scene.running, scene.ended) if which == "running" else (scene.ended, scene.running)
    folder = scene.home / "jobs" / job_id
    before = sorted(os.listdir(folder))
    os.chown(folder, 65534, 65534)

    for words in verbs(job_id)[:-1]:
        ran = taskyard(*words, "--json")
        if words[0] == "ps":
            assert [row["id"] for row in ran.data] == [other]
        elif job_id in words:
            code = 125 if words[0] == "wait" else 1  # which otherwise ends as the job did
            assert (ran.code, ran.error["code"]) == (code, "storage")
            assert "belongs to user 65534" in ran.error["message"]
        else:
            assert ran.code == 0
    assert sorted(os.listdir(folder)) == before
    assert process_alive(scene.pid, process_start(scene.pid))
    os.chown(folder, 0, 0)
    let_it_end(scene)
