"""
A job whose keeper is gone: what it left is ended, and how it was lost is written down, once.

Whoever does this holds the job's lock, and looks again under it: the keeper may have written the end after all.
What is left of the command is found by its recorded number *and* start, and by the job's id in the environment
that its processes were born with; nobody else is ever signalled. Without a keeper there is no proof, and the
answer says so.
"""

from __future__ import annotations

import os
import signal

from taskyard.clock import now_ms
from taskyard.disk.kernel_lock import RangeLock
from taskyard.disk.processes import process_start, stat_fields, this_host
from taskyard.runtime import ending, news, sinks, telling
from taskyard.runtime.keeper import tree
from taskyard.runtime.keeper.ladder import frozen
from taskyard.runtime.keeper.others import Others
from taskyard.runtime.model import End
from taskyard.runtime.records import end_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from taskyard.runtime.folder import JobFolder

#: Seconds that jobs inside a lost one have to end, once they were asked to.
_GRACE = 3.0

#: Rounds of killing: what is killed may have forked just before.
_ROUNDS = 20


def settle(folder: JobFolder, record: Mapping[str, object]) -> None:
    """Close the books of a job without a keeper; nothing happens while somebody else does, or it lives after all."""
    with RangeLock(folder.lock) as lock:
        if not lock.try_take(0):
            return
        if not os.path.lexists(folder.end) and ending.decided(folder) is None:
            telling.surely_started(folder, record)
            end = _lost(folder, record)
            told = news.of_end(folder, record, end)
            ending.decide(folder, end_to_json(end), told, hooks=record.get("hooks"))
            if told is not None:
                sinks.start_sinks(folder.home, told)
        else:
            ending.carry_out(folder, hooks=record.get("hooks"))


def _lost(folder: JobFolder, record: Mapping[str, object]) -> End:
    """End what is left, and say how it was lost."""
    try:
        size = os.lstat(folder.output).st_size
    except OSError:
        size = 0
    end = End("lost", at=now_ms(), proof="best_effort", size=size)
    if record.get("host") != this_host():
        return end._replace(error="the machine was restarted")
    survivors = _end_what_is_left(folder, record)
    return end._replace(error="its keeper was killed", survivors=tuple(survivors))


def _end_what_is_left(folder: JobFolder, record: Mapping[str, object]) -> list[int]:
    others = Others(folder)
    others.stop_children(by=f"the loss of {folder.id}", grace=_GRACE)
    left: list[int] = []
    for _ in range(_ROUNDS):
        keepers = others.keepers() | {os.getpid()}  # we may be one of them, and must live to write it down
        left = _left(folder, record, keepers)
        if not left:
            return []
        for pid in left:
            tree.signal_all(frozen(pid, keepers), signal.SIGKILL)
        tree.signal_all(left, signal.SIGKILL)
    return left


def _left(folder: JobFolder, record: Mapping[str, object], keepers: Collection[int]) -> list[int]:
    """Processes that are the command's for certain."""
    found = set(_marked(folder.id))
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
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark in file.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue  # gone, or somebody else's
    return found


def _runs(pid: int) -> bool:
    fields = stat_fields(str(pid))
    return fields is not None and fields[0] not in ("Z", "X")
