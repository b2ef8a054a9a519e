"""Leads that `taskyard team up` runs, by team: so that a team can be removed though its lead is stuck."""

from __future__ import annotations

import json
import os

from taskyard.crew.ending import end_process
from taskyard.disk import files
from taskyard.disk.processes import process_start, this_host
from taskyard.names import folder_name
from taskyard.runtime.ending import read
from taskyard.shapes import as_number

#: Seconds a lead has to stop its members, once it is asked to end, before it is made to.
_GRACE = 5.0


def note(home: str, team: str) -> None:
    """Write down that this process leads `team`."""
    files.make_private_folder(f"{home}/leads")
    record = {"pid": os.getpid(), "start": process_start(), "host": this_host()}
    files.replace(_path(home, team), json.dumps(record).encode("ascii"))


def forget(home: str, team: str) -> None:
    """The same process leads it no more."""
    if _found(home, team) == (os.getpid(), process_start()):
        os.unlink(_path(home, team))


def end(home: str, team: str) -> bool:
    """End the process that leads `team`, if there is one; False if it could not be ended."""
    pid, start = _found(home, team)
    if not pid:
        return True
    is_gone = pid == os.getpid() or end_process(pid, start, grace=_GRACE)
    if is_gone and pid != os.getpid():
        try:
            os.unlink(_path(home, team))
        except FileNotFoundError:
            pass  # it did so itself
    return is_gone


def _found(home: str, team: str) -> tuple[int, int]:
    record = read(_path(home, team)) or {}
    if record.get("host") != this_host():
        return 0, 0
    return as_number(record.get("pid")), as_number(record.get("start"))


def _path(home: str, team: str) -> str:
    return f"{home}/leads/{folder_name('a team', team)}.json"
