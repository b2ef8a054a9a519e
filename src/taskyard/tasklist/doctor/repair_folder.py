"""Repairs around the tasks: locks, the mark, strange names, permissions; each looks again under the list's lock."""

from __future__ import annotations

import errno
import os
import stat
import time

from taskyard.disk import files as disk
from taskyard.disk.folder_lock import STALE_AFTER, free_abandoned
from taskyard.errors import Damaged, StorageError
from taskyard.names import LAST_WITH_ROOM, is_id
from taskyard.tasklist.doctor.finding import Finding, Repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.doctor.keep import Keep
    from taskyard.tasklist.list_files import ListFiles


class FolderRepairs:
    """Repairs in a list's folder that touch no task."""

    def __init__(self, files: ListFiles, keep: Keep) -> None:
        self._files = files
        self._keep = keep

    def stale_lock(self, finding: Finding) -> Repair | None:
        """Free a lock of the dead, under the kernel lock that guards the same target.

        One whose time is ahead of the clock is watched for as long as a living holder may leave it untouched.
        """
        if not free_abandoned(finding.file):
            return None  # its holder lives
        name = os.path.basename(finding.file).removesuffix(".lock")
        task_id = name.removesuffix(".json")
        with self._files.hold([task_id] if is_id(task_id) else (), whole=True):
            try:
                found = os.lstat(finding.file)
                if not found.st_mode & stat.S_ISVTX and time.time() - found.st_mtime <= STALE_AFTER:
                    return None  # somebody took it over meanwhile
                os.rmdir(finding.file)
            except FileNotFoundError:
                pass  # taking the lock ourselves has freed it
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.ENOTDIR):
                    raise disk.storage_error(finding.file, error) from error
                return None
        return Repair(finding.name, finding.file, "freed it")

    def foreign_lock(self, finding: Finding) -> Repair | None:
        """Move away what keeps everybody from taking a lock. Nobody holds it: it cannot be held."""
        if not os.path.lexists(finding.file):
            return None
        kept = self._keep.move(finding.file)
        if finding.file == self._files.folder.npm_target:
            disk.create(finding.file, b"", mode=0o644)
        return Repair(finding.name, finding.file, "moved it aside", kept)

    def foreign_file(self, finding: Finding) -> Repair | None:
        """Move away a file that would be a task if its name could be an id."""
        with self._files.hold(whole=True):
            if not os.path.lexists(finding.file):
                return None
            return Repair(finding.name, finding.file, "moved it aside", self._keep.move(finding.file))

    def mark(self, finding: Finding) -> Repair | None:
        """Write the highest id that anything remembers."""
        folder = self._files.folder
        with self._files.hold(whole=True):
            known = [self._files.writer.ledger.highest(), self._files.tasks.highest_consolidated()]
            was = self._mark_now()
            highest = max(0, *known, *(number for number in folder.ids_on_disk() if number <= LAST_WITH_ROOM))
            if was is not None and was <= LAST_WITH_ROOM:
                highest = max(highest, was)
            kept = None
            if os.path.lexists(folder.mark):
                plain = stat.S_ISREG(os.lstat(folder.mark).st_mode)
                kept = self._keep.copy(folder.mark) if plain else self._keep.move(folder.mark)
            disk.replace(folder.mark, b"%d" % highest, mode=0o644)
        return Repair(finding.name, finding.file, f"wrote {highest}", kept)

    def _mark_now(self) -> int | None:
        try:
            return self._files.writer.mark.read()
        except (Damaged, StorageError):
            return None

    def draft(self, finding: Finding) -> Repair | None:
        """Move away a half-written file."""
        with self._files.hold(everything=True):
            if not os.path.lexists(finding.file):
                return None
            return Repair(finding.name, finding.file, "moved it aside", self._keep.move(finding.file))


def close_to_others(finding: Finding) -> Repair | None:
    """Take away what others may do with a file or folder of ours; a link is not followed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(finding.file, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk.storage_error(finding.file, error) from error
    try:
        mode = 0o700 if stat.S_ISDIR(os.fstat(fd).st_mode) else 0o600
        os.fchmod(fd, mode)
    finally:
        os.close(fd)
    return Repair(finding.name, finding.file, f"set it to {mode:04o}")
