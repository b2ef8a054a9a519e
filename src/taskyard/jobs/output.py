r"""Read a job's output: by offset, its tail, as it grows, and as safe text for terminals and models.

Any process may read it, while the job runs and after. Files are opened so that no planted link is followed,
and never read whole:

    part = Output(folder).read(0)
    part = Output(folder).read(part.next_offset)      what came since

A logical offset counts from the first byte the job ever printed. It stays valid in both forms of the file:

    while it runs    as the command wrote it; behind the head of a large one may be a hole of freed blocks
    after its end    the head, a line that states how much was left out, the newest part (`supervisor.run`)

Following needs no polling: inotify reports every write, `end.json`, and a killed supervisor, since its exit
closes the `control` pipe. Whether the job has ended is checked before reading, so that the last bytes are
never missed.

Text for terminals and models has escape sequences (titles, links, cursor movement, clipboard), control
characters and NUL removed. Characters that reorder or hide text are shown as `\u202e`.

`task_output` returns a job's state and output in one answer for a model. If the reader is the recipient of
the job's notice, the same call marks that notice as delivered.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import re
import time

from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.values import PERSON, NamedTuple, as_list, as_number, as_object, as_text
from taskyard.errors import BadJobId, Damaged, StorageError
from taskyard.jobs import exit_record, query
from taskyard.jobs.job_dir import TRANSCRIPT, JobPaths, supervisor_pid
from taskyard.jobs.model import end_from_json, is_job_id
from taskyard.jobs.outbox import mark_delivered
from taskyard.storage.change_feed import subscribe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.jobs.model import End, Job
    from taskyard.storage.inotify import Subscription


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: Kinds whose output is a link to their transcript. A link in any other job's folder was planted.
_LINKED_KINDS = frozenset({"local_agent", "in_process_teammate"})

#: The line that a supervisor puts before the kept part when it compacts an output.
_OMITTED_LINE = re.compile(rb"\n?\[([0-9,]{1,26}) bytes were left out here: the output was larger than its cap\]\n")
_MAX_HEADER = 128


class OutputFile:
    """An open output, in either form."""

    __slots__ = ("_base", "_head", "_header", "_is_over", "fd", "path")

    def __init__(self, fd: int, path: str, *, is_over: bool, head: int = 0, header: int = 0, base: int = 0) -> None:
        """Behind the first `head` bytes is a note of `header` bytes; the byte behind it has the offset `base`."""
        self.fd = fd
        self.path = path
        self._is_over = is_over
        self._head = head
        self._header = header
        self._base = base

    def gap(self) -> tuple[int, int]:
        """Return the offsets between which the output was freed; equal if nothing is missing."""
        if self._header:
            return self._head, self._base
        return find_gap(self.fd, head=self._head, size=self._size())

    def end(self) -> int:
        """Return the offset behind the newest byte."""
        if not self._header:
            return self._size()
        return self._size() - self._head - self._header + self._base

    def _size(self) -> int:
        """Return the file's size, without a zero byte at the very end if the job has not ended.

        A supervisor checks for a full disk by one more byte, which it removes at once: a reader that had
        read it would consider the output truncated. A zero that the command printed itself is read as soon
        as something follows.
        """
        while True:
            size = os.fstat(self.fd).st_size
            if self._is_over or not size:
                return size
            if last := os.pread(self.fd, 1, size - 1):
                return size - (last == b"\0")

    def read(self, offset: int, most: int) -> tuple[int, bytes]:
        """Return at most `most` bytes from `offset`, or from the oldest byte kept behind it; and their offset.

        Raises:
            StorageError: a disk error.
        """
        start = offset
        while True:
            gone, there = self.gap()
            if gone <= start < there:
                start = there
            stop = gone if start < gone < there else self.end()
            at = start - self._base + self._head + self._header if self._header and start >= there else start
            try:
                data = os.pread(self.fd, max(min(most, stop - start), 0), at)
            except OSError as error:
                raise files.storage_error(self.path, error) from error
            gone, there = self.gap()  # blocks freed while we read came as zeros
            if gone <= start < there:
                if there < start + len(data):
                    return there, data[there - start :]
                if data:
                    continue
            elif start < gone < there:
                data = data[: gone - start]
            return start, data

    def close(self) -> None:
        """Close the file."""
        os.close(self.fd)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_output(folder: JobPaths, *, transcripts: str | None = None) -> OutputFile | None:
    """Open a job's output as it is now; return None if there is none yet.

    `transcripts` is a folder that an agent's output may link into.

    Raises:
        StorageError: it was replaced by something else: a link, a pipe, another user's folder.
    """
    place = _open_folder(folder)
    if place is None:
        return None
    try:
        end = _read_end(place)
        fd = _open_file(place, folder, transcripts)
        if end is None and (end := _read_end(place)) is not None:
            # It ended meanwhile: the open file may be the one from before the compaction.
            if fd is not None:
                os.close(fd)
            fd = _open_file(place, folder, transcripts)
        if fd is None:
            return None
        head = _read_head(place)
        header, base = _detect_layout(fd, folder, head) if end is None else _end_layout(end, fd)
        if end is not None and header:
            head = end.head
        return OutputFile(fd, folder.output, is_over=end is not None, head=head, header=header, base=base)
    finally:
        os.close(place)


def find_gap(fd: int, *, head: int, size: int) -> tuple[int, int]:
    """Return the offsets between which blocks of an output were freed; equal if none were.

    The hole begins behind the head, or at offset 0 if space had to be freed on a full disk.
    """
    for start in (0, head) if head else (0,):
        try:
            if start < size and os.lseek(fd, start, os.SEEK_HOLE) == start:
                return start, os.lseek(fd, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from there on
                return start, size
            break  # this file system has no holes
    return 0, 0


def _open_folder(folder: JobPaths) -> int | None:
    jobs = _open_below(None, f"{folder.home}/jobs", f"{folder.home}/jobs")
    if jobs is None:
        return None
    try:
        place = _open_below(jobs, folder.id, folder.path)
    finally:
        os.close(jobs)
    if place is not None and (owner := os.fstat(place).st_uid) != os.geteuid():
        os.close(place)
        raise StorageError(folder.path, f"it belongs to user {owner}, not to us")
    return place


def _open_below(parent: int | None, name: str, path: str) -> int | None:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            files.check_folder(path, os.lstat(name, dir_fd=parent))  # raises a specific error for a link or a file
        raise StorageError(path, files.storage_error(path, error).why) from error


def _open_file(place: int, folder: JobPaths, transcripts: str | None) -> int | None:
    try:
        fd = open_plain("output", dir_fd=place)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP or _read_kind(place) not in _LINKED_KINDS:
            raise StorageError(folder.output, files.storage_error(folder.output, error).why) from error
        linked = _open_link(os.readlink("output", dir_fd=place), folder, transcripts)
        if linked is None:
            return None
        fd = linked
    if not os.fstat(fd).st_size and _is_unlinked(place):
        os.close(fd)
        return _open_path(folder.path, [], TRANSCRIPT, folder.output)
    return fd


def _is_unlinked(place: int) -> bool:
    """Return whether an agent's output is an empty file because no link to its transcript could be made."""
    record = _read_record(place, "job.json") or {}
    return record.get("isUnlinked") is True and record.get("type") in _LINKED_KINDS


