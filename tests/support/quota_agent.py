"""
A program for the engine `command` that has a provider with a quota and permissions, all of it files in one folder.

    requests      a line per request: the task's number, the member, "limited", "refused" or "done"
    limit_after   after so many answered requests the provider refuses, once, for the seconds in `limit_seconds`
    limited       written by the provider then: the epoch second at which the limit lifts
    read_only     while it is there, the tool Write is refused
    fails         the numbers of tasks that the agent reports as failed
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import time
from pathlib import Path


def main(folder: Path) -> int:
    """Work on the prompt on stdin."""
    prompt = sys.stdin.read()
    found = re.search(r"[Tt]ask #(\d+)", prompt)
    task = found[1] if found else "0"
    with (folder / "lock").open("a") as lock:  # one request at a time, so that the log is in the order of the answers
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _answer(folder, task)


def _answer(folder: Path, task: str) -> int:
    if (left := _limited(folder)) > 0:
        _log(folder, task, "limited")
        print(json.dumps({"type": "limited", "seconds": left, "text": "429 Too Many Requests"}), flush=True)
        return 1
    if (folder / "read_only").exists():
        _log(folder, task, "refused")
        print(json.dumps({"type": "refused", "name": "Write", "text": "no permission"}))
        print("I could not write the file.")
        return 0
    if (folder / "fails").exists() and task in (folder / "fails").read_text().split():
        _log(folder, task, "failed")
        print("I tried.\n\n**STATUS: failed:** the disk is read-only")
        return 0
    _log(folder, task, "done")
    print(f"Did task {task}.")
    return 0


def _limited(folder: Path) -> float:
    """Seconds for which the provider refuses requests."""
    limited = folder / "limited"
    try:
        return float(limited.read_text()) - time.time()
    except FileNotFoundError:
        pass
    after = folder / "limit_after"
    if not after.exists() or sum(line[2] == "done" for line in requests(folder)) < int(after.read_text()):
        return 0.0
    until = time.time() + float((folder / "limit_seconds").read_text())
    try:
        with limited.open("x") as file:
            file.write(f"{until}")
    except FileExistsError:
        pass
    return until - time.time()


def _log(folder: Path, task: str, what: str) -> None:
    with (folder / "requests").open("a") as file:
        file.write(f"{task} {os.environ.get('TASKYARD_AGENT', '-')} {what} {time.time()}\n")


def requests(folder: Path) -> list[list[str]]:
    """The provider's log: task, member, what came of it, when."""
    log = folder / "requests"
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
