"""Output of hooks, read from pipes: in memory while small, in a file once it is large.

stdout and stderr are kept apart, in memory up to 8 MB together; beyond that everything goes to a file, in
the order of arrival, lines of stderr marked. Memory keeps the last lines of each. `write` waits for the
disk, so a slow disk makes the command wait, and nothing piles up here.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from taskyard.core import files
from taskyard.core.files import create_plain
from taskyard.core.values import NamedTuple
from taskyard.errors import StorageError

#: Bytes of both streams in memory: nearly every hook fits, and a program can run many of them.
MAX_IN_MEMORY = 8 * 1024 * 1024

#: Lines returned after a spill: enough to see how it ended.
LAST_LINES = 5

#: Bytes of each stream's end kept for those lines; longer lines lose their beginning.
_TAIL = 16 * 1024

#: Bytes of overhead per piece: a command that writes single bytes alternately must not take a hundred times
#: their size.
_PIECE_OVERHEAD = 150

#: Prefix of each line of stderr in the file.
STDERR_MARK = b"[stderr] "


#: Bytes of the beginning that the file keeps, as for a job's output, and bytes moved at once.
_HEAD, _CHUNK = 1 << 20, 1 << 20


class SpillOutput(NamedTuple):
    """The output, or after a spill its last lines."""

    stdout: bytes
    stderr: bytes
    is_spilled: bool = False
    size: int = 0  #: bytes printed in all
    path: str = ""  #: after a spill: the file with all of it
    lost: str = ""  #: why some of it could not be kept, if so
    omitted: int = 0  #: bytes of it left out of the file after its head

    @property
    def notice(self) -> str:
        """A notice that the output is incomplete and where all of it is; empty if it is complete."""
        if not self.is_spilled:
            return ""
        where = f"Full output: {self.path}"
        if self.omitted:
            where = f"Its first part and its newest part: {self.path}"
        if self.lost:
            where = f"Some of it was lost ({self.lost}): {self.path}"
        return f"[Only the last {LAST_LINES} lines of {self.size:,} bytes. {where}]"


class Spill:
    """Collects two output streams; threads may write concurrently."""

    def __init__(self, path: str, *, cap: int = 1_000_000_000, most_in_memory: int = MAX_IN_MEMORY) -> None:
        """Set up; `path` is created when necessary, and must not exist.

        The file holds at most `cap` bytes: of more, the head (1 MB, or a quarter of a small cap) and at least the
        newest half of the cap, with a line between them that states how much was left out (SPEC O-04).
        """
        self.path = path
        self.size = 0
        self.lost = ""
        self.is_spilled = False  #: whether it no longer fits into memory
        self._cap = cap
        self._head = min(_HEAD, cap // 4)
        self._omitted = 0  # bytes left out of the file after the head
        self._most = most_in_memory
        self._pieces: list[tuple[bool, bytearray]] = []  # whether it is stderr, and the bytes, in order
        self._held = 0
        self._tails = {False: bytearray(), True: bytearray()}
        self._fd = -1
        self._in_file = 0
        self._note_size = 0  # bytes of the line about what was left out
        self._is_at_start = True  # of a line in the file
        self._last: bool = False  # whether the last bytes in the file are stderr's
        self._mutex = allocate_lock()

    def write(self, data: bytes, *, stderr: bool = False) -> None:
        """Add output of a stream; returns when it is stored."""
        if not data:
            return
        with self._mutex:
            self.size += len(data)
            tail = self._tails[stderr]
            tail += data[-_TAIL:]
            del tail[:-_TAIL]
            if self.is_spilled:
                self._append(data, stderr=stderr)
                return
            self._hold(data, stderr=stderr)
            if self._held > self._most:
                self._spill()

    def read_back(self) -> SpillOutput:
        """Return all output while it fits into memory; else the last lines."""
        with self._mutex:
            if self.is_spilled:
                out, err = (_last_lines(bytes(self._tails[which])) for which in (False, True))
                return SpillOutput(out, err, True, self.size, self.path, self.lost, self._omitted)
            out, err = (b"".join(piece for whose, piece in self._pieces if whose is which) for which in (False, True))
            return SpillOutput(out, err, size=self.size)

    def close(self) -> None:
        """Accept no more output. The file stays."""
        with self._mutex:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hold(self, data: bytes, *, stderr: bool) -> None:
        if self._pieces and self._pieces[-1][0] is stderr:
            self._pieces[-1][1].extend(data)
        else:
            self._pieces.append((stderr, bytearray(data)))
            self._held += _PIECE_OVERHEAD
        self._held += len(data)

    def _spill(self) -> None:
        self.is_spilled = True
        try:
            files.make_private_folder(os.path.dirname(self.path))
            self._fd = create_plain(self.path, flags=os.O_RDWR)
        except OSError as error:
            self._lose(error)
        except StorageError as error:
            self.lost = error.why
        pieces, self._pieces = self._pieces, []
        for stderr, piece in pieces:
            self._append(bytes(piece), stderr=stderr)

    def _append(self, data: bytes, *, stderr: bool) -> None:
        """Append to the file. A full disk must not stop the command: it is recorded in `lost` instead."""
        if self.lost:
            return
        try:
            marked = self._marked(data, stderr=stderr)
            while marked:
                if self._in_file >= self._cap:
                    self._make_room()
                part, marked = marked[: self._cap - self._in_file], marked[self._cap - self._in_file :]
                files.write_all(self._fd, part)
                self._in_file += len(part)
        except OSError as error:
            self._lose(error)

    def _make_room(self) -> None:
        """Drop what lies between the head and the newest half: that half moves down, after a line about it."""
        half = self._cap // 2
        self._omitted += self._in_file - half - (self._head + self._note_size)
        note = f"\n[{self._omitted:,} bytes were left out here: the output was larger than its cap]\n".encode()
        source, target = self._in_file - half, self._head + len(note)
        os.pwrite(self._fd, note, self._head)
        while chunk := os.pread(self._fd, _CHUNK, source):
            os.pwrite(self._fd, chunk, target)
            source, target = source + len(chunk), target + len(chunk)
        os.ftruncate(self._fd, target)
        os.lseek(self._fd, target, os.SEEK_SET)
        self._in_file, self._note_size = target, len(note)

    def _marked(self, data: bytes, *, stderr: bool) -> bytes:
        """Return the data as written to the file: streams never share a line, and lines of stderr are marked."""
        begin = b"" if self._is_at_start or stderr is self._last else b"\n"
        fresh = self._is_at_start or bool(begin)
        self._is_at_start, self._last = data.endswith(b"\n"), stderr
        if stderr:
            body = data[:-1] if data.endswith(b"\n") else data
            end = data[len(body) :]
            data = (STDERR_MARK if fresh else b"") + body.replace(b"\n", b"\n" + STDERR_MARK) + end
        return begin + data

    def _lose(self, error: OSError) -> None:
        self.lost = files.storage_error(self.path, error).why


def _last_lines(text: bytes) -> bytes:
    return b"\n".join(text.rstrip(b"\n").split(b"\n")[-LAST_LINES:])