def _open_link(target: str, folder: JobPaths, transcripts: str | None) -> int | None:
    """Open the target of an agent's link: inside its own folder or the transcripts, through no further link."""
    path = os.path.normpath(os.path.join(folder.path, target))
    for root in (folder.path, transcripts):
        if root is not None and path.startswith(f"{os.path.normpath(root)}/"):
            *between, name = os.path.relpath(path, root).split("/")
            return _open_path(root, between, name, folder.output)
    raise StorageError(folder.output, "it is a symbolic link that leads out of where it may lead")


def _open_path(root: str, between: list[str], name: str, shown: str) -> int | None:
    here = _open_below(None, root, root)
    for part in between:
        if here is None:
            return None
        before = here
        try:
            here = _open_below(before, part, shown)
        finally:
            os.close(before)
    if here is None:
        return None
    try:
        return open_plain(name, dir_fd=here)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(shown, files.storage_error(shown, error).why) from error
    finally:
        os.close(here)


def _read_kind(place: int) -> str:
    return str((_read_record(place, "job.json") or {}).get("type") or "")


def _read_end(place: int) -> End | None:
    found = _read_record(place, "end.json")
    return None if found is None else end_from_json(found)


def _read_record(place: int, name: str) -> dict[str, object] | None:
    try:
        fd = open_plain(name, dir_fd=place)
    except OSError:
        return None
    try:
        return as_object(json.loads(files.read_open(fd, name)))
    except (Damaged, StorageError, ValueError, RecursionError):
        return None
    finally:
        os.close(fd)


