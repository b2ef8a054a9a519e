"""From a request to a keeper: one that was started for it, or one forked by a server for a long-lived program."""

from __future__ import annotations

import gc
import json
import os
import sys
from _socket import CMSG_LEN, socket

from taskyard.disk import files
from taskyard.disk.processes import open_descriptors
from taskyard.errors import StorageError
from taskyard.runtime import liveness, sinks
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.keeper import kernel, life, oom
from taskyard.runtime.keeper.birth import Born
from taskyard.runtime.keeper.control import name_of_keeper
from taskyard.runtime.keeper.growth import kept_head
from taskyard.runtime.keeper.request import decoded
from taskyard.runtime.keeper.signals import DEAF, HEARD, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from taskyard.runtime.keeper.request import Request

#: Where sinks may be set up: a keeper's environment stays what it was.
_SETTINGS = sinks.settings_file()

#: Bytes of a request: an environment of the largest size that the kernel takes (6 MB), as JSON writes it at worst.
_LARGEST_REQUEST = 64_000_000

#: Bytes of a descriptor's number in a message.
_INT = 4


def main(words: list[str]) -> None:
    """Be what the command line says."""
    what, fd = words[0], int(words[1])
    _close_all_but(fd)
    os.chdir("/")
    os.umask(0o077)
    for number in DEAF:
        signal.signal(number, signal.SIG_IGN)
    if what == "keep":
        if os.fork():
            os._exit(0)  # the keeper is nobody's child: whoever started it need not wait for it
        _keep(fd, answer=1)
    serve(fd)


def _close_all_but(ours: int) -> None:
    """Keep nothing of the starter's open: a lock or a pipe of a script's would be held for as long as a job lives."""
    for fd in open_descriptors():
        if fd != ours:
            try:
                os.close(fd)
            except OSError:
                pass  # the one that the numbers were read from


def serve(fd: int) -> NoReturn:
    """Fork a keeper for each request until nobody can ask any more."""
    os.environ.pop("LD_BIND_NOW", None)  # meant for us alone
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers that end are nobody's to wait for
    kernel.be_called("taskyard-forker")
    oom.kills()  # found once, and known to all keepers
    gc.collect()
    gc.freeze()  # so that no collection in a child touches what it shares with us
    sock = socket(fileno=fd)
    room = CMSG_LEN(2 * _INT)
    while True:
        _, passed, _, _ = sock.recvmsg(64, room)
        if not passed:
            os._exit(0)
        fds = passed[0][2]
        wanted, answer = int.from_bytes(fds[:_INT], sys.byteorder), int.from_bytes(fds[_INT:], sys.byteorder)
        if os.fork() == 0:
            sock.close()
            _keep(wanted, answer)
        os.close(wanted)
        os.close(answer)


def _keep(fd: int, answer: int) -> NoReturn:
    """Become the keeper of the job that is described in `fd`, and say so to `answer`; never returns."""
    code = 1
    try:
        request = decoded(files.read_open(fd, "the request", most=_LARGEST_REQUEST))
        os.close(fd)
        _stand_alone(request.id)
        try:
            born = _born(request)
        except StorageError as error:
            _say(answer, {"id": request.id, "path": error.path, "error": error.why, "advice": error.advice})
            raise
        _say(answer, {"id": request.id, "pid": os.getpid()})
        _let_go(answer)
        if born is not None:
            liveness.keep(request.id)
            life.live(born, request, settings=_SETTINGS)
        code = 0
    except BaseException as error:
        _last_words(error)
    finally:
        os._exit(code)


def _born(request: Request) -> Born | None:
    """The job in our hands: a new one, or one whose keeper is gone; None if somebody else was quicker."""
    folder = JobFolder(request.home, request.id)
    if request.again:
        from taskyard.runtime.keeper.rebirth import NothingToKeep, Reborn

        try:
            return Reborn(folder, inside=request.parent)
        except NothingToKeep:
            return None
    return Born(
        folder,
        {**request.record, "outputHead": kept_head(request.output_cap)},
        parent=request.parent,
        arguments=request.arguments,
        event_segments=request.event_segments,
        transcript=request.transcript,
    )


def _stand_alone(job_id: str) -> None:
    """Leave the session of whoever asked, and take in every orphan below."""
    # What comes before somebody listens must wait, not kill.
    signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)
    os.setsid()
    kernel.adopt_orphans()
    kernel.ask_for_short_turns()
    kernel.be_called(name_of_keeper(job_id))


def _say(answer: int, said: dict[str, object]) -> None:
    try:
        os.write(answer, json.dumps(said).encode() + b"\n")
    except OSError:
        pass  # whoever asked is gone; the job is there all the same


def _let_go(answer: int) -> None:
    """Keep no pipe of the starter's open; what else is standard leads to /dev/null from the start."""
    if answer == 1:
        os.dup2(0, 1)
    else:
        os.close(answer)


def _last_words(error: BaseException) -> None:
    """Say on stderr what a keeper died of, where somebody may see it."""
    try:
        sys.stderr.write(f"taskyard keeper: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
