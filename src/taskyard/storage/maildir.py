"""One agent's mailbox on disk: a message is a file, and every change of its state is a rename.

    tmp/     being written; a mailbox without it accepts no mail
    new/     stored, waiting
    taken/   <holder>/  taken by a live reader
    cur/     <shard>/   read: never listed, so its size costs nothing
    bad/     unreadable messages

A holder is an instance id, or `until-<deadline>-…` for a reader that promises to acknowledge within a time.
Messages of a holder that is gone return to `new` under their name plus `.again`.
"""

from __future__ import annotations

import errno
import os
import stat

from taskyard.core import files, system
from taskyard.core.files import create_plain
from taskyard.core.system import now_ms
from taskyard.core.values import folder_name
from taskyard.storage import message_ids
from taskyard.storage.process_registry import is_instance_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

REDELIVERED = ".again"

#: Hex digits of an id that name its shard of `cur`: each spans about 19 hours.
_SHARD_DIGITS = 6

#: Seconds. A file in `tmp` is written within milliseconds; after this long its writer has crashed.
_TMP_MAX_AGE = 36 * 3600

#: A message's file name has one of these lengths, and an 8 as the version digit of its id: enough to
#: distinguish it from a stray file, as every name found in a folder is safe in a path.
_LENGTHS = (message_ids.LENGTH, message_ids.LENGTH + len(REDELIVERED))

_UNTIL = "until-"


