"""Stage, apply, recover and undo a dream (memory consolidation) next to the memory folder.

All state is in `.<name>.dream`, beside the memory folder and not inside it, so that folders can be swapped in
one step and all users of the folder share the lock:

    lock          locked by the running dream; its mtime is when the last one was done, 1970 for never
    claim.json    the running job, and the mtime before it; removed when it is done
    work/         the staged copy, and the sessions it reads
    old/          the folder as it was before each dream, the newest few
    kept/         results that could not be applied

The kernel releases the lock however its holder exits. A dream sets the mtime to now when it starts and
restores it if it has no result; the prior value is in the claim, so that `recover` can restore it for a
killed dream.

`swap_in` applies a result entirely or not at all:

    1  the folder is as it was when it was copied, else nothing is done
    2  the claim records what is about to be swapped
    3  both folders are exchanged, in one system call
    4  the replaced folder moves to the old copies, and is as it was in 1, else both are swapped back

`recover` continues a claim whose dream is dead: before step 3 nothing happened, after it the rest is done.
Where the file system cannot swap folders, step 3 is two renames, the folder's to the old copies first; a
crash between them is repaired by `recover`.

Folders are read and copied within bounds and without following links: every step is relative to an open
folder descriptor. The tree that `copy` returns describes exactly the bytes copied. `check_readiness` is pure
and names each missing condition: hours since the last dream, sessions since then, no dream running.
"""

from __future__ import annotations

import json
import os
import stat
import time
from itertools import islice

from taskyard.core import files
from taskyard.core.files import NotPlain, create_plain, open_plain, storage_error, sync_folder, write_all
from taskyard.core.text import escape_control
from taskyard.core.values import NamedTuple, as_object, as_text
from taskyard.errors import Conflict, DreamHeld, NotFound, StorageError, quote_value
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.gc import remove_folder
from taskyard.jobs.model import is_job_id
from taskyard.storage.locks import RangeLock, is_locked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: Conditions that block a dream.
OFF, RUNNING, HOURS, SESSIONS = "off", "running", "hours", "sessions"

#: Tolerated clock difference in seconds; a time further in the future was not written by a dream.
_SKEW = 60.0


class Readiness(NamedTuple):
    """Whether a dream may start, and what blocks it."""

    held_by: tuple[str, ...] = ()
    opens_at: float | None = None  #: epoch seconds, if only time is missing
    last_done: float = 0.0  #: epoch seconds; 0: never
    sessions: int = 0  #: since then
    sessions_needed: int = 0

    @property
    def is_open(self) -> bool:
        """Whether nothing blocks it."""
        return not self.held_by


def check_readiness(
    *, now: float, last_done: float, sessions: int, is_running: bool, hours: float, least: int, is_on: bool = True
) -> Readiness:
    """Evaluate the start conditions.

    Args:
        now: Epoch seconds.
        last_done: Epoch seconds; 0 if never. One in the future counts as never: a clock was wrong.
        sessions: Sessions since then.
        is_running: Whether a dream is running.
        hours: Minimum hours between two dreams.
        least: Minimum number of sessions.
        is_on: False: turned off by setting.
    """
    done = last_done if last_done <= now + _SKEW else 0.0
    opens = done + hours * 3600 if done else 0.0
    held: list[str] = []
    if not is_on:
        held.append(OFF)
    if is_running:
        held.append(RUNNING)
    if opens > now:
        held.append(HOURS)
    if sessions < least:
        held.append(SESSIONS)
    return Readiness(tuple(held), opens if held == [HOURS] else None, done, sessions, least)


def format_reasons(gate: Readiness, *, now: float) -> str:
    """Return what blocks a dream, for people; empty if nothing does."""
    reasons = {
        OFF: "dreams are turned off (setting dream_enabled)",
        RUNNING: "a dream is at work",
        HOURS: f"the last one was {_format_duration(now - gate.last_done)} ago",
        SESSIONS: f"{gate.sessions} of {gate.sessions_needed} sessions since the last one are there",
    }
    told = "; ".join(reasons[held] for held in gate.held_by)
    return f"{told}; the gate opens in {_format_duration(gate.opens_at - now)}" if gate.opens_at else told


