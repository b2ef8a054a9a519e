"""Teams that `taskyard team up` runs: their plans, what their members run on, and what is left of them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import taskyard
from support.cli import taskyard as command_line
from support.wait import until

#: Reads its prompt and notes the task's number and who it is, in one short write: whoever dies is in or out.
_NOTES = (
    "n=$(sed -n 's/^Task #\\([0-9]*\\):.*/\\1/p' | head -n 1); {work};"
    ' echo "$n $TASKYARD_AGENT $TASKYARD_LIST" >> {file}'
)


def plan(folder: Path, text: str) -> str:
    """A file with a plan."""
    path = folder / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def noting(file: Path, *, work: str = "true") -> str:
    """A program for the engine `command`: it does `work`, then appends what it did to `file`."""
    return f"sh -c {shlex.quote(_NOTES.format(work=work, file=shlex.quote(str(file))))}"


def noted(file: Path) -> list[list[str]]:
    """What was appended, a line each: task, member, list."""
    return [line.split() for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def members() -> list[dict[str, object]]:
    """The living jobs that are members of teams."""
    found: list[dict[str, object]] = command_line("ps", "--json").data
    return [job for job in found if job["type"] == "in_process_teammate"]


def nothing_is_left(team: str) -> None:
    """Check that a team and all that worked in it are gone: no process, no claim, no tracker in progress."""
    until(lambda: members() == [], what="the members' jobs are over")
    until(lambda: processes_of(os.environ["TASKYARD_HOME"]) == [], what="no process is left")
    assert command_line("team", "show", team).code == 4
    with taskyard.open(list=team, is_person=True) as yard:
        tasks = yard.tasks.list(internal=True)
        leases = Path(str(yard.tasks_dir), yard.tasks.name, ".taskyard", "leases")
    assert [task.subject for task in tasks if task.is_internal and not task.is_done] == []
    assert [task.id for task in tasks if task.lease is not None] == []
    records = [path.read_text(encoding="utf-8") for path in leases.iterdir()] if leases.exists() else []
    assert [record for record in records if "token" in record] == [], [*records, *tasks]  # a count of losses may stay


def processes_of(home: str) -> list[str]:
    """Every living process that works for a home."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"TASKYARD_HOME={home}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_text(encoding="utf-8", errors="replace"))
            except OSError:
                continue
    return found