def _end_layout(end: End, fd: int) -> tuple[int, int]:
    """Return header and base from the end's record, if they are plausible."""
    sane = end.header > 0 and 0 <= end.head <= end.base and end.head + end.header <= os.fstat(fd).st_size
    return (end.header, end.base) if sane else (0, 0)


def _read_head(place: int) -> int:
    """Return how many bytes of the oldest output are kept, from the job's record."""
    return max(as_number((_read_record(place, "job.json") or {}).get("outputHead")), 0)


def _detect_layout(fd: int, folder: JobPaths, head: int) -> tuple[int, int]:
    """Return header and base of a file without an end: compacted already if its end is about to be written.

    A command may print the same line itself. Then its supervisor has this file open; the compacted one it
    has closed.
    """
    found = _OMITTED_LINE.match(os.pread(fd, _MAX_HEADER, head))
    if found is None or _has_open(supervisor_pid(folder), os.fstat(fd)):
        return 0, 0
    return found.end(), head + int(found.group(1).replace(b",", b""))


def _has_open(pid: int | None, file: os.stat_result) -> bool:
    try:
        for name in os.listdir(f"/proc/{pid}/fd") if pid else ():
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), file):
                return True
    except OSError:
        pass  # it exited meanwhile
    return False


#: Bytes read at a time: large against the cost of a call, small against memory.
CHUNK = 64 * 1024

#: Most bytes of a tail; longer lines are shown from their middle.
MAX_TAIL = 1024 * 1024

#: Bytes searched for the last line: more than any progress line has.
_MAX_LAST_LINE = 4096

#: Most bytes of a character in UTF-8.
_MAX_CHAR_BYTES = 4


class OutputChunk(NamedTuple):
    """A piece of an output."""

    text: bytes
    offset: int  #: of its first byte, counted from the first byte the job ever printed
    next_offset: int  #: where to continue
    omitted: int = 0  #: requested bytes that are no longer there: the output was larger than its cap
    restarted: bool = False  #: the command truncated its output; this is read from its new beginning


class Output:
    """The output of one job."""

    def __init__(self, folder: JobPaths, *, transcripts: str | None = None) -> None:
        """`transcripts` is the folder that an agent's output may link into, besides the job's own.

        Raises:
            BadJobId: no job can have such an id.
        """
        if not is_job_id(folder.id):
            raise BadJobId(folder.id)
        self.folder = folder
        self._transcripts = transcripts

    def read(self, offset: int, most: int = CHUNK) -> OutputChunk:
        """Return what was printed from `offset` on, at most `most` bytes; no output yet reads as empty.

        Raises:
            StorageError: it was replaced by something else, or a disk error.
        """
        file = self._open()
        if file is None:
            return OutputChunk(b"", offset, offset)
        with file:
            restarted = offset > file.end()
            wanted = 0 if restarted else max(offset, 0)
            start, text = file.read(wanted, most)
        return OutputChunk(text, start, start + len(text), start - wanted, restarted)

    def tail(self, lines: int, *, most: int = MAX_TAIL) -> OutputChunk:
        """Return the last `lines` lines, at most `most` bytes."""
        file = self._open()
        if file is None:
            return OutputChunk(b"", 0, 0)
        with file:
            return _read_tail(file, lines, most)

    def tail_bytes(self, most: int) -> OutputChunk:
        """Return the last `most` bytes, or as many as there are."""
        file = self._open()
        if file is None:
            return OutputChunk(b"", 0, 0)
        with file:
            wanted = max(file.end() - most, 0)
            gone, there = file.gap()
            start, text = file.read(max(wanted, there), most)
        return OutputChunk(text, start, start + len(text), max(start - max(wanted, gone), 0) if wanted < there else 0)

    def gap(self) -> tuple[int, int]:
        """Return the offsets between which the output was freed: it was larger than its cap."""
        file = self._open()
        if file is None:
            return 0, 0
        with file:
            return file.gap()

    def end(self) -> int:
        """Return the offset behind the newest byte."""
        return self.tail_bytes(0).next_offset

    def last_line(self, *, whole: bool = False) -> bytes:
        """Return the newest non-empty line; of a line overwritten by carriage returns, its last form.

        `whole` skips a line that is still being written, unless it is the first.
        """
        text = self.tail_bytes(_MAX_LAST_LINE).text.replace(b"\r", b"\n")
        ended = text[: text.rfind(b"\n") + 1].rstrip()
        text = ended if whole and ended else text.rstrip()
        return text[text.rfind(b"\n") + 1 :]

    def for_model(self, limit: int | None = None) -> ModelText:
        """Return the end of the output for a model; `limit` in characters, by default from the environment."""
        characters = model_limit() if limit is None else limit
        part = self.tail_bytes(characters * _MAX_CHAR_BYTES)
        return for_model(part.text, path=self.folder.output, limit=characters, is_all=part.offset == 0)

    def _open(self) -> OutputFile | None:
        return open_output(self.folder, transcripts=self._transcripts)


