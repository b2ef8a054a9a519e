"""From a request to a keeper: one that was started for it, or one forked by a server for a long-lived program."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys

from taskyard.disk import files
from taskyard.errors import StorageError
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper import kernel, life
from taskyard.runtime.keeper.birth import Born
from taskyard.runtime.keeper.control import name_of_keeper
from taskyard.runtime.keeper.request import from_json
from taskyard.runtime.keeper.wires import HEARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

#: Keepers outlive terminals and those who press keys in them.
_DEAF = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP)


def main(words: list[str]) -> None:
    """Be what the command line says."""
    what, fd = words[0], int(words[1])
    if what == "keep":
        if os.fork():
            os._exit(0)  # the keeper is nobody's child: whoever started it need not wait for it
        _keep(fd)
    serve(fd)


def serve(fd: int) -> None:
    """Fork a keeper for each request until nobody can ask any more."""
    sys.modules["hmac"] = __import__("hmac")  # loaded once here, shared by all keepers
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers that end are nobody's to wait for
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    kernel.be_called("taskyard-forker")
    gc.collect()
    gc.freeze()  # so that no collection in a child touches what it shares with us
    sock = socket.socket(fileno=fd)
    while True:
        _, fds, _, _ = socket.recv_fds(sock, 64, 2)
        if len(fds) < 2:
            os._exit(0)
        wanted, answer = fds
        if os.fork() == 0:
            sock.close()
            os.dup2(answer, 1)
            os.close(answer)
            _keep(wanted)
        os.close(wanted)
        os.close(answer)


def _keep(fd: int) -> NoReturn:
    """Become the keeper of the job that is described in `fd`, and say so on stdout; never returns."""
    code = 1
    try:
        request = from_json(json.loads(files.read_open(fd, "the request")))
        os.close(fd)
        _stand_alone(request.id)
        try:
            born = Born(
                JobFolder(request.home, request.id),
                request.record,
                parent=request.parent,
                arguments=request.arguments,
            )
        except StorageError as error:
            _say({"id": request.id, "path": error.path, "error": error.why, "advice": error.advice})
            raise
        _say({"id": request.id, "pid": os.getpid()})
        _close_standard()
        life.live(born, request)
        code = 0
    except BaseException as error:
        _last_words(error)
    finally:
        os._exit(code)


def _stand_alone(job_id: str) -> None:
    """Leave the session of whoever asked, hear no terminal, take in every orphan below."""
    # What comes before somebody listens must wait, not kill.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    for number in _DEAF:
        signal.signal(number, signal.SIG_IGN)
    kernel.adopt_orphans()
    kernel.be_called(name_of_keeper(job_id))


def _close_standard() -> None:
    """Keep no terminal and no pipe of the starter's open."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _say(answer: dict[str, object]) -> None:
    try:
        os.write(1, json.dumps(answer).encode() + b"\n")
    except OSError:
        pass  # whoever asked is gone; the job is there all the same


def _last_words(error: BaseException) -> None:
    """Say on stderr what a keeper died of, where somebody may see it."""
    try:
        sys.stderr.write(f"taskyard keeper: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
