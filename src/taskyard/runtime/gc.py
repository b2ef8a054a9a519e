"""
What ended jobs may keep on disk: not for ever, and not more than a quota.

Oldest first. Never touched: what runs, and what cannot be understood. A job whose notice was not read goes by age
alone, never for the quota; the notice stays. A job that goes leaves a line in `jobs/ended.jsonl`, then vanishes by
one rename; its blocks are freed before its names, since a reader may still have its output open.
"""

from __future__ import annotations

import json
import os
import stat

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import StorageError, TaskyardError
from taskyard.message_ids import lone_id, sender_of
from taskyard.runtime import ended, families, spending
from taskyard.runtime.ending import read, read_ours
from taskyard.runtime.folder import JobFolder, living_folder, outbox
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.liveness import keeper_of
from taskyard.runtime.looking import glance
from taskyard.runtime.records import end_from_json, job_from_json
from taskyard.runtime.sweeping import disk_use, remove_folder
from taskyard.shapes import as_number, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.config import Settings
    from taskyard.runtime.model import End, Job

#: Seconds between two collections that nobody asked for.
HOURLY = 3600

#: Seconds after which no more worktrees are settled by somebody who wants to start a job; the next hour goes on.
_MOMENT = 2.0

#: A job this fresh, in seconds, may be in somebody's eyes; the quota can wait for it.
GRACE = 30

#: Seconds by which the wall clock may be corrected between two collections and still be trusted.
_DRIFT = 3600

#: Seconds for which a machine may be off, or no job be started, before the clock is doubted.
_PLAUSIBLE = 14 * 86_400

#: Seconds for which a clock that was doubted must run on as the boot clock does.
_PROBATION = 86_400

#: Seconds: no job is that old.
_NEVER = 1e12

#: A job is built within milliseconds; after this many seconds its keeper is dead or never was.
_HALF_MADE = 3600

#: What agents used up together counts for as long as a day, and some.
_LONGEST_DAY = 2 * 86_400.0

_GONE = ".gone-"
_NEW = ".new-"


class Ended(NamedTuple):
    """A job that could go."""

    job: Job
    end: End
    at: int  #: when it ended, epoch ms
    size: int  #: bytes on disk
    is_unread: bool = False  #: its notice was not read: it goes by age alone, and the notice stays


class Store(NamedTuple):
    """All jobs on disk, as gc sees them."""

    ended: tuple[Ended, ...]  #: those that could go, oldest first
    size: int  #: bytes of all jobs
    running: int = 0
    unread: int = 0  #: ended, but somebody has yet to read of it
    strange: int = 0  #: what cannot be understood; a person may look


class Collected(NamedTuple):
    """What a collection did, or would do."""

    removed: tuple[Ended, ...]
    store: Store  #: as it was before
    half_made: int = 0  #: remains of jobs that never began

    @property
    def freed(self) -> int:
        """Bytes on disk."""
        return sum(one.size for one in self.removed)

    @property
    def left(self) -> int:
        """Bytes that the jobs still take."""
        return self.store.size - self.freed


def collect(
    home: str, *, quota: int, age_limit: float, dry_run: bool = False, timeout: float = 15.0, now: int | None = None
) -> Collected:
    """Remove ended jobs that are older than `age_limit` seconds, then the oldest until all fit into `quota` bytes.

    Raises:
        Busy: another collection took longer than `timeout` seconds.
        StorageError: the disk refused, or something that is no folder is in the way.
    """
    now = now_ms() if now is None else now
    jobs = f"{home}/jobs"
    if not os.path.lexists(jobs):
        return Collected((), Store((), 0))
    files.check_folder(jobs, os.lstat(jobs))
    if dry_run:
        store = look(home)
        return Collected(choose(store, now=now, quota=quota, age_limit=age_limit), store, len(_remains(home, now)))
    with RangeLock(f"{jobs}/.gc.lock") as lock:
        lock.take(0, timeout=timeout, what="the collection of ended jobs")
        remains = _remains(home, now)
        for path in remains:
            remove_folder(path)
        for path in (*_names_of_nobody(home, now), *spending.outdated(home, age=max(age_limit, _LONGEST_DAY))):
            files.remove(path)
        store = look(home)
        chosen = choose(store, now=now, quota=quota, age_limit=age_limit)
        removed = tuple(one for one in chosen if _remove(home, one))
        families.forget_old(home, age=age_limit)
        return Collected(removed, store, len(remains))


