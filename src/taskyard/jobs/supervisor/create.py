"""Create a job's folder, or recover the folder of a job whose supervisor was killed.

A new job is built under a hidden name, locked by its supervisor, then renamed, so that no process ever sees
a job without a supervisor. A supervisor that is killed on the way leaves a hidden folder and a live name
(`jobs/.living/<id>`) without a job; both are ignored.

A job whose work runs elsewhere can be recovered by another supervisor: the lock decides which one.
Processes left by the first supervisor are killed before anything new starts, so that no two write to one
output.
"""

from __future__ import annotations

import fcntl
import json
import os

from taskyard.core import files
from taskyard.core.files import create_plain, open_pipe, open_plain
from taskyard.core.system import this_host
from taskyard.errors import StorageError
from taskyard.jobs import event_log, exit_record
from taskyard.jobs.job_dir import TRANSCRIPT, JobPaths, job_exists, live_folder, outbox_path
from taskyard.jobs.model import is_job_id
from taskyard.jobs.notice_payload import ensure_key, recipient_of
from taskyard.jobs.supervisor import io, kernel
from taskyard.storage.maildir import Maildir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


#: Bytes reserved for the exit record, the notice, a first outbox with its folders and the key: a block each,
#: and some spare.
_END_RESERVE = 65536


#: Replies kept in a record: clients may be slow to read theirs, and many may wait.
_MAX_REPLIES = 100


