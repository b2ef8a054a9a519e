"""
A result put in the memory folder's place, whole or not at all.

    1  the folder is as it was when it was copied, else nothing is done
    2  the claim says what is about to change places with what
    3  both folders change places, in one step of the kernel
    4  what came out goes to the old copies, and is as it was in 1, else both change back

Whoever finds a claim without a living dream goes on from where it stopped (`settle`): before 3 nothing happened,
after it the rest is done. Where the file system cannot swap folders, 3 is two renames, the folder's to the old copies
first; a death between them is put right by the next look.
"""

from __future__ import annotations

import os
import stat
import time

from taskyard.disk import exchange
from taskyard.disk.files import storage_error, sync_folder
from taskyard.dreaming import lock, trees
from taskyard.errors import Conflict, NotFound, StorageError
from taskyard.runtime.sweeping import remove_folder
from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.dreaming.side import Side


class Copy(NamedTuple):
    """The memory folder as it was once."""

    name: str
    at: int  #: epoch seconds: until when it was so
    job: str  #: the dream that put another in its place
    path: str


def put_in_place(side: Side, claim: Mapping[str, object], base: str, *, job: str, sync: bool = False) -> str:
    """Have the staged copy and the memory folder change places; the old copy's name. Under the lock.

    Args:
        side: Where all of it is.
        claim: As it stands on disk.
        base: The fingerprint of the folder that the staged copy was made from.
        job: Who does it.
        sync: See that it survives a power cut, as the setting `durability` may ask.

    Raises:
        Conflict: the folder is another by now; it stays as it is, and the result is in `kept`.
    """
    copy = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{time.time_ns() % 10**9:09d}-{job}"
    try:
        if not os.path.isdir(side.memory):
            os.mkdir(side.memory, 0o700)
        os.chmod(side.stage, stat.S_IMODE(os.stat(side.memory).st_mode) & 0o777 | 0o700)
        if not _is(side.memory, base):
            raise _changed(side, copy)
        step = {"copy": copy, "inode": os.stat(side.stage).st_ino, "base": base}
        lock.write_claim(side, {**claim, "applying": step})
        if sync:
            os.sync()  # who wrote the copy is gone, and with it the descriptors to sync
        if not exchange.try_swap(side.stage, side.memory):
            os.rename(side.memory, f"{side.old}/{copy}")
            os.rename(side.stage, side.memory)
        if not _old_is_kept(side, copy, base):
            raise _changed(side, copy)
        if sync:
            sync_folder(os.path.dirname(side.memory))
            sync_folder(side.old)
    except OSError as error:
        raise storage_error(side.memory, error) from error
    return copy


def settle(side: Side) -> bool:
    """Clean up after a dream that died, under the lock; whether its result was put in place.

    If it was not, the time of the last dream is put back to what it was before that one.
    """
    claim = lock.read_claim(side)
    is_done = False
    if claim is not None:
        step = as_object(claim.get("applying"))
        is_done = step is not None and _went_on(side, step)
        if step is not None and not is_done:
            keep(side, as_text(step.get("copy")) or "result")
        if not is_done:
            lock.rewind(side, claim)
        lock.end_claim(side)
    remove_folder(side.work)
    return is_done


def look(side: Side) -> None:
    """Have a dead dream's traces put right, if there are any and nobody is at work."""
    if not side.is_there() or not (os.path.lexists(side.claim) or os.path.lexists(side.work)):
        return
    if lock.is_running(side):
        return
    try:
        held = lock.hold(side)
    except Conflict:
        return  # another was quicker
    try:
        settle(side)
    finally:
        held.close()


def keep(side: Side, name: str) -> str:
    """Put the staged copy, if it is there, where it stays; the path."""
    place = f"{side.kept}/{name}"
    if os.path.isdir(side.stage) and not os.path.lexists(place):
        os.rename(side.stage, place)
    return place


def copies(side: Side) -> list[Copy]:
    """The folder's earlier states, the newest first."""
    try:
        names = sorted(os.listdir(side.old), reverse=True) if side.is_there() else []
    except FileNotFoundError:
        return []
    return [found for name in names if (found := _copy(side, name)) is not None]


def prune(side: Side, most: int) -> None:
    """Let go of all but the newest copies, and results that were kept."""
    for folder in (side.old, side.kept):
        for name in sorted(os.listdir(folder), reverse=True)[max(1, most) :]:
            try:
                remove_folder(f"{folder}/{name}")
            except StorageError:
                pass  # read-only folders in it: it stays, and harms nobody


def undo(side: Side, name: str | None = None) -> Copy:
    """Put an earlier state back; what is there now becomes an old copy, so this too can be undone.

    Raises:
        NotFound: there is no such copy.
        DreamHeld: a dream is at work.
    """
    look(side)
    found = [copy for copy in copies(side) if name is None or copy.name == name]
    if not found:
        raise NotFound(f"There is no earlier state of {side.memory}" + (f" named {name}." if name else "."))
    held = lock.hold(side)
    try:
        settle(side)
        claim: dict[str, object] = {"job": "undo", "prior": lock.last_done(side), "at": time.time_ns()}
        lock.write_claim(side, claim)
        os.mkdir(side.work, 0o700)
        trees.put_links(trees.copy(found[0].path, side.stage), side.stage)
        put_in_place(side, claim, trees.fingerprint(trees.read(side.memory)), job="undo")
        lock.end_claim(side)
    finally:
        settle(side)
        held.close()
    return found[0]


def _went_on(side: Side, step: Mapping[str, object]) -> bool:
    """What a dead dream was about to put in place, put there or not: whether it is."""
    copy = as_text(step.get("copy"))
    try:
        here = os.stat(side.memory).st_ino
    except FileNotFoundError:
        if copy and os.path.isdir(f"{side.old}/{copy}"):  # between two renames
            os.rename(f"{side.old}/{copy}", side.memory)
        return False
    if not copy:
        return False
    old = f"{side.old}/{copy}"
    if here == step.get("inode"):
        return _old_is_kept(side, copy, as_text(step.get("base")))
    if os.path.isdir(old) and os.stat(old).st_ino == step.get("inode"):  # changed back, and not yet moved away
        os.rename(old, side.stage)
    return False


def _old_is_kept(side: Side, copy: str, base: str) -> bool:
    """See that what came out is among the old copies; False, and it is back, if it is not what was looked at."""
    old = f"{side.old}/{copy}"
    if os.path.isdir(side.stage):
        os.rename(side.stage, old)
    if _is(old, base):
        return True
    if not exchange.try_swap(old, side.memory):
        os.rename(side.memory, side.stage)
        os.rename(old, side.memory)
        return False
    os.rename(old, side.stage)
    return False


def _is(folder: str, base: str) -> bool:
    try:
        return trees.fingerprint(trees.read(folder)) == base
    except StorageError:
        return False  # it cannot even be read as one


def _changed(side: Side, copy: str) -> Conflict:
    place = keep(side, copy)
    return Conflict(
        f"The memory folder {side.memory} was changed by somebody else meanwhile, and is left as it is.",
        f"The result is in {place}.",
    )


def _copy(side: Side, name: str) -> Copy | None:
    import calendar

    stamp, _, rest = name.partition("-")
    try:
        at = calendar.timegm(time.strptime(stamp, "%Y%m%dT%H%M%S"))
    except ValueError:
        return None  # not ours
    path = f"{side.old}/{name}"
    return Copy(name, at, rest.rpartition("-")[2], path) if os.path.isdir(path) and not os.path.islink(path) else None
