"""
One agent's box on disk: a message is a file, and every step of its life is a rename.

    tmp/     being written; a box without it takes no mail
    new/     stored, waiting
    taken/   <holder>/  in the hands of a living reader
    cur/     <shard>/   read: never listed, so its size costs nothing
    bad/     what could not be read as a message

A holder is an instance id, or `until-<deadline>-…` for a reader that promises an answer within a time.
What a holder that is gone left behind returns to `new` under its name plus `.again`.
"""

from __future__ import annotations

import errno
import os
import stat

from taskyard import deadlines, message_ids
from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.instances import instance_alive
from taskyard.names import folder_name
from taskyard.plain_file import create_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

AGAIN = ".again"

#: Hex digits of an id that name its shard of `cur`: each spans about 19 hours.
_SHARD = 6

#: A file in `tmp` is written within milliseconds; after this long its writer is dead.
_ABANDONED = 36 * 3600

#: A message's file has one of these lengths, and an 8 where its id says its version: enough to tell
#: it from a stray file, as every name found in a folder is safe in a path.
_LENGTHS = (message_ids.LENGTH, message_ids.LENGTH + len(AGAIN))

_UNTIL = "until-"


class Box:
    """The box at `path`, whether it exists yet or not."""

    __slots__ = ("_half", "home", "path")

    def __init__(self, home: str, path: str) -> None:
        self.home = home
        self.path = path
        self._half = os.path.join(path, "tmp")  # where messages are written before they are stored

    @property
    def is_open(self) -> bool:
        """Whether it takes mail."""
        try:
            return stat.S_ISDIR(os.lstat(self._half).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def open(self) -> None:
        """Make it take mail; what an earlier owner of the name left unread is still there."""
        files.make_private_folder(os.path.dirname(self.path))
        files.make_private_folder(self.path)
        for part in ("new", "taken", "cur", "tmp"):  # tmp last: with it the box is open
            files.make_private_folder(f"{self.path}/{part}")

    def close(self) -> None:
        """Take no more mail; what is there stays readable."""
        while self.is_open:  # once, unless a sender writes at this very moment
            for name in listed(self._half):
                files.remove(f"{self._half}/{name}")
            try:
                os.rmdir(self._half)
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise files.storage_error(self._half, error) from error

    def check(self) -> None:
        """Refuse a box that leads elsewhere by a planted link."""
        self._check(self._half, f"{self.path}/taken", f"{self.path}/cur")

    def _check(self, *more: str) -> None:
        for path in (os.path.dirname(self.path), self.path, f"{self.path}/new", *more):
            try:
                files.check_folder(path, os.lstat(path))
            except FileNotFoundError:
                pass

    def put(self, message_id: str, data: bytes, *, sync: bool = False) -> bool:
        """Store a message, whole or not at all; False if the box takes no mail."""
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
        """Store the file at `path` as a message, opening the box if need be; False if it is gone."""
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
        """The names in `new`, in the order of sending, and complete for each sender up to its last.

        A folder that changes while it is listed may show a message and hide an earlier one. What
        was there before a listing ended, the next listing shows: so a second one decides, up to
        the newest message of each sender in the first.
        """
        first = self._names()
        if not first:
            return first
        newest: dict[str, str] = {}
        for name in sorted(first):
            newest[message_ids.sender_of(name)] = id_of(name)
        return sorted(name for name in self._names() if id_of(name) <= newest.get(message_ids.sender_of(name), ""))

    def _names(self) -> list[str]:
        return [name for name in listed(f"{self.path}/new") if len(name) in _LENGTHS and name[14] == "8"]

    def count(self) -> int:
        """How many messages wait."""
        return len(self._names())

    def read(self, name: str, holder: str | None = None) -> bytes | None:
        """The bytes of a waiting message, or of one in the hands of `holder`; None if it is gone."""
        return files.read(f"{self.path}/{_place(holder)}/{name}")

    def take(self, name: str, holder: str) -> bool:
        """Move a waiting message into the hands of `holder`; False if somebody else was faster."""
        return self._move(f"new/{name}", f"taken/{holder}", name)

    def acknowledge(self, message_id: str, holder: str) -> bool:
        """File a message as read; False if `holder` does not have it."""
        return any(
            self._move(f"taken/{holder}/{name}", f"cur/{message_id[:_SHARD]}", message_id)
            for name in (message_id, message_id + AGAIN)
        )

    def give_back(self, message_id: str, holder: str) -> bool:
        """Put a message that `holder` has back among the waiting, to be delivered again."""
        return any(
            self._move(f"taken/{holder}/{name}", "new", message_id + AGAIN) for name in (message_id, message_id + AGAIN)
        )

    def file_as_read(self, message_id: str, data: bytes) -> None:
        """Keep a copy of a message that was stored elsewhere."""
        folder = f"{self.path}/cur/{message_id[:_SHARD]}"
        files.make_private_folder(self.path)
        files.make_private_folder(folder)
        files.create(f"{folder}/{message_id}", data)

    def set_aside(self, name: str, holder: str) -> str:
        """Keep an unreadable message apart, and answer where."""
        self._move(f"taken/{holder}/{name}", "bad", name)
        return f"{self.path}/bad/{name}"

    def return_from_the_dead(self) -> int:
        """Bring back what holders that are gone had taken and not acknowledged; answers how many."""
        back = 0
        for holder in listed(f"{self.path}/taken"):
            if not self._is_gone(holder):
                continue
            for name in listed(f"{self.path}/taken/{holder}"):
                back += self.give_back(id_of(name), holder)
            try:
                os.rmdir(f"{self.path}/taken/{holder}")
            except OSError:
                pass  # somebody else did, or something foreign lies in it
        return back

    def _is_gone(self, holder: str) -> bool:
        if holder.startswith(_UNTIL):
            return deadlines.has_passed(holder.removeprefix(_UNTIL).rpartition("-")[0])
        return instance_alive(self.home, holder) is False

    def holders(self) -> list[str]:
        """Everyone who has messages in their hands."""
        return listed(f"{self.path}/taken")

    def state(self, message_id: str) -> str | None:
        """Where a message is: "stored", "delivered", "read"; None if it was never here."""
        for _ in range(2):  # it may return to `new` behind our back
            if any(os.path.lexists(f"{self.path}/new/{message_id}{end}") for end in ("", AGAIN)):
                return "stored"
            for holder in self.holders():
                if any(os.path.lexists(f"{self.path}/taken/{holder}/{message_id}{end}") for end in ("", AGAIN)):
                    return "delivered"
            if os.path.lexists(f"{self.path}/cur/{message_id[:_SHARD]}/{message_id}"):
                return "read"
        return None

    def forget(self, before_ms: int) -> int:
        """Remove what was read, or left half-written, before a moment; answers how many messages."""
        removed = 0
        last = f"{before_ms * 1000:015x}"[:_SHARD]
        for shard in listed(f"{self.path}/cur"):
            if shard < last:
                removed += _empty(f"{self.path}/cur/{shard}")
        for name in listed(self._half):
            path = f"{self._half}/{name}"
            try:
                if os.lstat(path).st_mtime * 1000 < min(before_ms, now_ms() - _ABANDONED * 1000):
                    files.remove(path)
            except FileNotFoundError:
                pass
        return removed

    def _move(self, source: str, folder: str, name: str) -> bool:
        """Rename, making the folder it goes to if need be; False if there is no such source."""
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
    """Where a team's boxes are."""
    return f"{home}/mail/{folder_name('a team', team)}"


def boxes(folder: str) -> Iterator[str]:
    """The folder names of all boxes below a team's mail folder."""
    return (name for name in listed(folder) if not name.startswith("."))


def id_of(name: str) -> str:
    """The message id in a file's name."""
    return name.removesuffix(AGAIN)


def hold_for(seconds: float) -> str:
    """A holder whose hands open by themselves after `seconds`."""
    return f"{_UNTIL}{deadlines.deadline(seconds)}-{os.urandom(4).hex()}"


def _place(holder: str | None) -> str:
    return "new" if holder is None else f"taken/{holder}"


def listed(folder: str) -> list[str]:
    """The names in a folder of a box; none if it does not exist."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.storage_error(folder, error) from error


def _empty(folder: str) -> int:
    names = listed(folder)
    for name in names:
        files.remove(f"{folder}/{name}")
    os.rmdir(folder)
    return len(names)