def _format_duration(seconds: float) -> str:
    """Return `3h 20m`, `40m` or `30s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m"


def acquire(side: DreamDir) -> RangeLock:
    """Take the dream lock; closing it releases it.

    Raises:
        DreamHeld: a dream is running.
    """
    lock = RangeLock(side.lock)
    try:
        if not lock.try_take(0):
            raise _running_error(side)
    except BaseException:
        lock.close()
        raise
    return lock


def is_running(side: DreamDir) -> bool:
    """Return whether a dream is running, according to the kernel's lock."""
    return side.is_there() and is_locked(side.lock)


def refuse_if_running(side: DreamDir) -> None:
    """Refuse while a dream is running: two never work on one memory, forced or not.

    Raises:
        DreamHeld: names the running job.
    """
    if is_running(side):
        raise _running_error(side)


def _running_error(side: DreamDir) -> DreamHeld:
    job = (read_claim(side) or {}).get("job")
    named = f" ({job})" if is_job_id(job) else ""  # the claim is written a moment after the lock is taken
    return DreamHeld([RUNNING], f"a dream is at work on {side.memory}{named}")


def last_done(side: DreamDir) -> int:
    """Return when the last dream was done, in epoch nanoseconds; 0 for never."""
    try:
        return max(0, os.lstat(side.lock).st_mtime_ns)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise files.storage_error(side.lock, error) from error


def last_success(side: DreamDir) -> int:
    """Return the same, also while a dream runs or after a crash that was not recovered yet."""
    prior = (read_claim(side) or {}).get("prior")
    return prior if isinstance(prior, int) else last_done(side)


def claim(side: DreamDir, job: str, now: int) -> dict[str, object]:
    """Write a claim with the prior time, then set the time to `now`. Requires the lock."""
    made: dict[str, object] = {"job": job, "prior": last_done(side), "at": now}
    write_claim(side, made)
    _set_mtime(side, now)
    return made


def read_claim(side: DreamDir) -> dict[str, object] | None:
    """Return the claim of a running dream, or of one that died."""
    return read_json(side.claim)


def write_claim(side: DreamDir, made: Mapping[str, object]) -> None:
    """Replace the claim."""
    files.replace(side.claim, json.dumps(made).encode())


def rewind(side: DreamDir, made: Mapping[str, object]) -> None:
    """Restore the time before the claim: the dream had no result."""
    prior = made.get("prior")
    _set_mtime(side, prior if isinstance(prior, int) and prior >= 0 else 0)


def end_claim(side: DreamDir) -> None:
    """Remove the claim."""
    files.remove(side.claim)


def _set_mtime(side: DreamDir, when: int) -> None:
    try:
        os.utime(side.lock, ns=(when, when), follow_symlinks=False)
    except (OSError, OverflowError) as error:
        known = error if isinstance(error, OSError) else OSError(0, str(error))
        raise files.storage_error(side.lock, known) from error


class DreamDir(NamedTuple):
    """Paths beside one memory folder."""

    memory: str  #: its real path

    @property
    def path(self) -> str:
        """The folder itself."""
        parent, name = os.path.split(self.memory)
        return os.path.join(parent, f".{name}.dream")

    @property
    def lock(self) -> str:
        """Locked by the running dream; its mtime is when the last one was done."""
        return f"{self.path}/lock"

    @property
    def claim(self) -> str:
        """The running job, and what to restore if it dies."""
        return f"{self.path}/claim.json"

    @property
    def work(self) -> str:
        """Working files of the running dream."""
        return f"{self.path}/work"

    @property
    def stage(self) -> str:
        """The staged copy that the dream edits."""
        return f"{self.work}/memory"

    @property
    def old(self) -> str:
        """Earlier states of the memory folder."""
        return f"{self.path}/old"

    @property
    def kept(self) -> str:
        """Results that could not be applied."""
        return f"{self.path}/kept"

    def is_there(self) -> bool:
        """Return whether a dream ever ran here; refuse a folder that is not private to us."""
        try:
            files.check_private_folder(self.path)
        except FileNotFoundError:
            return False
        return True

    def make(self) -> None:
        """Create everything that is missing; the mtime of a new lock means never.

        Raises:
            StorageError: the disk refused, or something else is in its place.
        """
        parent = os.path.dirname(self.memory)
        files.make_folder(parent)
        if os.path.ismount(self.memory):
            raise StorageError(self.memory, "it is a mount of its own, and cannot change places with a copy")
        for folder in (self.path, self.old, self.kept):
            files.make_private_folder(folder)
        if not os.path.lexists(self.lock):
            self._make_lock()

    def _make_lock(self) -> None:
        """Create the lock file with its mtime set before it becomes visible."""
        new = f"{self.lock}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        files.create(new, b"")
        try:
            os.utime(new, ns=(0, 0))
            os.link(new, self.lock)
        except FileExistsError:
            pass  # another process created it
        finally:
            os.unlink(new)