def _read_tail(file: OutputFile, lines: int, most: int) -> OutputChunk:
    """Read backwards block by block until there are enough lines; nothing before them is read."""
    end = begin = file.end()
    text, gone = b"", 0
    while lines > 0 and begin > 0 and len(text) < most and _count_breaks(text) < lines:
        head, there = file.gap()
        wanted = max(begin - min(CHUNK, most - len(text)), there)
        start, piece = file.read(wanted, max(begin - wanted, 0))
        piece = piece[: max(begin - start, 0)]  # the part behind was read already
        if start + len(piece) < begin:
            break  # the command truncated it while we read
        text, begin = piece + text, min(start, begin)
        if start > wanted or (head < there and begin <= there):
            gone = begin - file.gap()[0]
            break
    kept = _last_lines(text, lines)
    return OutputChunk(kept, end - len(kept), end, gone if len(kept) == len(text) else 0)


def _count_breaks(text: bytes) -> int:
    """Return how many line breaks come before the last line."""
    return text.count(b"\n") - text.endswith(b"\n")


def _last_lines(text: bytes, lines: int) -> bytes:
    """Return the last lines of a text; a break at its very end belongs to the last of them."""
    if lines <= 0:
        return b""
    at = len(text) - text.endswith(b"\n")
    for _ in range(lines):
        at = text.rfind(b"\n", 0, at)
        if at < 0:
            return text
    return text[at + 1 :]


#: Seconds between checks while another process recovers the job: it may be killed too, without an event.
_POLL_INTERVAL = 1.0

#: Seconds of one sleep without a timeout.
_WAIT_SLICE = 3600.0


def follow_output(
    output: Output, offset: int = 0, *, timeout: float | None = None, most: int = CHUNK, debounce: float = 0.01
) -> Iterator[OutputChunk]:
    """Yield each new part of an output from `offset` on, until its job ends or after `timeout` seconds.

    A job whose supervisor was killed counts as ended. Bursts are collected for `debounce` seconds.
    """
    deadline = time.monotonic() + timeout if timeout is not None else None
    folder, keeper = output.folder, None
    with subscribe(folder.path) as followed:
        names = followed.changed()
        while True:
            if not names or "control" in names:
                keeper = supervisor_pid(folder)
                if keeper is None:
                    keeper = _ensure_supervisor(folder)
            is_over = keeper is None or os.path.lexists(folder.end)
            while (part := output.read(offset, most)).next_offset != offset or part.restarted:
                offset = part.next_offset
                yield part
                if _is_drained(part, most) or _seconds_left(deadline) <= 0:
                    break
            if is_over or _seconds_left(deadline) <= 0:
                return
            names = _wait_change(
                followed, min(_seconds_left(deadline), _WAIT_SLICE if keeper else _POLL_INTERVAL), debounce
            )


def _ensure_supervisor(folder: JobPaths) -> int | None:
    """Return the supervisor started for a resumable job, 0 if none could be; None: the job has ended."""
    record = exit_record.read_json(folder.record) or {}
    if "resumes" not in record or not query.is_resumable(folder, record):
        return None
    query.ensure_supervisor(folder, record)
    return supervisor_pid(folder) or 0


def _wait_change(followed: Subscription, seconds: float, debounce: float) -> set[str] | None:
    """Sleep until a file of the job changes; return the names, an empty set on timeout, None if it may be any.

    Looking up a job's supervisor opens its lock file: an event for that file alone is ignored.
    """
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and followed.wait(left, debounce=debounce):
        if (names := followed.changed()) != {"keeper.lock"}:
            return names
    return set()


def _is_drained(part: OutputChunk, most: int) -> bool:
    """Return whether nothing was left to read; inotify reports what comes next."""
    return len(part.text) < most and not part.omitted and not part.restarted