class Maildir:
    """The mailbox at `path`, whether it exists yet or not."""

    __slots__ = ("_half", "home", "path")

    def __init__(self, home: str, path: str) -> None:
        self.home = home
        self.path = path
        self._half = os.path.join(path, "tmp")  # where messages are written before they are stored

    @property
    def is_open(self) -> bool:
        """Whether it accepts mail."""
        try:
            return stat.S_ISDIR(os.lstat(self._half).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def open(self) -> None:
        """Make it accept mail; unread messages of an earlier owner of the name are still there."""
        files.make_private_folder(os.path.dirname(self.path))
        files.make_private_folder(self.path)
        for part in ("new", "taken", "cur", "tmp"):  # tmp last: it makes the mailbox open
            files.make_private_folder(f"{self.path}/{part}")

    def close(self) -> None:
        """Accept no more mail; existing messages stay readable."""
        while self.is_open:  # once, unless a sender writes at this very moment
            for name in list_dir(self._half):
                files.remove(f"{self._half}/{name}")
            try:
                os.rmdir(self._half)
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise files.storage_error(self._half, error) from error

    def check(self) -> None:
        """Refuse a mailbox that is redirected by a planted link."""
        self._check(self._half, f"{self.path}/taken", f"{self.path}/cur")

    def _check(self, *more: str) -> None:
        for path in (os.path.dirname(self.path), self.path, f"{self.path}/new", *more):
            try:
                files.check_folder(path, os.lstat(path))
            except FileNotFoundError:
                pass

    def put(self, message_id: str, data: bytes, *, sync: bool = False) -> bool:
        """Store a message atomically; return False if the mailbox accepts no mail."""
        temporary = f"{self._half}/{message_id}"
        try:
            fd = create_plain(temporary)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise files.storage_error(temporary, error) from error
        try:
            try:
                files.write_all(fd, data)
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, f"{self.path}/new/{message_id}")
            if sync:
                files.sync_folder(f"{self.path}/new")
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not os.path.lexists(temporary):
                return False  # it was closed while we wrote
            files.remove(temporary)
            raise files.storage_error(temporary, error) from error
        return True

    def adopt(self, path: str, message_id: str) -> bool:
        """Move the file at `path` in as a message, opening the mailbox if necessary; return False if it is gone."""
        for first in (True, False):
            self._check()
            try:
                os.rename(path, f"{self.path}/new/{message_id}")
            except FileNotFoundError:
                if not first or not os.path.lexists(path):
                    return False
                self.open()
            except OSError as error:
                raise files.storage_error(path, error) from error
            else:
                return True
        return False

    def waiting(self) -> list[str]:
        """Return the names in `new`, in the order of sending, and complete for each sender up to its last.

        A folder that changes while it is listed may show a message and hide an earlier one. What existed before a
        listing ended, the next listing shows: so a second one decides, up to the newest message of each sender in
        the first.
        """
        first = self._names()
        if not first:
            return first
        newest: dict[str, str] = {}
        for name in sorted(first):
            newest[message_ids.sender_of(name)] = message_id_of(name)
        return sorted(
            name for name in self._names() if message_id_of(name) <= newest.get(message_ids.sender_of(name), "")
        )

    def _names(self) -> list[str]:
        return [name for name in list_dir(f"{self.path}/new") if len(name) in _LENGTHS and name[14] == "8"]

    def count(self) -> int:
        """Return how many messages wait."""
        return len(self._names())

    def read(self, name: str, holder: str | None = None) -> bytes | None:
        """Return the bytes of a waiting message, or of one taken by `holder`; None if it is gone."""
        return files.read(f"{self.path}/{_message_dir(holder)}/{name}")

    def take(self, name: str, holder: str) -> bool:
        """Move a waiting message to `holder`; return False if another reader was faster."""
        return self._move(f"new/{name}", f"taken/{holder}", name)

    def acknowledge(self, message_id: str, holder: str) -> bool:
        """File a message as read; return False if `holder` does not have it."""
        return any(
            self._move(f"taken/{holder}/{name}", f"cur/{message_id[:_SHARD_DIGITS]}", message_id)
            for name in (message_id, message_id + REDELIVERED)
        )

    def give_back(self, message_id: str, holder: str) -> bool:
        """Return a message of `holder` to `new`, to be delivered again."""
        return any(
            self._move(f"taken/{holder}/{name}", "new", message_id + REDELIVERED)
            for name in (message_id, message_id + REDELIVERED)
        )

    def store_read(self, message_id: str, data: bytes) -> None:
        """Keep a copy of a message that was stored elsewhere."""
        folder = f"{self.path}/cur/{message_id[:_SHARD_DIGITS]}"
        files.make_private_folder(self.path)
        files.make_private_folder(folder)
        files.create(f"{folder}/{message_id}", data)

    def quarantine(self, name: str, holder: str) -> str:
        """Move an unreadable message to `bad`, and return its path."""
        self._move(f"taken/{holder}/{name}", "bad", name)
        return f"{self.path}/bad/{name}"

    def requeue_abandoned(self) -> int:
        """Return unacknowledged messages of dead or expired holders to `new`; return how many."""
        back = 0
        for holder in list_dir(f"{self.path}/taken"):
            if not self._is_gone(holder):
                continue
            for name in list_dir(f"{self.path}/taken/{holder}"):
                back += self.give_back(message_id_of(name), holder)
            try:
                os.rmdir(f"{self.path}/taken/{holder}")
            except OSError:
                pass  # another process did, or it contains a foreign file
        return back

    def _is_gone(self, holder: str) -> bool:
        if holder.startswith(_UNTIL):
            return system.deadline_passed(holder.removeprefix(_UNTIL).rpartition("-")[0])
        return is_instance_alive(self.home, holder) is False

    def holders(self) -> list[str]:
        """Return all holders of taken messages."""
        return list_dir(f"{self.path}/taken")

    def state(self, message_id: str) -> str | None:
        """Return the state of a message: "stored", "delivered", "read"; None if it was never here."""
        for _ in range(2):  # it may return to `new` between two checks
            if any(os.path.lexists(f"{self.path}/new/{message_id}{end}") for end in ("", REDELIVERED)):
                return "stored"
            for holder in self.holders():
                if any(os.path.lexists(f"{self.path}/taken/{holder}/{message_id}{end}") for end in ("", REDELIVERED)):
                    return "delivered"
            if os.path.lexists(f"{self.path}/cur/{message_id[:_SHARD_DIGITS]}/{message_id}"):
                return "read"
        return None

    def forget(self, before_ms: int) -> int:
        """Remove messages read, and drafts left, before a time; return the number of messages."""
        removed = 0
        last = f"{before_ms * 1000:015x}"[:_SHARD_DIGITS]
        for shard in list_dir(f"{self.path}/cur"):
            if shard < last:
                removed += _empty_dir(f"{self.path}/cur/{shard}")
        for name in list_dir(self._half):
            path = f"{self._half}/{name}"
            try:
                if os.lstat(path).st_mtime * 1000 < min(before_ms, now_ms() - _TMP_MAX_AGE * 1000):
                    files.remove(path)
            except FileNotFoundError:
                pass
        return removed

    def _move(self, source: str, folder: str, name: str) -> bool:
        """Rename, creating the target folder if necessary; return False if there is no such source."""
        for first in (True, False):
            try:
                os.rename(f"{self.path}/{source}", f"{self.path}/{folder}/{name}")
            except FileNotFoundError:
                if first and os.path.lexists(f"{self.path}/{source}"):
                    files.make_private_folder(f"{self.path}/{folder}")
                    continue
                return False
            except OSError as error:
                raise files.storage_error(f"{self.path}/{source}", error) from error
            return True
        return False


def mail_folder(home: str, team: str) -> str:
    """Return the folder of a team's mailboxes."""
    return f"{home}/mail/{folder_name('a team', team)}"


def maildir_names(folder: str) -> Iterator[str]:
    """Yield the folder names of all mailboxes in a team's mail folder."""
    return (name for name in list_dir(folder) if not name.startswith("."))


def message_id_of(name: str) -> str:
    """Return the message id in a file's name."""
    return name.removesuffix(REDELIVERED)


def timed_holder(seconds: float) -> str:
    """Return a holder that expires after `seconds`."""
    return f"{_UNTIL}{system.encode_deadline(seconds)}-{os.urandom(4).hex()}"


def _message_dir(holder: str | None) -> str:
    return "new" if holder is None else f"taken/{holder}"


def list_dir(folder: str) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(folder, error) from error


def _empty_dir(folder: str) -> int:
    names = list_dir(folder)
    for name in names:
        files.remove(f"{folder}/{name}")
    os.rmdir(folder)
    return len(names)
