"""Checks of a list's folder: what else lies in it, locks, the mark, and our own part; pure but for `.taskyard`."""

from __future__ import annotations

import os
import stat

from taskyard.disk.folder_lock import AHEAD, STALE_AFTER
from taskyard.names import LARGEST_ID, LAST_WITH_ROOM, is_id
from taskyard.plain_file import open_plain
from taskyard.tasklist.doctor.finding import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.tasklist.doctor.look import Look

_OURS = frozenset([".lock", ".highwatermark", "tasks.json", ".taskyard"])


def check_names(look: Look) -> Iterator[Finding]:
    """What lies in the folder and is neither a task nor a lock."""
    for name in look.entries:
        if name in _OURS or name.endswith(".lock") or (name.endswith(".json") and is_id(name[:-5])):
            continue
        file = os.path.join(look.folder.path, name)
        if name.endswith(".json") and name[:-5].isascii() and name[:-5].isdigit():
            why = f"No task can be called that: ids are whole numbers from 1 to {LARGEST_ID}, without leading zeros."
            yield Finding("foreign-file", file, why, "moves it aside")
        else:
            yield Finding("other-file", file, "It is no part of the list; Taskyard leaves it alone.")
    for task_id in look.seen:
        if int(task_id) > LAST_WITH_ROOM:
            why = f"Id {task_id} leaves no room for others. Taskyard counts on from lower ids; Claude Code does not."
            yield Finding("id-without-room", look.folder.task(task_id), why, f"`taskyard task rm {task_id}`", task_id)


def check_locks(look: Look) -> Iterator[Finding]:
    """Lock folders of the dead, and what stands where a lock folder must be possible."""
    if look.busy is not None:
        why = f"It is held by {look.busy.holder}, for more than {look.busy.waited:.0f} s."
        fix = "see what that process does; end it if it is stuck, and its lock is free at once"
        yield Finding("lock-held", look.folder.lock, why, fix)
    for name, found in look.entries.items():
        if not name.endswith(".lock") or name == ".lock":
            continue
        file = os.path.join(look.folder.path, name)
        if not stat.S_ISDIR(found.st_mode):
            yield Finding(
                "foreign-lock", file, "It is no folder, so nobody can take or free this lock.", "moves it aside"
            )
        elif _listed(file):
            yield Finding("foreign-lock", file, "It is not empty, so nobody can free this lock.", "moves it aside")
        elif reason := stale(look, found):
            yield Finding("stale-lock", file, reason, "frees it")
    target = look.entries.get(".lock")
    if target is not None and not stat.S_ISREG(target.st_mode):
        why = "It is no plain file; the list's lock is taken beside it."
        yield Finding("foreign-lock", look.folder.npm_target, why, "moves it aside and makes the empty file again")


def stale(look: Look, found: os.stat_result) -> str | None:
    """Why a lock folder is nobody's any more; None if somebody may hold it."""
    age = look.at - found.st_mtime
    if found.st_mode & stat.S_ISVTX and look.is_quiet:
        return "A Taskyard that died left it."
    if age < -AHEAD:
        return f"Its time is {-age:.0f} s ahead of the clock, so it would never count as abandoned."
    return f"It was last touched {age:.0f} s ago; the living touch theirs." if age > STALE_AFTER else None


def check_mark(look: Look) -> Iterator[Finding]:
    """The mark, against every id that is known to have been given out."""
    file, found = look.folder.mark, look.entries.get(".highwatermark")
    if found is not None and not stat.S_ISREG(found.st_mode):
        yield Finding("impossible-mark", file, "It is no plain file.", "moves it aside and writes the highest known id")
        return
    text = _start_of(file) if found is not None else b"0"
    highest = highest_known(look)
    if not text.strip().isdigit():
        why = f"It says {text[:20].decode('ascii', 'replace')!r}, which counts as 0."
        yield Finding("bad-mark", file, why, f"writes {highest}")
    elif len(text.strip()) > 9 or int(text) > LAST_WITH_ROOM:
        why = f"It says {text[:20].decode('ascii')}, which leaves no room for new ids. Taskyard ignores it."
        yield Finding("impossible-mark", file, why, f"writes {highest}, the highest id that is known")
    elif max(int(text), highest_on_disk(look)) < highest:
        why = f"It says {int(text)}, but id {highest} was given out before: another program might give it again."
        yield Finding("low-mark", file, why, f"writes {highest}")


def highest_on_disk(look: Look) -> int:
    """The highest id there is a file for."""
    return max((number for number in map(int, look.seen) if number <= LAST_WITH_ROOM), default=0)


def highest_known(look: Look) -> int:
    """The highest id that anything remembers."""
    remembered = [number for number in map(int, (*look.rows, *look.log.last)) if number <= LAST_WITH_ROOM]
    return max(highest_on_disk(look), look.older_highest, *remembered)


def check_drafts(look: Look) -> Iterator[Finding]:
    """Half-written files of dead writers, in our part of the folder."""
    for folder in (look.folder.tmp, look.folder.leases):
        for name in _listed(folder):
            file = os.path.join(folder, name)
            if folder == look.folder.leases and not name.endswith(".tmp"):
                continue
            if look.is_quiet or look.at - _mtime(file) > STALE_AFTER:
                yield Finding("leftover-draft", file, "Whoever wrote it died; nobody reads it.", "moves it aside")


def check_older(look: Look) -> Iterator[Finding]:
    """The consolidated file of an older layout, which is read and never written."""
    file = look.folder.consolidated
    if look.older_damage is not None:
        yield Finding(
            "damaged-older-list", file, _sentence(look.older_damage), "it is never written: mend it, or remove it"
        )
    for task_id, found in look.older_broken.items():
        if task_id not in look.seen:
            fix = f"it is never written: mend the entry; until then #{task_id} counts as open"
            yield Finding("damaged-older-list", file, _sentence(found.why), fix, task_id)


def _sentence(why: str) -> str:
    return f"{why[:1].upper()}{why[1:]}."


def check_place(look: Look) -> Iterator[Finding]:
    """Where the list lies."""
    if look.is_network:
        why = "Kernel locks may not reach other machines there: lock folders are used alone."
        yield Finding("network-fs", look.folder.path, why)


def _start_of(file: str) -> bytes:
    try:
        fd = open_plain(file)
    except OSError:
        return b""
    try:
        return os.read(fd, 4096)
    finally:
        os.close(fd)


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _mtime(file: str) -> float:
    try:
        return os.lstat(file).st_mtime
    except OSError:
        return float("inf")
