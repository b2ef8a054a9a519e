"""Garbage collection of ended jobs by age and disk quota.

Oldest first. Never removed: running jobs, and folders that cannot be parsed. A job whose notice is unread
is removed by age alone, never for the quota; the notice stays. A removed job leaves a line in
`jobs/ended.jsonl`, then vanishes by one rename; its blocks are freed before its names, since a reader may
still have its output open.

Folders are measured and removed without following a link: every step is relative to an open folder.
"""

from __future__ import annotations

import json
import os
import stat

from taskyard.core import files
from taskyard.core.files import open_plain, storage_error
from taskyard.core.system import now_ms
from taskyard.core.values import NamedTuple, as_number, as_text
from taskyard.errors import StorageError, TaskyardError
from taskyard.jobs import budget, ended_index, query
from taskyard.jobs.exit_record import read_json, read_own_json
from taskyard.jobs.job_dir import JobPaths, live_folder, outbox_path, supervisor_pid
from taskyard.jobs.model import end_from_json, is_job_id, job_from_json
from taskyard.jobs.query import peek
from taskyard.storage.locks import RangeLock
from taskyard.storage.message_ids import clock_id, sender_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.config import Settings
    from taskyard.jobs.model import End, Job


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: Unit of `st_blocks` in bytes, whatever the file system's own block size is.
_BLOCK = 512


def disk_use(path: str) -> int:
    """Return the bytes a folder takes on disk, with its contents; holes take none. 0 if it is gone.

    Folders may be nested to any depth: two are open at a time, and no path is longer than a name.
    """
    try:
        here = os.open(path, _FOLDER)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        size, names = _measure(here)
        way = [(os.fstat(here), names)]  # from the top to the current folder, with the names left in each
        while way:
            names = way[-1][1]
            if names:
                try:
                    below = os.open(names.pop(), _FOLDER, dir_fd=here)
                except OSError:
                    continue  # removed meanwhile, or not readable
                os.close(here)
                here = below
                own, inside = _measure(here)
                size += own
                way.append((os.fstat(here), inside))
                continue
            way.pop()
            if way:
                above = os.open("..", _FOLDER, dir_fd=here)
                os.close(here)
                here = above
                if not os.path.samestat(os.fstat(here), way[-1][0]):
                    break  # it was moved meanwhile
        return size
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(here)


def _measure(folder: int) -> tuple[int, list[str]]:
    """Return the bytes on disk of the files directly in a folder, and the names of its folders."""
    size, names = 0, list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
                continue
            try:
                size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
            except FileNotFoundError:
                continue
    return size, names


def remove_folder(path: str) -> None:
    """Remove a folder and its contents. Files are truncated first, so that open descriptors keep no blocks.

    Folders may be nested to any depth: each is moved to the top before it is emptied, and two are open at a
    time.

    Raises:
        StorageError: a disk error; some of it may be gone.
    """
    try:
        top = os.open(path, _FOLDER)
    except FileNotFoundError:
        return
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        while names := _remove_files(top):
            for name in names:
                _flatten(name, top)
        os.rmdir(path)
    except FileNotFoundError:
        pass  # another process removes it, too
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(top)


def _flatten(name: str, top: int) -> None:
    """Remove a folder directly in `top`; its own folders are moved to `top`."""
    here = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inside in _remove_files(here):
            os.rename(inside, f".{os.urandom(8).hex()}", src_dir_fd=here, dst_dir_fd=top)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=top)


