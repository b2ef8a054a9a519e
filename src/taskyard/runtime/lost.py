"""
A job whose keeper is gone: what it left is ended, and how it was lost is written down, once.

Whoever does this holds the job's lock, and looks again under it: the keeper may have written the end after all.
What is left of the command is found by its recorded number *and* start, by the job's id in the environment that its
processes were born with, and, if the keeper died just as it started the command, by the keeper's name and files; nobody
else is ever signalled. Without a keeper there is no proof, and the answer says so.
"""

from __future__ import annotations

import os
import signal
import time

from taskyard.clock import elapsed, now_ms
from taskyard.disk.kernel_lock import RangeLock
from taskyard.disk.processes import proc_folder, process_start, runs, stat_fields, this_host
from taskyard.runtime import ending, news, sinks, telling
from taskyard.runtime.keeper import tree
from taskyard.runtime.keeper.control import name_of_keeper
from taskyard.runtime.keeper.ladder import frozen
from taskyard.runtime.keeper.others import Others
from taskyard.runtime.model import End
from taskyard.runtime.records import end_from_json, end_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from taskyard.runtime.folder import JobFolder

#: Why nobody knows how a job ended. A supervisor that ends well leaves its word on that, also on a full disk.
_GONE = "its supervisor is gone and left no record of how it ended"

#: Seconds that jobs inside a lost one have to end, once they were asked to.
_GRACE = 3.0

#: Seconds for what is left to be gone: what is killed may have forked just before, and a busy machine takes a while.
_PATIENCE = 2.0

#: So many looks in a row must find nobody: one that forks and ends during a look hides its child from it.
_LOOKS = 2

#: How often we try at least, however slow the machine is.
_ROUNDS = 5

#: Between two rounds of killing, in seconds.
_ROUND = 0.002


def settle(folder: JobFolder, record: Mapping[str, object]) -> None:
    """Close the books of a job without a keeper; nothing happens while somebody else does, or it lives after all."""
    with RangeLock(folder.lock) as lock:
        if not lock.try_take(0):
            return
        if not os.path.lexists(folder.end) and ending.decided(folder) is None:
            telling.surely_started(folder, record)
            end = end_from_json(ending.noted(folder) or {}) or _lost(folder, record)
            told = news.of_end(folder, record, end)
            ending.decide(folder, end_to_json(end), told, hooks=record.get("hooks"))
            if told is not None:
                sinks.start_sinks(folder.home, told, terminal=sinks.terminal_of(record))
        else:
            ending.carry_out(folder, hooks=record.get("hooks"))


def _lost(folder: JobFolder, record: Mapping[str, object]) -> End:
    """End what is left, and say how it was lost."""
    end = End("lost", at=now_ms(), proof="best_effort", size=_printed(folder))
    if record.get("host") != this_host():
        return end._replace(error="the machine was restarted")
    survivors = _end_what_is_left(folder, record)
    why = "the program around it is gone" if record.get("isInside") else _GONE
    return end._replace(error=why, survivors=tuple(survivors))


def _printed(folder: JobFolder) -> int:
    """How much it printed: the size of its transcript, else of its output; no link is followed."""
    for path in (folder.transcript, folder.output):
        try:
            return os.lstat(path).st_size
        except OSError:
            continue
    return 0


def _end_what_is_left(folder: JobFolder, record: Mapping[str, object]) -> list[int]:
    Others(folder).stop_children(by=f"the loss of {folder.id}", grace=_GRACE)
    return end_processes(folder, record)


def end_processes(folder: JobFolder, record: Mapping[str, object]) -> list[int]:
    """Kill what a dead keeper left of its command; those who survive it."""
    others = Others(folder)
    deadline, looks, rounds = elapsed() + _PATIENCE, 0, 0
    while True:
        rounds += 1
        keepers = others.keepers() | {os.getpid()}  # we may be one of them, and must live to write it down
        left = _left(folder, record, keepers)
        looks = 0 if left else looks + 1
        if looks == _LOOKS or (rounds > _ROUNDS and elapsed() > deadline):
            return left
        for pid in left:
            tree.signal_all(frozen(pid, keepers), signal.SIGKILL)
        tree.signal_all(left, signal.SIGKILL)
        time.sleep(_ROUND)


def _left(folder: JobFolder, record: Mapping[str, object], keepers: Collection[int]) -> list[int]:
    """Processes that are the command's for certain."""
    found = {*_marked(folder.id), *_half_started(folder)}
    pid, start = record.get("pid"), record.get("pidStart")
    if isinstance(pid, int) and isinstance(start, int) and pid > 1 and start and process_start(pid) == start:
        found.add(pid)
        found.update(tree.below(pid, but=keepers))
    below_keepers = {pid for keeper in keepers for pid in tree.below(keeper)}
    return sorted(pid for pid in found - below_keepers - set(keepers) if _runs(pid))


def _marked(job_id: str) -> list[int]:
    """Processes that were born with the job's id in their environment."""
    mark = f"TASKYARD_JOB={job_id}".encode()
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"{proc_folder(name)}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue  # gone, or somebody else's
    return found


def _half_started(folder: JobFolder) -> list[int]:
    """Processes that a dead keeper was turning into the command: they have its name and its files, and no mark yet."""
    name = name_of_keeper(folder.id)
    everybody = map(int, filter(str.isdigit, os.listdir("/proc")))
    return [pid for pid in everybody if _comm(pid) == name and _has_open(pid, folder.control)]


def _has_open(pid: int, path: str) -> bool:
    folder = f"{proc_folder(str(pid))}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}") == path for fd in os.listdir(folder))
    except OSError:
        return False  # it ended meanwhile, or goes on as the command, and has its mark


def _comm(pid: int) -> str:
    """What a process is called in `ps`; nothing if it is gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return ""


def _runs(pid: int) -> bool:
    fields = stat_fields(str(pid))
    return fields is not None and runs(str(pid), fields)