def maybe_collect(home: str, settings: Settings) -> Collected | None:
    """Collect if nobody did within the hour; for those who start jobs. None: it was not time, or it could not be done.

    A job's age is as right as the clock: while that cannot be trusted (`_check_clock`), only the quota counts.
    Not being able to tidy up is no reason to start no job; `taskyard gc` says what is wrong.
    """
    stamp = f"{home}/jobs/.gc-stamp"
    try:
        if not _is_due(stamp):
            return None
        age_limit = settings.job_age_limit if _check_clock(home, stamp) else _NEVER
        done = collect(home, quota=settings.job_store_quota, age_limit=age_limit, timeout=0.0)
        if os.path.isdir(f"{home}/worktrees"):
            from taskyard.runtime.worktree_care import settle_abandoned

            settle_abandoned(home, seconds=_MOMENT)
    except TaskyardError:
        return None
    return done


def _check_clock(home: str, stamp: str) -> bool:
    """Whether the wall clock can be trusted to tell a job's age, by what the stamp says; the stamp is written anew.

    It can if it went on as the boot clock did since the last collection or, across a restart, if it is not far ahead of
    that and of the newest job. A clock that was set is trusted again once it has run on evenly for a day.
    """
    from taskyard.deadlines import deadline

    now = deadline(0)
    raw = read_ours(stamp) or {}
    known, doubted = as_text(raw.get("clock")), as_text(raw.get("doubted"))
    trusted = _ran_on(known, now)
    if trusted is None:
        names = (name for name in _listed(f"{home}/jobs") if is_job_id(name))
        newest = max([_wall(known), *(_changed(f"{home}/jobs/{name}") for name in names)])
        trusted = _wall(now) - newest <= _PLAUSIBLE * 1000
    if not trusted:
        trusted = bool(_ran_on(doubted, now)) and _wall(now) - _wall(doubted) >= _PROBATION * 1000
    kept = {"clock": now} if trusted else {"clock": known, "doubted": doubted if _ran_on(doubted, now) else now}
    files.replace(stamp, json.dumps(kept).encode())  # before anything else: others who start jobs now do not follow us
    return trusted


def _ran_on(before: str, now: str) -> bool | None:
    """Whether wall clock and boot clock went on alike between two moments; None: not of the same boot."""
    (wall, uptime, boot), (wall_now, uptime_now, boot_now) = _parts(before), _parts(now)
    if not wall or boot != boot_now:
        return None
    return abs((wall_now - wall) - (uptime_now - uptime)) <= _DRIFT * 1000


def _wall(moment: str) -> int:
    return _parts(moment)[0]


def _parts(moment: str) -> tuple[int, int, str]:
    """Wall clock and uptime in ms, and the boot, of a moment as `deadlines` writes it; zeros if it cannot be read."""
    wall, _, rest = moment.partition("-")
    uptime, _, boot = rest.partition("-")
    return as_number(wall), as_number(uptime), boot


def _changed(path: str) -> int:
    """When a folder was last changed, in epoch ms; 0 if it is gone."""
    try:
        return os.lstat(path).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def choose(store: Store, *, now: int, quota: int, age_limit: float) -> tuple[Ended, ...]:
    """Which jobs must go. Decides, does nothing."""
    left = store.size
    chosen: list[Ended] = []
    for one in store.ended:
        age = (now - one.at) / 1000
        if age > age_limit or (left > quota and age > GRACE and not one.is_unread):
            chosen.append(one)
            left -= one.size
    return tuple(chosen)


def look(home: str) -> Store:
    """All jobs, and which of them could go."""
    over: list[Ended] = []
    size, running, unread, strange = 0, 0, 0, 0
    for folder in _folders(home):
        size += (own := disk_use(folder.path))
        found = _ended(folder, own)
        # In this order: whoever ends a job writes the notice, then the end, then sends the notice off.
        if os.path.lexists(folder.notice):
            unread += 1
        elif keeper_of(folder) is not None:
            running += 1
        elif found is not None:
            over.append(found)
        elif _is_lost(folder) or _ended(folder, own) is not None:
            unread += 1  # the next who looks at it writes down that it is lost, and tells it; or it ended just now
        else:
            strange += 1
    waiting = _senders_of_waiting(home) if over else frozenset[str]()
    over = [one._replace(is_unread=sender_of(lone_id(one.job.id)) in waiting) for one in over]
    over.sort(key=lambda one: (one.at, one.job.id))
    return Store(tuple(over), size, running, unread + sum(one.is_unread for one in over), strange)