if TYPE_CHECKING:
    Tree = Mapping[str, "Entry"]

#: Bounds of a memory folder: usually some dozens of notes; a much larger one is something else.
MOST_FILES = 10_000
MOST_BYTES = 100_000_000
_DEEPEST = 32

FILE, FOLDER, LINK = "file", "folder", "link"

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20


class Entry(NamedTuple):
    """One name in a tree."""

    kind: str
    mode: int
    size: int = 0
    content: str = ""  #: hash of a file, target of a link
    names: int = 1  #: hard link count of a file

    @property
    def content_key(self) -> tuple[str, int, str]:
        """The values that identify its content."""
        return self.kind, self.mode, self.content


def read_tree(path: str) -> dict[str, Entry]:
    """Return all entries of a folder by relative path; empty if there is no such folder.

    Raises:
        StorageError: it is too large, or contains something other than files, folders and links.
    """
    return _walk_tree(path, None)


def copy(path: str, target: str) -> dict[str, Entry]:
    """Copy a folder's files to the new folder `target` and return its entries.

    Links are listed but not copied.

    Raises:
        StorageError: as for `read_tree`.
    """
    os.mkdir(target, 0o700)
    return _walk_tree(path, target)


def fingerprint(tree: Tree) -> str:
    """Return a hash of a tree."""
    import hashlib

    hashed = hashlib.sha256()
    for name in sorted(tree):
        hashed.update(repr((name, tree[name].content_key)).encode("utf-8", "surrogatepass"))
    return hashed.hexdigest()


def signature(path: str) -> dict[str, tuple[int, int, int]]:
    """Return mtime, size and inode of a folder's files, to detect changes cheaply. Bounded by `MOST_FILES`."""
    found: dict[str, tuple[int, int, int]] = {}
    waiting = [(path, "")]
    while waiting and len(found) < MOST_FILES:
        folder, prefix = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{entry.name}/"))
                    else:
                        seen = entry.stat(follow_symlinks=False)
                        found[prefix + entry.name] = seen.st_mtime_ns, seen.st_size, seen.st_ino
        except OSError:
            continue  # removed meanwhile: the next call notices
    return found


def restore_links(tree: Tree, target: str) -> None:
    """Recreate the links of `tree` in `target`, where nothing else has taken their place."""
    for name, entry in sorted(tree.items()):
        place = os.path.join(target, name)
        if entry.kind == LINK and os.path.isdir(os.path.dirname(place)) and not os.path.lexists(place):
            os.symlink(entry.content, place)


