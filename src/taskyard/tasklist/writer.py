"""
Changing task files so that a crash anywhere leaves the old state or the new one, and a trace.

Flow of one change, under the locks of every task in it
    1. drafts      the new contents, in `.taskyard/tmp/`
    2. intent      each task's ledger row says: a writer began when the log ended here
    3. log         one entry with every task as it will be: the decision
    4. leases      a new holder's record; before the task, so that no owner is ever without one
    5. each task   its draft takes its place, dependencies' truth (`blockedBy`) first; then a former
                   holder's record goes; then the ledger row says how the file looks now, and that
                   the intent is over

Whoever finds an intent left behind reads the log from there (`settle.py`): with the first file
in place the rest is completed, otherwise the change is closed as aborted.
"""

from __future__ import annotations

import json
import os
from json.encoder import encode_basestring

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.disk.exchange import place, swap
from taskyard.disk.journal import Journal
from taskyard.errors import StorageError
from taskyard.plain_file import open_plain
from taskyard.tasklist.ledger import Ledger, Row, row_for
from taskyard.tasklist.mark import Mark
from taskyard.tasklist.model import Act, Lease, Task
from taskyard.tasklist.reader import Seen
from taskyard.tasklist.starting_over import Interfered
from taskyard.tasklist.task_file import encoded
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.tasklist.hold import Hold
    from taskyard.tasklist.leases import LeaseFiles
    from taskyard.tasklist.list_folder import ListFolder

_to_json = json.JSONEncoder().encode
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class Write(NamedTuple):
    """One task of a change: as it was read, and as it shall be (None = gone)."""

    id: str
    before: Seen | None
    after: Task | None
    lease: tuple[Lease | None, int] | None = None  #: its lease record and losses from now on; None = as it is
    is_new: bool = False  #: its id was given out just now: nothing is known of it