class JobDir:
    """A job's folder as its supervisor has it open: descriptors and record."""

    def __init__(
        self,
        folder: JobPaths,
        record: dict[str, object],
        *,
        parent: str | None = None,
        arguments: Mapping[str, object] | None = None,
        event_segments: int | None = None,
        transcript: bool = False,
    ) -> None:
        """Build the folder, make it visible by renaming it, and log the start event.

        Args:
            folder: Paths of the job.
            record: Initial content of `job.json`.
            parent: The job it is started inside.
            arguments: Arguments of a handler.
            event_segments: Number of event log segments to keep; None: all.
            transcript: Make its output a link to a transcript.
        """
        self.folder = folder
        self.printed = folder.output  #: the output file itself, links resolved
        self.record = record
        self._answers: dict[str, object] = {}
        try:
            self._build(arguments, transcript=transcript)
        except OSError as error:
            self._remove_incomplete()
            raise files.storage_error(folder.incomplete, error) from error
        except StorageError:
            self._remove_incomplete()
            raise
        if parent is not None:
            self._register_with_parent(parent)
        self._prepare_outbox()
        # Its position in the event log is written with the next change of the record.
        self.record[event_log.POSITION_KEY] = event_log.log_started(folder, record, keep=event_segments)

    def _build(self, arguments: Mapping[str, object] | None, *, transcript: bool) -> None:
        folder, half = self.folder, self.folder.incomplete
        try:
            for place in (f"{folder.home}/jobs", live_folder(folder.home)):
                files.check_private_folder(place)
        except FileNotFoundError:
            files.make_private_folder(live_folder(folder.home))
        # A POSIX lock: children do not inherit it, and F_GETLK returns its holder's pid. It would be lost
        # if we closed any descriptor of this file, so nothing else in this process may open it. Opened by
        # its live name: inotify watchers of that folder are notified when this process is killed, as the
        # kernel closes the file then.
        self._lock = create_plain(folder.living, flags=os.O_RDWR)
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._reserve_space()
        os.mkdir(half, 0o700)
        os.link(folder.living, f"{half}/keeper.lock")
        os.mkfifo(f"{half}/control", 0o600)
        # Opened for reading and writing, so that it never reports end-of-file as writers come and go.
        self.control = open_pipe(f"{half}/control", os.O_RDWR)
        self.output = self._make_output(half, transcript=transcript)
        if arguments is not None:
            files.create(
                f"{half}/arguments.json", _encode_record({"type": self.record["type"], "arguments": arguments})
            )
        for reserved in (folder.reserved_end, folder.reserved_notice):
            os.close(create_plain(f"{half}/{os.path.basename(reserved)}"))
        files.create(f"{half}/job.json", _encode_record(self.record))
        self.descriptor = os.open(half, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.rename(half, folder.path)

    def _prepare_outbox(self) -> None:
        """Create what the notice of the end needs while the disk still has free inodes."""
        try:
            ensure_key(self.folder.home)
            box = Maildir(self.folder.home, outbox_path(self.folder.home, recipient_of(self.record)))
            if not box.is_open:
                box.open()
        except StorageError:
            pass  # then it is created when the job ends

    def _make_output(self, half: str, *, transcript: bool) -> int:
        """Create the output file. If no symlink can be made, an agent's `output` is empty; its record states it."""
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

    def _reserve_space(self) -> None:
        """Reserve blocks for the exit record in the lock file, which is never written: the job may fill the disk."""
        try:
            kernel.reserve_blocks(self._lock, 0, _END_RESERVE)
        except OSError as error:
            if error.errno in kernel.DISK_FULL:
                raise
            # otherwise this file system cannot reserve blocks: use what is free when the job ends

    def release_reserve(self) -> bool:
        """Free the reserved blocks; return False if that was done before."""
        has_some = os.fstat(self._lock).st_blocks > 0
        if has_some:
            os.ftruncate(self._lock, 0)
        return has_some

    def check_place(self) -> None:
        """Refuse to write if our folder was replaced: what is there now may be a link to anywhere.

        Raises:
            StorageError: the folder was moved away.
        """
        if not job_exists(self.folder) or not os.path.samestat(os.fstat(self.descriptor), os.lstat(self.folder.path)):
            raise StorageError(self.folder.path, "it is not the folder of the job any more")

    def _remove_incomplete(self) -> None:
        """Remove what was built of a job that could not be created."""
        from taskyard.jobs.gc import remove_folder

        try:
            remove_folder(self.folder.incomplete)
            files.remove(self.folder.living)
        except (OSError, StorageError):
            pass  # the caller reports the original error

    def _register_with_parent(self, parent: str) -> None:
        """Register with the parent job, so that it can stop us when it ends."""
        folder = JobPaths(self.folder.home, parent)
        try:
            if job_exists(folder):  # else it is gone, with all its records
                files.make_private_folder(folder.children)
                files.create(f"{folder.children}/{self.folder.id}", b"")
        except (FileExistsError, StorageError):
            pass  # then it ends without us

    def change(self, **changes: object) -> None:
        """Replace the record. On a full disk the old one stays: that is no reason to end the job."""
        self.record.update(changes)
        try:
            self.check_place()
            files.replace(self.folder.record, _encode_record(self.record))
        except StorageError:
            pass  # the next change includes this one

    def answer(self, wish: Mapping[str, object], done: object) -> None:
        """Record the result of a control message under its token, if it has one."""
        if isinstance(token := wish.get("token"), str):
            self._answers = {**dict(list(self._answers.items())[-_MAX_REPLIES:]), token: done}
            self.change(answers=self._answers)

    def hang_up(self) -> None:
        """Close the control pipe: by this, waiting processes learn that the exit record is written."""
        os.close(self.control)

    def close(self) -> None:
        """Close everything, in a process that keeps running; the lock last, since it protects the rest."""
        for fd in (self.control, self.output, self.descriptor, self._lock):
            os.close(fd)


def _encode_record(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode("utf-8", "surrogatepass")


class NotRecoverable(Exception):
    """The job has a supervisor already, or it has ended."""


class RecoveredJobDir(JobDir):
    """The folder of an existing job, taken over by a new supervisor."""

    def __init__(self, folder: JobPaths, *, inside: str | None) -> None:
        """Take over the job; `inside` is the job that this process runs in, related to it or not.

        Raises:
            NotRecoverable: it has a supervisor, or has ended.
            StorageError: it cannot be read or locked.
        """
        self.folder = folder
        self.printed = folder.output
        self._answers = {}
        try:
            self._take_lock()
            self.record = self._read()
            self._open()
        except OSError as error:
            raise files.storage_error(folder.path, error) from error
        if is_job_id(inside) and inside != folder.id:
            self._register_with_parent(inside)  # so that its supervisor does not treat us as a leftover process
        event_log.ensure_started_logged(folder, self.record)
        self._terminate_leftovers()

    def _take_lock(self) -> None:
        if not job_exists(self.folder):
            raise NotRecoverable
        try:
            os.link(self.folder.lock, self.folder.living)
        except FileExistsError:
            pass
        self._lock = open_plain(self.folder.living, os.O_RDWR)
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NotRecoverable from None
        self._reserve_space()

    def _read(self) -> dict[str, object]:
        """Read the current record; under the lock no other process changes it."""
        if os.path.lexists(self.folder.end) or exit_record.read_decision(self.folder) is not None:
            hooks = (exit_record.read_json(self.folder.record) or {}).get("hooks")
            exit_record.complete_end(self.folder, hooks=hooks)
            raise NotRecoverable
        record = exit_record.read_own_json(self.folder.record)
        if record is None or record.get("id") != self.folder.id:
            raise StorageError(self.folder.record, "it does not describe the job")
        return record

    def _open(self) -> None:
        self.control = open_pipe(self.folder.control, os.O_RDWR)
        self.output = open_plain(self.folder.output, os.O_RDWR | os.O_APPEND)
        os.set_blocking(self.output, True)  # commands inherit it
        self.descriptor = os.open(self.folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        io.remove_pipe(self.descriptor)

    def _terminate_leftovers(self) -> None:
        """Kill what the previous supervisor left running on this host, and correct the record."""
        changes: dict[str, object] = {"isPaused": False, "takesInput": False}
        if self.record.get("host") == this_host():
            from taskyard.jobs.recovery import kill_processes

            kill_processes(self.folder, self.record)
        else:  # the machine was restarted: recorded pids mean nothing, and no process watches
            changes |= {"host": this_host(), "isBackgrounded": True}
        self.change(**changes)