class _Walk:
    """One walk through a folder, with the remaining size limit."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.found: dict[str, Entry] = {}
        self.room = MOST_BYTES

    def folder(self, here: int, there: int | None, prefix: str) -> None:
        """Read an open folder, and copy it into another if given."""
        with os.scandir(here) as entries:
            names = [entry.name for entry in islice(entries, MOST_FILES + 1)]
        if prefix.count("/") > _DEEPEST or len(self.found) + len(names) > MOST_FILES:
            raise StorageError(self.root, f"it has more than {MOST_FILES:,} names or is more than {_DEEPEST} deep")
        for name in names:
            self._entry(name, here, there, prefix + name)

    def _entry(self, name: str, here: int, there: int | None, path: str) -> None:
        mode = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            self.found[path] = Entry(LINK, 0, content=os.readlink(name, dir_fd=here))
        elif stat.S_ISDIR(mode):
            self.found[path] = Entry(FOLDER, stat.S_IMODE(mode) & 0o777)
            self._below(name, here, there, path)
        elif stat.S_ISREG(mode):
            self.found[path] = self._file(name, here, there, path)
        else:
            raise StorageError(self.root, f"{quote_value(path)} in it is neither a file nor a folder")

    def _below(self, name: str, here: int, there: int | None, path: str) -> None:
        inner = os.open(name, _DIR, dir_fd=here)
        try:
            target = None
            if there is not None:
                os.mkdir(name, 0o700, dir_fd=there)
                target = os.open(name, _DIR, dir_fd=there)
            try:
                self.folder(inner, target, path + "/")
                if target is not None:
                    os.fchmod(target, self.found[path].mode | 0o700)
            finally:
                if target is not None:
                    os.close(target)
        finally:
            os.close(inner)

    def _file(self, name: str, here: int, there: int | None, path: str) -> Entry:
        import hashlib

        hashed, size = hashlib.sha256(), 0
        try:
            fd = open_plain(name, dir_fd=here)
        except NotPlain as error:
            raise StorageError(self.root, f"{quote_value(path)} in it changed while it was read") from error
        try:
            seen = os.fstat(fd)
            mode = stat.S_IMODE(seen.st_mode) & 0o777
            copied = None if there is None else create_plain(name, mode, dir_fd=there)
            try:
                while chunk := os.read(fd, _CHUNK):
                    size += len(chunk)
                    if size > self.room:
                        raise StorageError(self.root, f"it holds more than {MOST_BYTES:,} bytes")
                    hashed.update(chunk)
                    if copied is not None:
                        write_all(copied, chunk)
                if copied is not None:
                    os.fchmod(copied, mode)
                    os.utime(copied, ns=(seen.st_atime_ns, seen.st_mtime_ns))
            finally:
                if copied is not None:
                    os.close(copied)
        finally:
            os.close(fd)
        self.room -= size
        return Entry(FILE, mode, size, hashed.hexdigest(), seen.st_nlink)


def _walk_tree(path: str, target: str | None) -> dict[str, Entry]:
    walk = _Walk(path)
    try:
        here = os.open(path, _DIR)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        there = None if target is None else os.open(target, _DIR)
        try:
            walk.folder(here, there, "")
        finally:
            if there is not None:
                os.close(there)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        os.close(here)
    return walk.found


class Copy(NamedTuple):
    """An earlier state of the memory folder."""

    name: str
    at: int  #: epoch seconds: when it was replaced
    job: str  #: the dream that replaced it
    path: str


def swap_in(side: DreamDir, claim: Mapping[str, object], base: str, *, job: str, sync: bool = False) -> str:
    """Swap the staged copy with the memory folder and return the old copy's name. Requires the lock.

    Args:
        side: The dream folder.
        claim: As it is on disk.
        base: Fingerprint of the folder that the staged copy was made from.
        job: The job that swaps.
        sync: Also fsync, to survive a power failure (setting `durability`).

    Raises:
        Conflict: the folder was changed meanwhile; it stays as it is, and the result is in `kept`.
    """
    copy = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}-{job}"
    try:
        if not os.path.isdir(side.memory):
            os.mkdir(side.memory, 0o700)
        os.chmod(side.stage, stat.S_IMODE(os.stat(side.memory).st_mode) & 0o777 | 0o700)
        if not _has_fingerprint(side.memory, base):
            raise _changed_error(side, copy)
        step = {"copy": copy, "inode": os.stat(side.stage).st_ino, "base": base}
        write_claim(side, {**claim, "applying": step})
        if sync:
            os.sync()  # the writers of the copy have exited, so there are no descriptors to fsync
        if not files.try_swap(side.stage, side.memory):
            os.rename(side.memory, f"{side.old}/{copy}")
            os.rename(side.stage, side.memory)
        if not _keep_old(side, copy, base):
            raise _changed_error(side, copy)
        if sync:
            sync_folder(os.path.dirname(side.memory))
            sync_folder(side.old)
    except OSError as error:
        raise storage_error(side.memory, error) from error
    return copy


def recover(side: DreamDir) -> bool:
    """Clean up after a dream that died, under the lock; return whether its result was applied.

    If it was not, the time of the last dream is restored.
    """
    claim = read_claim(side)
    is_done = False
    if claim is not None:
        step = as_object(claim.get("applying"))
        is_done = step is not None and _finish_swap(side, step)
        if step is not None and not is_done:
            keep_result(side, as_text(step.get("copy")) or "result")
        if not is_done:
            rewind(side, claim)
        end_claim(side)
    remove_folder(side.work)
    return is_done


def recover_if_idle(side: DreamDir) -> None:
    """Recover from a dead dream, if there are traces of one and no dream is running."""
    if not side.is_there() or not (os.path.lexists(side.claim) or os.path.lexists(side.work)):
        return
    if is_running(side):
        return
    try:
        held = acquire(side)
    except Conflict:
        return  # another process took the lock
    try:
        recover(side)
    finally:
        held.close()


def keep_result(side: DreamDir, name: str) -> str:
    """Move the staged copy, if there is one, to `kept` and return its path."""
    place = f"{side.kept}/{name}"
    if os.path.isdir(side.stage) and not os.path.lexists(place):
        os.rename(side.stage, place)
    return place


def copies(side: DreamDir) -> list[Copy]:
    """Return the folder's earlier states, newest first."""
    try:
        names = sorted(os.listdir(side.old), reverse=True) if side.is_there() else []
    except FileNotFoundError:
        return []
    return [found for name in names if (found := _parse_copy(side, name)) is not None]