def _seconds_left(deadline: float | None) -> float:
    return _WAIT_SLICE if deadline is None else deadline - time.monotonic()


#: Default and maximum characters for a model: a few pages, and what no context can take twice.
MODEL_LIMIT = 32_000
MAX_MODEL_LIMIT = 160_000
LIMIT_VARIABLE = "TASK_MAX_OUTPUT_LENGTH"

_COLOUR = r"\x1b\[[0-9;:]{0,64}m"
_ESCAPES = re.compile(
    rf"(?P<colour>{_COLOUR})"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # cursor movement, modes, terminal queries
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, other strings
    r"|\x1b[ -/]*[0-~]?"
)

#: An escape sequence, line break or string that may continue in the next piece.
_INCOMPLETE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*\x1b?\Z"
    r"|\x1b[ -/]*\Z"
    r"|\r\Z"
)

#: Characters beyond which a sequence is not waited for, only removed.
_MAX_ESCAPE = 4096

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")

#: Characters that reorder, hide or break the text around them; not joiners, which scripts and emoji need.
_INVISIBLES = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_RESET = "\x1b[0m"


class ModelText(NamedTuple):
    """An output as text for a model."""

    text: str
    was_truncated: bool


class TerminalText:
    """An output made safe for a terminal, piece by piece: characters and sequences may be split anywhere."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._is_coloured = False

    def feed(self, data: bytes) -> str:
        """Return what can be shown of `data` and of what was buffered before."""
        return self._sanitize(self._held + self._decoder.decode(data), is_last=False)

    def finish(self) -> str:
        """Return what is still buffered, and a colour reset if needed."""
        text = self._sanitize(self._held + self._decoder.decode(b"", final=True), is_last=True)
        self._decoder.reset()
        reset = _RESET if self._is_coloured else ""
        self._is_coloured = False
        return text + reset

    def _sanitize(self, text: str, *, is_last: bool) -> str:
        self._held = ""
        found = None if is_last else _INCOMPLETE.search(text, _last_start(text))
        if found is not None:
            text, self._held = text[: found.start()], text[found.start() :]
        return self._clean(text)

    def _clean(self, text: str) -> str:
        if text.replace("\n", "").isprintable():  # evaluated in C, and nearly always true
            return text
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _ESCAPES.sub(self._colour, text)
        return _INVISIBLES.sub(_escape_char, _CONTROLS.sub("", text))

    def _colour(self, found: re.Match[str]) -> str:
        colour = found["colour"] if self._colours else None
        if not colour:
            return ""
        self._is_coloured = colour not in (_RESET, "\x1b[m")
        return colour


def _last_start(text: str) -> int:
    """Return where the first sequence that may continue behind `text` can begin.

    None continues past a BEL, a string terminator, a line break or another escape, except an escape at the
    very end. A search from there visits no character twice.
    """
    start = max(len(text) - _MAX_ESCAPE, 0)
    ended = max(text.rfind(end, start) for end in "\x07\x9c\n")
    escape = text.rfind("\x1b", start, len(text) - 1)
    return max(start, ended + 1, escape)


def for_terminal(data: bytes, *, colours: bool = False) -> str:
    r"""Return `data` as safe text for a terminal; `colours` keeps colours, and resets them at the end.

    >>> for_terminal(b"a\x1b[2Jb\x1b]0;title\x07c\x00")
    'abc'
    """
    text = TerminalText(colours=colours)
    return text.feed(data) + text.finish()


def for_model(data: bytes, *, path: str, limit: int, is_all: bool = True) -> ModelText:
    """Return the end of `data` as plain text of at most `limit` characters, including the truncation line.

    `is_all` is False if more came before `data`. A limit too small for that line leaves it out.
    """
    text = for_terminal(data if is_all else _skip_partial_char(data))
    if is_all and len(text) <= limit:
        return ModelText(text, was_truncated=False)
    header = f"[Truncated. Full output: {path}]\n\n"
    if len(header) >= limit:
        header = ""
    room = limit - len(header)
    return ModelText(header + (text[-room:] if room > 0 else ""), was_truncated=True)


def model_limit(env: Mapping[str, str] | None = None) -> int:
    """Return the characters for a model: `TASK_MAX_OUTPUT_LENGTH`, bounded; an invalid value counts as unset."""
    given = (os.environ if env is None else env).get(LIMIT_VARIABLE, "").strip()
    if not (given.isascii() and given.isdigit()) or len(given) > 18 or int(given) == 0:
        return MODEL_LIMIT
    return min(int(given), MAX_MODEL_LIMIT)


def whole_utf8_size(data: bytes) -> int:
    """Return how many bytes of `data` to take so that no character is split at its end."""
    for back in range(1, min(4, len(data) + 1)):
        lead = data[-back]
        if lead < 0x80:
            break
        if lead >= 0xC0:
            size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return len(data) - back if size > back else len(data)
    return len(data)


def _skip_partial_char(data: bytes) -> bytes:
    """Return `data` without the rest of a character that was split at its beginning."""
    at = 0
    while at < min(3, len(data)) and 0x80 <= data[at] < 0xC0:
        at += 1
    return data[at:]


def _escape_char(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


#: Most characters of one entry.
_MAX_ENTRY = 2_000

#: Tool inputs that describe a call best; the first one present is shown.
_KEY_INPUTS = ("description", "command", "file_path", "path", "file", "pattern", "query", "url", "prompt")
_MAX_INPUT = 200


def format_transcript(data: bytes) -> str:
    """Return the entries of a transcript as text; cut-off lines and lines that are no entry are left out."""
    lines: list[str] = []
    for raw in data.splitlines():
        try:
            entry = as_object(json.loads(raw))
        except (ValueError, RecursionError):
            continue
        if entry is not None:
            lines += [text for text in _format_entry(entry) if text]
    return "\n".join(lines)


def _format_entry(entry: Mapping[str, object]) -> Iterator[str]:
    kind, text = entry.get("type"), as_text(entry.get("text")).strip()
    if kind == "assistant":
        yield text[:_MAX_ENTRY]
        for raw in as_list((as_object(entry.get("message")) or {}).get("content")) or []:
            block = as_object(raw) or {}
            yield as_text(block.get("text")).strip()[:_MAX_ENTRY]
            if block.get("type") == "tool_use":
                yield _format_tool(block)
    elif kind == "tool_use":
        yield _format_tool(entry)
    elif kind == "question":
        yield f"? {text[:_MAX_ENTRY]}"
    elif kind in ("prompt", "user") and text:
        yield f"> {text.splitlines()[0][:_MAX_ENTRY]}"


def _format_tool(use: Mapping[str, object]) -> str:
    given = as_object(use.get("input")) or {}
    about = next((value for key in _KEY_INPUTS if isinstance(value := given.get(key), str) and value.strip()), "")
    return f"[{as_text(use.get('name'))} {' '.join(about.split())[:_MAX_INPUT]}".rstrip() + "]"


class TaskOutput(NamedTuple):
    """A job with its output, truncated for a model."""

    job: Job
    output: str  #: its end; of an agent the final answer, and until then its latest transcript entries
    was_truncated: bool = False
    delivered: tuple[str, ...] = ()  #: notices marked as delivered by this


def task_output(
    home: str, job: Job, *, reader: str | None, limit: int | None = None, transcript: bool = False
) -> TaskOutput:
    """Return the output of `job` for `reader`; `limit` in characters, by default `TASK_MAX_OUTPUT_LENGTH`.

    With `transcript`, return the output itself even if the job has a final answer.
    """
    folder = JobPaths(home, job.id)
    answer = job.facts.get("result")
    if not isinstance(answer, str) or job.type == "remote_agent":  # of remote work, the output is all there is
        answer = ""
    if not transcript and (answer or os.path.lexists(folder.transcript)):  # the answer replaces the transcript
        most = model_limit() if limit is None else limit
        said, is_all = answer.encode("utf-8", "replace"), True
        if not answer and not job.is_final:
            said, is_all = _recent_transcript(folder, most)
        text = for_model(said, path=job.output_file, limit=most, is_all=is_all)
    else:
        text = Output(folder).for_model(limit)
    is_theirs = (reader or PERSON) == (job.agent_id or PERSON)
    delivered = mark_delivered(home, job.id) if job.is_final and is_theirs else ()
    return TaskOutput(job, text.text, text.was_truncated, delivered)


#: Bytes of a transcript to read per shown character: entries hold more than their text.
_BYTES_PER_CHARACTER = 4


def _recent_transcript(folder: JobPaths, most: int) -> tuple[bytes, bool]:
    """Return the latest transcript entries of a working agent as text, and whether that is all of it."""
    part = Output(folder).tail_bytes(_BYTES_PER_CHARACTER * max(most, 1))
    return format_transcript(part.text).encode("utf-8", "replace"), part.offset == 0