def _remove_files(folder: int) -> list[str]:
    """Remove the files directly in a folder; return the names of its folders."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            _truncate(name, folder)
            os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


def _truncate(name: str, folder: int) -> None:
    """Free the blocks of a regular file without other hard links; another link means that it is still used."""
    try:
        fd = open_plain(name, os.O_WRONLY, dir_fd=folder)
    except OSError:
        return  # a link, a pipe, a socket: nothing to free
    try:
        if os.fstat(fd).st_nlink == 1:
            os.ftruncate(fd, 0)
    finally:
        os.close(fd)


#: Seconds between two automatic collections.
INTERVAL = 3600

#: Seconds after which an automatic collection settles no more worktrees; the next one continues.
_WORKTREE_TIMEOUT = 2.0

#: Fewest seconds since a job's end before the quota may remove it: the user may be looking at it.
MIN_AGE = 30

#: Seconds by which the wall clock may be corrected between two collections and still be trusted.
_MAX_DRIFT = 3600

#: Seconds for which a machine may be off, or no job be started, before the clock is doubted.
_MAX_GAP = 14 * 86_400

#: Seconds for which a doubted clock must advance like the boot clock.
_PROBATION = 86_400

#: Seconds: no job is that old.
_NO_AGE_LIMIT = 1e12

#: Seconds after which an incomplete job's supervisor must have been killed: creation takes milliseconds.
_STALE_AFTER = 3600

#: Seconds for which usage files of agents are kept at least: more than a day.
_USAGE_AGE = 2 * 86_400.0

_REMOVED_PREFIX = ".gone-"
_STAGING_PREFIX = ".new-"


class EndedJob(NamedTuple):
    """An ended job that may be removed."""

    job: Job
    end: End
    at: int  #: when it ended, epoch ms
    size: int  #: bytes on disk
    is_unread: bool = False  #: its notice is unread: it is removed by age alone, and the notice stays


class JobStoreScan(NamedTuple):
    """All jobs on disk, as seen by gc."""

    ended: tuple[EndedJob, ...]  #: those that may be removed, oldest first
    size: int  #: bytes of all jobs
    running: int = 0
    unread: int = 0  #: ended, with an unread notice
    strange: int = 0  #: folders that cannot be parsed; the user may check them


class GcResult(NamedTuple):
    """What a collection did, or would do."""

    removed: tuple[EndedJob, ...]
    store: JobStoreScan  #: as it was before
    incomplete: int = 0  #: remains of jobs that were never created

    @property
    def freed(self) -> int:
        """Bytes freed on disk."""
        return sum(one.size for one in self.removed)

    @property
    def left(self) -> int:
        """Bytes that the jobs still take."""
        return self.store.size - self.freed


def collect(
    home: str, *, quota: int, age_limit: float, dry_run: bool = False, timeout: float = 15.0, now: int | None = None
) -> GcResult:
    """Remove ended jobs older than `age_limit` seconds, then the oldest until all fit into `quota` bytes.

    Raises:
        Busy: another collection took longer than `timeout` seconds.
        StorageError: a disk error, or a path is no folder.
    """
    now = now_ms() if now is None else now
    jobs = f"{home}/jobs"
    if not os.path.lexists(jobs):
        return GcResult((), JobStoreScan((), 0))
    files.check_folder(jobs, os.lstat(jobs))
    if dry_run:
        store = scan_jobs(home)
        return GcResult(choose(store, now=now, quota=quota, age_limit=age_limit), store, len(_stale_folders(home, now)))
    with RangeLock(f"{jobs}/.gc.lock") as lock:
        lock.take(0, timeout=timeout, what="the collection of ended jobs")
        remains = _stale_folders(home, now)
        for path in remains:
            remove_folder(path)
        for path in (*_orphan_names(home, now), *budget.stale_usage_files(home, age=max(age_limit, _USAGE_AGE))):
            files.remove(path)
        store = scan_jobs(home)
        chosen = choose(store, now=now, quota=quota, age_limit=age_limit)
        removed = tuple(one for one in chosen if _remove_job(home, one))
        query.remove_old(home, age=age_limit)
        return GcResult(removed, store, len(remains))


def collect_if_due(home: str, settings: Settings) -> GcResult | None:
    """Collect if the last collection is an hour old; called when jobs start. Return None if not due, or on failure.

    A job's age is only as right as the clock: while that is not trusted (`_check_clock`), only the quota
    counts. A failed collection does not prevent a start; `taskyard gc` reports the error.
    """
    stamp = f"{home}/jobs/.gc-stamp"
    try:
        if not _is_due(stamp):
            return None
        age_limit = settings.job_age_limit if _check_clock(home, stamp) else _NO_AGE_LIMIT
        done = collect(home, quota=settings.job_store_quota, age_limit=age_limit, timeout=0.0)
        if os.path.isdir(f"{home}/worktrees"):
            from taskyard.jobs.worktrees import settle_abandoned

            settle_abandoned(home, seconds=_WORKTREE_TIMEOUT)
    except TaskyardError:
        return None
    return done


def _check_clock(home: str, stamp: str) -> bool:
    """Return whether the wall clock is trusted for a job's age, by the stamp; write a new stamp.

    It is if it advanced like the boot clock since the last collection or, across a restart, is not much
    ahead of that and of the newest job. A clock that was set is trusted again once it has advanced evenly
    for a day.
    """
    from taskyard.core.system import encode_deadline

    now = encode_deadline(0)
    raw = read_own_json(stamp) or {}
    known, doubted = as_text(raw.get("clock")), as_text(raw.get("doubted"))
    trusted = _is_steady(known, now)
    if trusted is None:
        names = (name for name in _list_names(f"{home}/jobs") if is_job_id(name))
        newest = max([_wall_ms(known), *(_mtime_ms(f"{home}/jobs/{name}") for name in names)])
        trusted = _wall_ms(now) - newest <= _MAX_GAP * 1000
    if not trusted:
        trusted = bool(_is_steady(doubted, now)) and _wall_ms(now) - _wall_ms(doubted) >= _PROBATION * 1000
    kept = {"clock": now} if trusted else {"clock": known, "doubted": doubted if _is_steady(doubted, now) else now}
    files.replace(stamp, json.dumps(kept).encode())  # first: others who start jobs now skip the collection
    return trusted


def _is_steady(before: str, now: str) -> bool | None:
    """Return whether wall clock and boot clock advanced alike between two moments; None: different boots."""
    (wall, uptime, boot), (wall_now, uptime_now, boot_now) = _parse_moment(before), _parse_moment(now)
    if not wall or boot != boot_now:
        return None
    return abs((wall_now - wall) - (uptime_now - uptime)) <= _MAX_DRIFT * 1000


def _wall_ms(moment: str) -> int:
    return _parse_moment(moment)[0]


def _parse_moment(moment: str) -> tuple[int, int, str]:
    """Return wall clock and uptime in ms, and the boot id, of an encoded moment; zeros if it cannot be parsed."""
    wall, _, rest = moment.partition("-")
    uptime, _, boot = rest.partition("-")
    return as_number(wall), as_number(uptime), boot


def _mtime_ms(path: str) -> int:
    """Return when a folder was last changed, in epoch ms; 0 if it is gone."""
    try:
        return os.lstat(path).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def choose(store: JobStoreScan, *, now: int, quota: int, age_limit: float) -> tuple[EndedJob, ...]:
    """Return the jobs to remove, without removing them."""
    left = store.size
    chosen: list[EndedJob] = []
    for one in store.ended:
        age = (now - one.at) / 1000
        if age > age_limit or (left > quota and age > MIN_AGE and not one.is_unread):
            chosen.append(one)
            left -= one.size
    return tuple(chosen)


def scan_jobs(home: str) -> JobStoreScan:
    """Return all jobs, and which of them may be removed."""
    over: list[EndedJob] = []
    size, running, unread, strange = 0, 0, 0, 0
    for folder in _job_folders(home):
        size += (own := disk_use(folder.path))
        found = _read_ended(folder, own)
        # In this order: when a job ends, its notice is written, then its end, then the notice is sent.
        if os.path.lexists(folder.notice):
            unread += 1
        elif supervisor_pid(folder) is not None:
            running += 1
        elif found is not None:
            over.append(found)
        elif _is_lost(folder) or _read_ended(folder, own) is not None:
            unread += 1  # the next reader records that it is lost and sends a notice; or it ended just now
        else:
            strange += 1
    waiting = _unread_senders(home) if over else frozenset[str]()
    over = [one._replace(is_unread=sender_of(clock_id(one.job.id)) in waiting) for one in over]
    over.sort(key=lambda one: (one.at, one.job.id))
    return JobStoreScan(tuple(over), size, running, unread + sum(one.is_unread for one in over), strange)


def _job_folders(home: str) -> Iterator[JobPaths]:
    for name in os.listdir(f"{home}/jobs"):
        folder = JobPaths(home, name)
        if is_job_id(name) and _is_our_folder(folder.path):
            yield folder


def _read_ended(folder: JobPaths, size: int) -> EndedJob | None:
    """Return the job in a folder, if it has ended and both its records can be parsed."""
    try:
        raw, record = read_json(folder.end), read_json(folder.record)
    except StorageError:
        return None  # a planted link
    end = None if raw is None else end_from_json(raw)
    if end is None or record is None:
        return None
    job = job_from_json(record, status=end.status, end=end)
    if job is None or job.id != folder.id:
        return None
    at = end.at if end.at > 0 else os.lstat(folder.end).st_mtime_ns // 1_000_000
    return EndedJob(job, end, at, size)


def _is_lost(folder: JobPaths) -> bool:
    """Return whether a job without a supervisor has yet to get its end; one without a readable record gets none."""
    try:
        return not os.path.lexists(folder.end) and (read_json(folder.record) or {}).get("id") == folder.id
    except StorageError:
        return False  # a planted link


def _unread_senders(home: str) -> frozenset[str]:
    """Return the senders of all unacknowledged notices, by the keys in their names."""
    names: list[str] = []
    for recipient in _list_names(outbox_path(home, "")):
        box = outbox_path(home, recipient)
        names += _list_names(f"{box}/new")
        for holder in _list_names(f"{box}/taken"):
            names += _list_names(f"{box}/taken/{holder}")
        names += _list_names(f"{box}/new")  # what a holder returned between the two listings
    return frozenset(map(sender_of, names))


def _remove_job(home: str, one: EndedJob) -> bool:
    """Remove one job; return False if another process has locked it."""
    folder = JobPaths(home, one.job.id)
    gone = f"{home}/jobs/{_REMOVED_PREFIX}{folder.id}"
    try:
        lock = RangeLock(folder.lock)
    except StorageError:
        return False  # a link in place of the lock: the user should check it
    with lock:
        if not lock.try_take(0):
            return False
        ended_index.append(home, ended_index.index_entry(peek(home, folder.id) or one.job, one.end))
        try:
            os.rename(folder.path, gone)
        except OSError as error:
            raise files.storage_error(folder.path, error) from error
    files.remove(folder.dismissed)
    remove_folder(gone)
    return True


def _stale_folders(home: str, now: int) -> Sequence[str]:
    """Return folders of jobs that were never created, and of unfinished removals."""
    found: list[str] = []
    for name in os.listdir(f"{home}/jobs"):
        folder = JobPaths(home, name)
        if not name.startswith((_REMOVED_PREFIX, _STAGING_PREFIX)) or not _is_our_folder(folder.path):
            continue
        if name.startswith(_REMOVED_PREFIX) or (
            _age(folder.path, now) > _STALE_AFTER and supervisor_pid(folder) is None
        ):
            found.append(folder.path)
    return found


def _orphan_names(home: str, now: int) -> Iterator[str]:
    """Yield live names without a job: their supervisors were killed before they created it."""
    for name in _list_names(live_folder(home)):
        folder = JobPaths(home, name)
        if is_job_id(name) and not os.path.lexists(folder.path) and _age(folder.living, now) > _STALE_AFTER:
            yield folder.living


def _age(path: str, now: int) -> float:
    """Return the seconds since a path's last change; 0 if it is gone."""
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
    return not 0 <= age < INTERVAL  # a stamp from the future was written under a wrong clock


def _list_names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise files.storage_error(path, error) from error
