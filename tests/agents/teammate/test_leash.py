"""Programs of teammates inside another program end with their teammate, and with that program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import taskyard
from support.teams import SOON, team, until
from support.wait import until as until_now
from taskyard import Teammate, Yard
from taskyard.agents.teammate.child_guard import guard_command
from taskyard.core.system import stat_fields

#: Leaves a process behind in a session of its own, and says its number.
ESCAPES = "setsid sh -c 'echo $$ > {place}; exec sleep 300' & "

#: The same, and it ignores a polite end.
STUBBORN = "setsid sh -c 'trap \"\" TERM; echo $$ > {place}; exec sleep 300' & "

_HOST = """
import asyncio, sys, taskyard

async def main():
    async with taskyard.open_async(list="crew", agent="host") as yard:
        await yard.jobs.start(taskyard.Teammate("ada", "crew", command=["sh", "-c", sys.argv[1]]))
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def runs(place: Path) -> bool:
    """Whether the process whose number is in a file lives."""
    fields = stat_fields(place.read_text(encoding="utf-8").strip())
    return fields is not None and fields[0] not in ("Z", "X")


def said(place: Path) -> bool:
    return place.exists() and place.read_text(encoding="utf-8").endswith("\n")


@pytest.mark.req("K-08", "B-09")
@pytest.mark.parametrize("engine", ["command", "codex"])
def test_what_a_program_started_ends_with_a_stop_though_it_ignores_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    place, program = tmp_path / "pid", tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n" + STUBBORN.format(place=place) + "trap '' TERM; sleep 300; sleep 300\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    named: dict[str, Any] = {"engine": "codex"} if engine == "codex" else {"command": [str(program)]}

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Task")
            job = await yard.jobs.start(Teammate("ada", "crew", **named))
            await until(lambda: said(place))
            [stopped] = await yard.jobs.stop(job.id, grace=SOON)
            assert not runs(place)
            assert stopped.outcome == "stopped"

    asyncio.run(scene())


@pytest.mark.req("K-08", "B-09")
@pytest.mark.parametrize("ending", ["done", "stopped"])
def test_whatever_a_program_started_ends_with_its_work(tmp_path: Path, ending: str) -> None:
    place = tmp_path / "pid"
    script = ESCAPES.format(place=place) + f"while ! test -s {place}; do :; done; "
    script += "exit 0" if ending == "done" else "sleep 300"

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Task")
            job = await yard.jobs.start(Teammate("ada", "crew", command=["sh", "-c", script]))
            if ending == "stopped":
                await until(lambda: said(place))
                assert runs(place)
                [stopped] = await yard.jobs.stop(job.id, grace=SOON)
                assert stopped.outcome == "stopped"
            ended = await yard.jobs.wait(job.id, timeout=SOON)
            assert ended.status.value == ("completed" if ending == "done" else "killed")
            assert not runs(place)

    asyncio.run(scene())


@pytest.mark.req("K-04", "B-08")
def test_programs_end_with_the_program_around_their_teammate(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    with taskyard.open(list="crew", agent="lead") as yard:
        yard.tasks.create("Task")
        script = ESCAPES.format(place=place) + "sleep 300"
        host = subprocess.Popen([sys.executable, "-c", _HOST, script])
        until_now(lambda: said(place), timeout=SOON)
        host.kill()
        host.wait()
        until_now(lambda: not runs(place), timeout=SOON)


@pytest.mark.req("B-10")
@pytest.mark.parametrize("fate", ["kill", "keep"])
def test_jobs_that_a_program_started_end_with_its_teammate_unless_they_are_to_stay(fate: str) -> None:
    start = f"{sys.executable} -P -m taskyard run -d --on-parent-exit {fate} -- sleep 300; sleep 300"

    def inner(yard: Yard) -> list[str]:
        return [job.id for job in yard.jobs.list() if job.type == "local_bash"]

    async def scene() -> None:
        async with team() as yard:
            yard.tasks.create("Task")
            outer = await yard.jobs.start(Teammate("ada", "crew", command=["sh", "-c", start]))
            with taskyard.open(list="crew") as seen:
                await until(lambda: inner(seen))
                [shell] = inner(seen)
                await yard.jobs.stop(outer.id)
                if fate == "keep":
                    assert seen.jobs.get(shell).status.value == "running"
                    seen.jobs.stop(shell, grace=0.1)
                ended = await yard.jobs.wait(shell, timeout=SOON)
                assert ended.end is not None
                assert ended.end.cause == "stopped"

    asyncio.run(scene())


@pytest.mark.req("B-08")
@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", -signal.SIGKILL), ("true", 0)])
def test_it_ends_as_the_program_did(tmp_path: Path, script: str, code: int) -> None:
    words = (*guard_command(home=str(tmp_path), job="t00000000"), "sh", "-c", script)
    assert subprocess.run(words, check=False, timeout=SOON).returncode == code


@pytest.mark.req("B-08")
def test_a_program_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    words = (*guard_command(home=str(tmp_path), job="t00000000"), "/nowhere")
    ran = subprocess.run(words, check=False, timeout=SOON, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (127, "/nowhere: No such file or directory\n")