def prune(side: DreamDir, most: int) -> None:
    """Remove all but the newest `most` old copies and kept results."""
    for folder in (side.old, side.kept):
        for name in sorted(os.listdir(folder), reverse=True)[max(1, most) :]:
            try:
                remove_folder(f"{folder}/{name}")
            except StorageError:
                pass  # it contains read-only folders: it stays, harmlessly


def undo(side: DreamDir, name: str | None = None) -> Copy:
    """Restore an earlier state; the current one becomes an old copy, so this can be undone too.

    Raises:
        NotFound: there is no such copy.
        DreamHeld: a dream is running.
    """
    recover_if_idle(side)
    found = [copy for copy in copies(side) if name is None or copy.name == name]
    if not found:
        raise NotFound(f"There is no earlier state of {side.memory}" + (f" named {name}." if name else "."))
    held = acquire(side)
    try:
        recover(side)
        claim: dict[str, object] = {"job": "undo", "prior": last_done(side), "at": time.time_ns()}
        write_claim(side, claim)
        os.mkdir(side.work, 0o700)
        restore_links(copy(found[0].path, side.stage), side.stage)
        swap_in(side, claim, fingerprint(read_tree(side.memory)), job="undo")
        end_claim(side)
    finally:
        recover(side)
        held.close()
    return found[0]


def _finish_swap(side: DreamDir, step: Mapping[str, object]) -> bool:
    """Finish or revert the interrupted swap of a dead dream; return whether its result is in place."""
    copy = as_text(step.get("copy"))
    try:
        here = os.stat(side.memory).st_ino
    except FileNotFoundError:
        if copy and os.path.isdir(f"{side.old}/{copy}"):  # crashed between two renames
            os.rename(f"{side.old}/{copy}", side.memory)
        return False
    if not copy:
        return False
    old = f"{side.old}/{copy}"
    if here == step.get("inode"):
        return _keep_old(side, copy, as_text(step.get("base")))
    if os.path.isdir(old) and os.stat(old).st_ino == step.get("inode"):  # swapped back, but not yet moved away
        os.rename(old, side.stage)
    return False


def _keep_old(side: DreamDir, copy: str, base: str) -> bool:
    """Move the replaced folder to the old copies; swap it back and return False if its fingerprint differs."""
    old = f"{side.old}/{copy}"
    if os.path.isdir(side.stage):
        os.rename(side.stage, old)
    if _has_fingerprint(old, base):
        return True
    if not files.try_swap(old, side.memory):
        os.rename(side.memory, side.stage)
        os.rename(old, side.memory)
        return False
    os.rename(old, side.stage)
    return False


