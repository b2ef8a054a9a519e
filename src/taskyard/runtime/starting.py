"""From a wish to a job: a request is written, a keeper is made for it, and the job is there when the call returns."""

from __future__ import annotations

import json
import os
import sys

from taskyard.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_KEEPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keeper", "__main__.py")


def keeper_command(what: str, fd: int) -> list[str]:
    """How a keeper, or a server of keepers, is started: isolated, so that nothing of the caller's environment loads."""
    return [sys.executable, "-I", "-S", _KEEPER, what, str(fd)]


def request_file(request: Mapping[str, object]) -> int:
    """A descriptor that holds the request, of any size, and no file that anyone could open."""
    fd = os.memfd_create("taskyard-request", os.MFD_CLOEXEC)
    data = json.dumps(request).encode("utf-8", "surrogatepass")
    while data:
        data = data[os.write(fd, data) :]
    return fd


def start_alone(request: Mapping[str, object]) -> None:
    """Start a keeper of its own for one job; when this returns the job is there.

    Raises:
        StorageError: it could not be made.
    """
    wanted = request_file(request)
    answer, theirs = os.pipe2(os.O_CLOEXEC)
    os.set_inheritable(wanted, True)
    try:
        os.posix_spawn(
            sys.executable,
            keeper_command("keep", wanted),
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 1)],
        )
    finally:
        os.close(wanted)
        os.close(theirs)
    try:
        said = b""
        while data := os.read(answer, 65536):
            said += data
            if said.endswith(b"\n"):
                break
    finally:
        os.close(answer)
    understood(said)


def understood(said: bytes) -> None:
    """Raise what a keeper had to say against its job."""
    try:
        answer = json.loads(said)
    except ValueError:
        raise StorageError("the keeper", "it ended before the job was there") from None
    if "error" in answer:
        raise StorageError("the job", str(answer["error"]))
