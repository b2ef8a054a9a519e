"""
How a job comes into the world: built under a hidden name, locked by its keeper, then renamed.

Nobody ever sees a job without a keeper. A keeper that dies on the way leaves a hidden folder and a name among the
living that leads nowhere; both mean nothing.
"""

from __future__ import annotations

import fcntl
import json
import os

from taskyard.disk import files
from taskyard.errors import StorageError
from taskyard.maildir import Box
from taskyard.plain_file import create_plain, open_pipe
from taskyard.runtime import telling
from taskyard.runtime.folder import TRANSCRIPT, JobFolder, is_there, living_folder, outbox
from taskyard.runtime.keeper import kernel
from taskyard.runtime.recipients import recipient_of
from taskyard.runtime.seal import ensure_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


#: Bytes for the end, the notice, a first outbox with its folders and the key, a block each, and some to spare.
_LAST_WORDS = 65536


#: How many answers stay in a record: whoever asked may be slow to read, and many may ask.
_ANSWERS = 100


class Born:
    """A job's folder in the hands of its keeper: what is open of it, and its record."""

    def __init__(
        self,
        folder: JobFolder,
        record: dict[str, object],
        *,
        parent: str | None = None,
        arguments: Mapping[str, object] | None = None,
        event_segments: int | None = None,
        transcript: bool = False,
    ) -> None:
        """Build it, let it be seen, and tell of it.

        Args:
            folder: Where.
            record: What `job.json` says from the start.
            parent: The job it is started inside.
            arguments: What a handler is asked for.
            event_segments: How many segments of the stream of events are kept; None: all.
            transcript: Its output is a link to a transcript.
        """
        self.folder = folder
        self.printed = folder.output  #: the file itself that is written to
        self.record = record
        self._answers: dict[str, object] = {}
        try:
            self._build(arguments, transcript=transcript)
        except OSError as error:
            self._clear_away()
            raise files.storage_error(folder.half_made, error) from error
        except StorageError:
            self._clear_away()
            raise
        if parent is not None:
            self._tell_parent(parent)
        self._prepare_outbox()
        # Where in the stream it began is written with what the record says next.
        self.record[telling.POSITION] = telling.started(folder, record, keep=event_segments)

    def _build(self, arguments: Mapping[str, object] | None, *, transcript: bool) -> None:
        folder, half = self.folder, self.folder.half_made
        try:
            for place in (f"{folder.home}/jobs", living_folder(folder.home)):
                files.check_private_folder(place)
        except FileNotFoundError:
            files.make_private_folder(living_folder(folder.home))
        # A POSIX lock: no child inherits it, and it tells its holder's number. It would be lost if we closed
        # any descriptor of this file, so nobody else in this process ever opens it. Opened by its name among the
        # living: whoever follows that folder hears of our death, as the kernel closes the file then.
        self._lock = create_plain(folder.living, flags=os.O_RDWR)
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._keep_room()
        os.mkdir(half, 0o700)
        os.link(folder.living, f"{half}/keeper.lock")
        os.mkfifo(f"{half}/control", 0o600)
        # For both ways, so that it never ends: writers come and go.
        self.control = open_pipe(f"{half}/control", os.O_RDWR)
        self.output = self._make_output(half, transcript=transcript)
        if arguments is not None:
            files.create(f"{half}/arguments.json", _encoded({"type": self.record["type"], "arguments": arguments}))
        for reserved in (folder.reserved_end, folder.reserved_notice):
            os.close(create_plain(f"{half}/{os.path.basename(reserved)}"))
        files.create(f"{half}/job.json", _encoded(self.record))
        self.descriptor = os.open(half, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.rename(half, folder.path)

    def _prepare_outbox(self) -> None:
        """Make what the notice of the end needs, as long as the disk has names for it."""
        try:
            ensure_key(self.folder.home)
            box = Box(self.folder.home, outbox(self.folder.home, recipient_of(self.record)))
            if not box.is_open:
                box.open()
        except StorageError:
            pass  # then it is made at the end

    def _make_output(self, half: str, *, transcript: bool) -> int:
        """The file to write to. Where no link can be made an agent has an empty output, and its record says so."""
        if not transcript:
            return create_plain(f"{half}/output", flags=os.O_RDWR | os.O_APPEND)
        self.printed = self.folder.transcript
        made = create_plain(f"{half}/{TRANSCRIPT}", flags=os.O_RDWR | os.O_APPEND)
        try:
            os.symlink(TRANSCRIPT, f"{half}/output")
        except OSError:
            os.close(create_plain(f"{half}/output"))
            self.record["isUnlinked"] = True
        return made

    def _keep_room(self) -> None:
        """Have room for our last words, in the one file that nobody writes: the job itself may fill the disk."""
        try:
            kernel.reserve(self._lock, 0, _LAST_WORDS)
        except OSError as error:
            if error.errno in kernel.FULL:
                raise
            # else nothing can be reserved here: then we take what is there in the end

    def give_room(self) -> bool:
        """Let go of what was kept, for others or to write with it; False if that was done before."""
        has_some = os.fstat(self._lock).st_blocks > 0
        if has_some:
            os.ftruncate(self._lock, 0)
        return has_some

    def check_place(self) -> None:
        """Refuse to write where our folder was: what is there now may lead anywhere.

        Raises:
            StorageError: it was moved away.
        """
        if not is_there(self.folder) or not os.path.samestat(os.fstat(self.descriptor), os.lstat(self.folder.path)):
            raise StorageError(self.folder.path, "it is not the folder of the job any more")

    def _clear_away(self) -> None:
        """Leave nothing of a job that could not be made."""
        from taskyard.runtime.sweeping import remove_folder

        try:
            remove_folder(self.folder.half_made)
            files.remove(self.folder.living)
        except (OSError, StorageError):
            pass  # what is wrong is told by whoever called

    def _tell_parent(self, parent: str) -> None:
        """Let the job we were started inside know of us, so that it can take us along when it ends."""
        folder = JobFolder(self.folder.home, parent)
        try:
            if is_there(folder):  # else it is gone, with all its records
                files.make_private_folder(folder.children)
                files.create(f"{folder.children}/{self.folder.id}", b"")
        except (FileExistsError, StorageError):
            pass  # it ends without us then

    def change(self, **changes: object) -> None:
        """Put a changed record in place. On a full disk it stays as it was: no reason to give up the job."""
        self.record.update(changes)
        try:
            self.check_place()
            files.replace(self.folder.record, _encoded(self.record))
        except StorageError:
            pass  # the next change brings this one along

    def answer(self, wish: Mapping[str, object], done: object) -> None:
        """Let whoever made a wish see what came of it, if they asked to."""
        if isinstance(token := wish.get("token"), str):
            self._answers = {**dict(list(self._answers.items())[-_ANSWERS:]), token: done}
            self.change(answers=self._answers)

    def hang_up(self) -> None:
        """Take no more wishes: how all who wait for the end learn that it is written."""
        os.close(self.control)

    def close(self) -> None:
        """Let go of it, in a process that lives on; the lock last, since it stands for all else."""
        for fd in (self.control, self.output, self.descriptor, self._lock):
            os.close(fd)


def _encoded(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode("utf-8", "surrogatepass")