def _has_fingerprint(folder: str, base: str) -> bool:
    try:
        return fingerprint(read_tree(folder)) == base
    except StorageError:
        return False  # unreadable as a tree


def _changed_error(side: DreamDir, copy: str) -> Conflict:
    place = keep_result(side, copy)
    return Conflict(
        f"The memory folder {side.memory} was changed by another process meanwhile, and is left unchanged.",
        f"The result is in {place}.",
    )


def _parse_copy(side: DreamDir, name: str) -> Copy | None:
    import calendar

    stamp, _, rest = name.partition("-")
    try:
        at = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%S"))
    except ValueError:
        return None  # not ours
    path = f"{side.old}/{name}"
    return Copy(name, at, rest.rpartition("-")[2], path) if os.path.isdir(path) and not os.path.islink(path) else None


#: Limits for the diff of one file: larger ones are slow to compute and too long to read.
_LARGEST, _MOST_LINES = 200_000, 4_000

#: Maximum characters of a whole diff.
LONGEST_DIFF = 1_000_000


class Changes(NamedTuple):
    """The files that differ."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def touched(self) -> list[str]:
        """All of them, sorted."""
        return sorted((*self.added, *self.changed, *self.removed))


def diff_trees(before: Tree, after: Tree) -> Changes:
    """Return which files differ; folders and links are ignored."""
    old = {name: entry for name, entry in before.items() if entry.kind == FILE}
    new = {name: entry for name, entry in after.items() if entry.kind == FILE}
    return Changes(
        tuple(sorted(new.keys() - old.keys())),
        tuple(sorted(name for name in old.keys() & new.keys() if old[name].content_key != new[name].content_key)),
        tuple(sorted(old.keys() - new.keys())),
    )


def check_result(before: Tree, after: Tree) -> None:
    """Refuse a result that must not replace the memory.

    Raises:
        Conflict: it contains a link or a hard-linked file, or no file is left.
    """
    for name, entry in after.items():
        if entry.kind == LINK:
            raise Conflict(f"The dream made a link, {quote_value(name)}: links lead out of the memory.")
        if entry.kind == FILE and entry.names > 1:
            raise Conflict(f"The dream made {quote_value(name)} another name of a file: who changes one changes both.")
    if diff_trees(before, after).removed and not any(entry.kind == FILE for entry in after.values()):
        raise Conflict("The dream left nothing of the memory.")


def diff(before: str, after: str, changes: Changes) -> Iterator[str]:
    """Yield the unified diff of two folders' files by line, control characters escaped, bounded."""
    room = LONGEST_DIFF
    for name in changes.touched:
        for line in _diff_file(before, after, name):
            room -= len(line) + 1
            if room < 0:
                yield "… and more: the diff is cut here."
                return
            yield line


def _diff_file(before: str, after: str, name: str) -> Iterator[str]:
    import difflib

    title = escape_control(name)
    old, new = _read_lines(os.path.join(before, name)), _read_lines(os.path.join(after, name))
    if old is None or new is None:
        yield f"--- a/{title}"
        yield f"+++ b/{title}"
        yield "… differs: it is not text, or too long to compare."
        return
    from_, to = (f"a/{title}" if old else "/dev/null"), (f"b/{title}" if new else "/dev/null")
    found = False
    for line in difflib.unified_diff(old, new, from_, to, lineterm=""):
        found = True
        yield line
    if not found:
        yield f"--- a/{title}"
        yield f"+++ b/{title}"
        yield "… differs in its mode, or in how its lines end."


def _read_lines(path: str) -> list[str] | None:
    """Return a text file's lines, escaped; [] if it is missing; None if it is not text, or too long."""
    from taskyard.core import files
    from taskyard.errors import Damaged

    try:
        data = files.read(path, most=_LARGEST)
    except Damaged:
        return None
    try:
        lines = (data or b"").decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    if lines and not lines[-1]:
        lines.pop()
    return [escape_control(line) for line in lines] if len(lines) <= _MOST_LINES else None