def _folders(home: str) -> Iterator[JobFolder]:
    for name in os.listdir(f"{home}/jobs"):
        folder = JobFolder(home, name)
        if is_job_id(name) and _is_our_folder(folder.path):
            yield folder


def _ended(folder: JobFolder, size: int) -> Ended | None:
    """The job in a folder, if it ended and both its records can be understood."""
    try:
        raw, record = read(folder.end), read(folder.record)
    except StorageError:
        return None  # a planted link
    end = None if raw is None else end_from_json(raw)
    if end is None or record is None:
        return None
    job = job_from_json(record, status=end.status, end=end)
    if job is None or job.id != folder.id:
        return None
    at = end.at if end.at > 0 else os.lstat(folder.end).st_mtime_ns // 1_000_000
    return Ended(job, end, at, size)


def _is_lost(folder: JobFolder) -> bool:
    """Whether a job that nobody keeps has yet to get its end; one that does not even say what it is gets none."""
    try:
        return not os.path.lexists(folder.end) and (read(folder.record) or {}).get("id") == folder.id
    except StorageError:
        return False  # a planted link


def _senders_of_waiting(home: str) -> frozenset[str]:
    """Who sent the notices that nobody acknowledged yet, by the keys in their names."""
    names: list[str] = []
    for recipient in _listed(outbox(home, "")):
        box = outbox(home, recipient)
        names += _listed(f"{box}/new")
        for holder in _listed(f"{box}/taken"):
            names += _listed(f"{box}/taken/{holder}")
        names += _listed(f"{box}/new")  # what came back from a holder between the two
    return frozenset(map(sender_of, names))


def _remove(home: str, one: Ended) -> bool:
    """Take one job away; False if somebody has it in hand."""
    folder = JobFolder(home, one.job.id)
    gone = f"{home}/jobs/{_GONE}{folder.id}"
    try:
        lock = RangeLock(folder.lock)
    except StorageError:
        return False  # a link in the lock's place: a person should look
    with lock:
        if not lock.try_take(0):
            return False
        ended.append(home, ended.line_of(glance(home, folder.id) or one.job, one.end))
        try:
            os.rename(folder.path, gone)
        except OSError as error:
            raise files.storage_error(folder.path, error) from error
    files.remove(folder.dismissed)
    remove_folder(gone)
    return True


def _remains(home: str, now: int) -> Sequence[str]:
    """Folders of jobs that never began, and of those that an earlier collection did not finish with."""
    found: list[str] = []
    for name in os.listdir(f"{home}/jobs"):
        folder = JobFolder(home, name)
        if not name.startswith((_GONE, _NEW)) or not _is_our_folder(folder.path):
            continue
        if name.startswith(_GONE) or (_age(folder.path, now) > _HALF_MADE and keeper_of(folder) is None):
            found.append(folder.path)
    return found


def _names_of_nobody(home: str, now: int) -> Iterator[str]:
    """Names among the living that lead to no job: their keepers were killed before there was one."""
    for name in _listed(living_folder(home)):
        folder = JobFolder(home, name)
        if is_job_id(name) and not os.path.lexists(folder.path) and _age(folder.living, now) > _HALF_MADE:
            yield folder.living


def _age(path: str, now: int) -> float:
    """Seconds since a file's or folder's last change; 0 if it is gone."""
    try:
        return (now - os.lstat(path).st_mtime_ns // 1_000_000) / 1000
    except FileNotFoundError:
        return 0.0  # it became a job


def _is_our_folder(path: str) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_due(stamp: str) -> bool:
    try:
        age = (now_ms() - os.lstat(stamp).st_mtime_ns // 1_000_000) / 1000
    except FileNotFoundError:
        return os.path.isdir(os.path.dirname(stamp))
    except OSError as error:
        raise files.storage_error(stamp, error) from error
    return not 0 <= age < HOURLY  # a stamp from the future is one of a clock that was wrong


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise files.storage_error(path, error) from error
