"""
The input of a job's command as a pipe with a name, for more than anybody types.

A line goes to the keeper as a message. A file that is poured in goes to the command itself: the kernel moves it as fast
as the command reads, and makes the writer wait where it does not. Nobody keeps the pipe open longer than there is
something to write, since the command reads its end only when nobody has.
"""

from __future__ import annotations

import os
import select

from taskyard.plain_file import open_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder

#: What a pipe holds; more at once is not taken anyway.
MOST = 65536

_NAME = "input"


def make(folder: int) -> tuple[int, int]:
    """A pipe in an open folder of a job, for its command and its keeper: what is read from, and what is written to."""
    try:
        os.mkfifo(_NAME, 0o600, dir_fd=folder)
        reader = open_pipe(_NAME, os.O_RDONLY, dir_fd=folder)
    except OSError:  # no room, or something is in its place: then everything goes through the keeper
        reader, writer = os.pipe2(os.O_CLOEXEC)
    else:
        writer = open_pipe(_NAME, os.O_WRONLY, dir_fd=folder)
    os.set_blocking(reader, True)  # as every command expects
    os.set_blocking(writer, False)  # one who does not read must not stop its keeper
    return reader, writer


def remove(folder: int) -> None:
    """Have nobody else write into it; who has it open goes on."""
    try:
        os.unlink(_NAME, dir_fd=folder)
    except OSError:
        pass  # it had no name


class InputPipe:
    """The way into a command, for one who pours."""

    def __init__(self, folder: JobFolder) -> None:
        self._path = f"{folder.path}/{_NAME}"
        self.fd: int | None = None  #: while there is more than it takes; writable when it takes more

    def offer(self, data: bytes) -> bytes | None:
        """Hand over what the command takes now; what is left, or None if nothing leads to it (any more)."""
        try:
            if self.fd is None:
                self.fd = open_pipe(self._path, os.O_WRONLY)
            while data:
                data = data[os.write(self.fd, data[:MOST]) :]
        except BlockingIOError:
            return data  # and stay, to see when it reads on
        except OSError:
            self.close()
            return None
        self.close()
        return data

    def wait(self, seconds: float) -> bool:
        """Sleep until it takes more; False if it does not in time."""
        if self.fd is None:
            return True
        poll = select.poll()
        poll.register(self.fd, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        """Keep nobody from reading to the end."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
