"""
From a wish to a job: a request is written, a keeper is made for it, and the job is there when the call returns.

A command line starts one keeper and is gone. A program that lives on has a server that forks keepers, a
millisecond each; the jobs survive the server as they survive the program.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from _thread import allocate_lock

from taskyard.errors import StorageError
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper.request import encoded
from taskyard.runtime.keeper.signals import ALL
from taskyard.runtime.machine import check_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_KEEPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper", "__main__.py")

#: How long a child that has nothing left to do may take to end.
_PATIENCE = 2.0

#: How often a keeper is asked for, if those before were killed over it.
TRIES = 3

#: What a keeper must not take for its own: the job in which it is started.
_NOT_OURS = ("TASKYARD_JOB", "TASKYARD_INSTANCE")


def request_file(request: Mapping[str, object]) -> int:
    """A descriptor that holds the request, of any size, and no file that anyone could open."""
    fd = os.memfd_create("taskyard-request", os.MFD_CLOEXEC)
    data = encoded(request)
    while data:
        data = data[os.write(fd, data) :]
    return fd


def start_alone(request: Mapping[str, object]) -> None:
    """Start a keeper of its own for one job; when this returns the job is there.

    Raises:
        StorageError: it could not be made.
    """
    check_machine()
    for _ in range(TRIES):
        if is_made(request, _asked_alone(request)):
            return
    understood(b"")


def _asked_alone(request: Mapping[str, object]) -> bytes:
    wanted = request_file(request)
    answer, theirs = os.pipe2(os.O_CLOEXEC)
    try:
        child = _spawn("keep", wanted, stdout=theirs)
    finally:
        os.close(wanted)
        os.close(theirs)
    said = answered(answer)
    _reap(child)  # it left its keeper behind as nobody's child, and ended
    return said


class Forker:
    """A server of keepers, for one process and its threads; started with the first job."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._owner = self._pid = 0
        self._one_at_a_time = allocate_lock()

    def start(self, request: Mapping[str, object]) -> None:
        """Have a keeper forked for one job; when this returns the job is there.

        Raises:
            StorageError: it could not be made.
        """
        check_machine()
        for _ in range(TRIES):
            if is_made(request, answered(self.ask(request))):
                return
        understood(b"")

    def ask(self, request: Mapping[str, object]) -> int:
        """Have a keeper forked; the descriptor its answer will come from."""
        wanted = request_file(request)
        answer, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            with self._one_at_a_time:
                for first in (True, False):
                    try:
                        socket.send_fds(self._server(), [b"keep"], [wanted, theirs])
                        return answer
                    except OSError as error:
                        self._let_go()  # it was killed: its keepers live, and another will do
                        if not first:
                            raise StorageError("the keepers' server", error.strerror or str(error)) from error
        finally:
            os.close(wanted)
            os.close(theirs)
        raise AssertionError  # the loop returns or raises

    def _server(self) -> socket.socket:
        if self._socket is None or self._owner != os.getpid():
            self._let_go()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._pid = _spawn("serve", theirs.fileno())
            self._socket, self._owner = ours, os.getpid()
        return self._socket

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()  # which is how the server learns that nobody will ask any more
            self._socket = None
            if self._owner == os.getpid():
                _reap(self._pid)

    def close(self) -> None:
        """End the server; what it forked lives on."""
        with self._one_at_a_time:
            self._let_go()

    def __del__(self) -> None:
        """Let the server go also where nobody said so."""
        if self._socket is not None:
            self._socket.close()


def _spawn(what: str, fd: int, stdout: int | None = None) -> int:
    """Start the keeper program, isolated: two descriptors, no signal ignored, nothing of ours that loads code."""
    copy = os.dup(fd)  # inheritable for this one child, which closes every other that it gets
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    env = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    if what == "serve":
        env["LD_BIND_NOW"] = "1"  # libraries are linked here and now, not call by call in every keeper
    try:
        # 0-2 are set, 3 is the one that was asked for; a copy on itself would stay close-on-exec.
        actions = [
            (os.POSIX_SPAWN_DUP2, null, 0),
            (os.POSIX_SPAWN_DUP2, null if stdout is None else stdout, 1),
            (os.POSIX_SPAWN_DUP2, null, 2),
        ]
        os.set_inheritable(copy, True)
        words = [sys.executable, "-I", "-S", _KEEPER, what, str(copy)]
        return os.posix_spawn(words[0], words, env, file_actions=actions, setsigmask=[], setsigdef=ALL)
    finally:
        os.close(copy)
        os.close(null)


def _reap(pid: int) -> None:
    """Collect a child that is about to end, so that it does not stay a zombie; one that does not is left."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return  # another part of this program collected it
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        poll.poll(_PATIENCE * 1000)
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
    finally:
        os.close(fd)


def answered(answer: int) -> bytes:
    """What a keeper says of itself; closes the descriptor."""
    said = b""
    try:
        while data := os.read(answer, 65536):
            said += data
            if said.endswith(b"\n"):
                break
    finally:
        os.close(answer)
    return said


def is_made(request: Mapping[str, object], said: bytes) -> bool:
    """Whether the job is there, by what its keeper said; False: it was killed on the way, and another may try.

    Raises:
        StorageError: the keeper says why it could not be made.
    """
    if said:
        understood(said)
        return True
    # Nobody has the other end of the answer open any more: neither server nor keeper lives to make it still.
    folder = JobFolder(str(request["home"]), str(request["id"]))
    if os.path.lexists(folder.path):
        return True  # killed just after: the job is there, and lost
    from taskyard.disk import files
    from taskyard.runtime.sweeping import remove_folder

    remove_folder(folder.half_made)
    files.remove(folder.living)
    return False


def understood(said: bytes) -> None:
    """Raise what a keeper had to say against its job."""
    try:
        answer = json.loads(said)
    except ValueError:
        raise StorageError("the keeper", "it ended before the job was there") from None
    if "error" in answer:
        raise StorageError(str(answer["path"]), str(answer["error"]), advice=str(answer["advice"]))