class Writer:
    """Carries out changes in one list's folder."""

    def __init__(self, folder: ListFolder, leases: LeaseFiles, *, sync: bool):
        self.folder = folder
        self.ledger = Ledger(folder.ledger)
        self.mark = Mark(folder.mark)
        self.journal = Journal(folder.log, sync=sync)
        self._leases = leases
        self._sync = sync

    def commit(self, hold: Hold, act: Act, writes: Sequence[Write]) -> None:
        """Make the change, whole.

        Raises:
            Interfered: another program got in between; the intents stay, for `settle` to close.
            LockLost: we no longer hold what we relied on; nothing was written.
            StorageError: the disk refused; says whether anything was changed.
        """
        rows = {write.id: Row() if write.is_new else self.ledger.row(write.id) for write in writes}
        try:
            drafts = self._drafts(writes)
            hold.check()
            start = self.journal.known_end()
            for write in writes:
                self.ledger.intend(write.id, rows[write.id], start)
            entry = self._append(act, {write.id: drafts.get(write.id) for write in writes}, rows)
        except StorageError as error:
            self._withdraw(rows)
            raise error.writing(list(rows), "Nothing was changed.") from error
        except BaseException:
            self._withdraw(rows)
            raise
        try:
            for write in writes:
                if write.lease is not None and write.lease[0] is not None:
                    self._leases.write(write.id, *write.lease)
            for write in writes:
                self.apply(write, entry, drafts.get(write.id))
        except StorageError as error:
            raise error.writing(list(rows), "The next command completes the change or undoes it, whole.") from error

    def _withdraw(self, rows: Mapping[str, Row]) -> None:
        """Leave nothing of a change that was not decided."""
        for task_id, row in rows.items():
            _discard(self.folder.draft(task_id))
            try:
                if self.ledger.row(task_id) != row:
                    self.ledger.put(task_id, row)
            except StorageError:
                pass  # a full disk; the next writer finds an intent without a decision

    def log(self, act: Act, tasks: Mapping[str, bytes | None], *, about: Sequence[str] = (), **more: object) -> int:
        """Add an entry to the list's log; its id. `about` names tasks it concerns without saying how they are."""
        rows = {task_id: self.ledger.row(task_id) for task_id in (*tasks, *about)}
        return self._append(act, tasks, rows, **more)

    def _append(self, act: Act, tasks: Mapping[str, bytes | None], rows: Mapping[str, Row], **more: object) -> int:
        prev = ", ".join([f'"{name}": {"null" if row.entry is None else row.entry}' for name, row in rows.items()])
        by = "null" if act.by is None else encode_basestring(act.by)
        rest = "".join([f', "{name}": {_to_json(value)}' for name, value in more.items()]) if more else ""
        if act.note:
            rest += f', "note": {encode_basestring(act.note)}'
        facts = (
            f'{{"at": {now_ms()}, "by": {by}, "cause": "{act.cause}", "via": {encode_basestring(act.via)}{rest}'
            f', "prev": {{{prev}}}, "tasks": {{'
        )
        # Every newline in a task's bytes is layout: those inside strings are escaped.
        states = b", ".join(
            [
                b'"%s": %s' % (task_id.encode(), b"null" if data is None else data.replace(b"\n", b" "))
                for task_id, data in tasks.items()
            ]
        )
        return self.journal.append(b"%s%s}}" % (facts.encode("utf-8", "backslashreplace"), states))

    def _drafts(self, writes: Sequence[Write]) -> dict[str, bytes]:
        drafts: dict[str, bytes] = {}
        for write in writes:
            if write.after is not None:
                data = drafts[write.id] = encoded(write.after, write.before.raw if write.before else None)
                self.draft(write.id, data)
        return drafts

    def draft(self, task_id: str, data: bytes) -> None:
        """Write a task's next content beside the list; nobody sees it there."""
        path = self.folder.draft(task_id)
        try:
            fd = open_plain(path, _DRAFT, 0o644)
            try:
                files.write_all(fd, data)
                if self._sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            _discard(path)
            raise files.storage_error(path, error) from error

    def apply(self, write: Write, entry: int, draft: bytes | None) -> None:
        """Put one task's draft in its place, or take the task away; then close the intent.

        A former holder's lease goes in between: after the intent is over nobody would look for it.
        """
        if draft is None:
            self._remove(write)
        else:
            self._put(write)
        if write.lease is not None and write.lease[0] is None:
            self._leases.write(write.id, *write.lease)
        self.ledger.put(write.id, Row(entry) if draft is None else row_for(entry, draft))

    def _put(self, write: Write) -> None:
        path, temporary = self.folder.task(write.id), self.folder.draft(write.id)
        try:
            if write.before is None:
                place(temporary, path)
            elif swap(temporary, path):
                self._look_at_swapped(write, temporary)
        except (FileExistsError, FileNotFoundError):
            raise Interfered(write.id) from None
        except OSError as error:
            raise files.storage_error(path, error) from error
        if self._sync:
            files.sync_folder(self.folder.path)

    def close(self) -> None:
        """Let go of open files."""
        self.ledger.close()
        self.mark.close()
        self.journal.close()

    def _look_at_swapped(self, write: Write, temporary: str) -> None:
        """Make sure that what we replaced is what we had read; if not, put it back and give way."""
        if not _is_as_read(write, temporary):
            swap(temporary, self.folder.task(write.id))
            raise Interfered(write.id)
        _discard(temporary)  # the change is made: what cannot be removed there is a leftover, not a failure

    def _remove(self, write: Write) -> None:
        path, temporary = self.folder.task(write.id), self.folder.draft(write.id)
        try:
            os.rename(path, temporary)
        except FileNotFoundError:
            return  # another program removed it first: what we wanted
        except OSError as error:
            raise files.storage_error(path, error) from error
        try:
            if not _is_as_read(write, temporary):
                place(temporary, path)
                raise Interfered(write.id)
        except OSError as error:
            raise files.storage_error(path, error) from error
        _discard(temporary)


def _is_as_read(write: Write, path: str) -> bool:
    """Whether the file now at `path` is the one the change was decided on."""
    if write.before is None:
        return False
    was, found = write.before.stat, os.lstat(path)
    if (found.st_ino, found.st_size, found.st_mtime_ns) == (was.st_ino, was.st_size, was.st_mtime_ns):
        return True
    return files.read(path) == write.before.data


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
