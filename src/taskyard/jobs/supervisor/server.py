"""Start of supervisors: one process per request, or forked by a server for a long-lived program."""

from __future__ import annotations

import gc
import json
import os
import sys
from _socket import CMSG_LEN, socket

from taskyard.core import files
from taskyard.core.system import open_descriptors
from taskyard.errors import StorageError
from taskyard.jobs import job_dir, sinks
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.supervisor import kernel, run
from taskyard.jobs.supervisor.create import JobDir
from taskyard.jobs.supervisor.io import supervisor_name
from taskyard.jobs.supervisor.kernel import HANDLED_SIGNALS, IGNORED_SIGNALS, signal
from taskyard.jobs.supervisor.output_cap import head_size
from taskyard.jobs.supervisor.request import decode_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from taskyard.jobs.supervisor.request import JobRequest

#: Path of the settings file for sinks, resolved once: a supervisor's environment does not change.
_SETTINGS = sinks.settings_file()

#: Most bytes of a request: the largest environment the kernel accepts (6 MB), in its longest JSON encoding.
_LARGEST_REQUEST = 64_000_000

#: Bytes of a descriptor number in a message.
_INT = 4


def main(words: list[str]) -> None:
    """Run as a supervisor (`keep`) or as a server (`serve`), as the command line states."""
    what, fd = words[0], int(words[1])
    _close_other_fds(fd)
    os.chdir("/")
    os.umask(0o077)
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if what == "keep":
        if os.fork():
            os._exit(0)  # the supervisor is reparented, so that its starter need not wait for it
        _supervise(fd, answer=1)
    serve(fd)


def _close_other_fds(ours: int) -> None:
    """Close the starter's descriptors: a script's lock or pipe would stay open as long as the job runs."""
    for fd in open_descriptors():
        if fd != ours:
            try:
                os.close(fd)
            except OSError:
                pass  # the descriptor of the directory listing itself


def serve(fd: int) -> NoReturn:
    """Fork a supervisor for each request until all clients have closed the socket."""
    os.environ.pop("LD_BIND_NOW", None)  # meant for this process only
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # exited supervisors are reaped by the kernel
    kernel.set_process_name("taskyard-supervisors")
    kernel.oom_kills()  # found once, inherited by all supervisors
    gc.collect()
    gc.freeze()  # so that no collection in a child touches shared pages
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
            _supervise(wanted, answer)
        os.close(wanted)
        os.close(answer)


def _supervise(fd: int, answer: int) -> NoReturn:
    """Become the supervisor of the job described in `fd` and report that to `answer`; never return."""
    code = 1
    try:
        request = decode_request(files.read_open(fd, "the request", most=_LARGEST_REQUEST))
        os.close(fd)
        _detach(request.id)
        try:
            born = _open_job_dir(request)
        except StorageError as error:
            _reply(answer, {"id": request.id, "path": error.path, "error": error.why, "advice": error.advice})
            raise
        _reply(answer, {"id": request.id, "pid": os.getpid()})
        _close_reply(answer)
        if born is not None:
            job_dir.set_supervised(request.id)
            run.run_job(born, request, settings=_SETTINGS)
        code = 0
    except BaseException as error:
        _report_crash(error)
    finally:
        os._exit(code)


def _open_job_dir(request: JobRequest) -> JobDir | None:
    """Create the job's folder, or recover one without a supervisor; return None if another process was faster."""
    folder = JobPaths(request.home, request.id)
    if request.again:
        from taskyard.jobs.supervisor.create import NotRecoverable, RecoveredJobDir

        try:
            return RecoveredJobDir(folder, inside=request.parent)
        except NotRecoverable:
            return None
    return JobDir(
        folder,
        {**request.record, "outputHead": head_size(request.output_cap)},
        parent=request.parent,
        arguments=request.arguments,
        event_segments=request.event_segments,
        transcript=request.transcript,
    )


def _detach(job_id: str) -> None:
    """Leave the starter's session and become the subreaper of every orphan below."""
    # Signals that arrive before the handlers are installed must wait, not kill us.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
    os.setsid()
    kernel.become_subreaper()
    kernel.request_short_slices()
    kernel.set_process_name(supervisor_name(job_id))


def _reply(answer: int, said: dict[str, object]) -> None:
    try:
        os.write(answer, json.dumps(said).encode() + b"\n")
    except OSError:
        pass  # the starter is gone; the job exists all the same


def _close_reply(answer: int) -> None:
    """Close the starter's pipe; the other standard descriptors are /dev/null from the start."""
    if answer == 1:
        os.dup2(0, 1)
    else:
        os.close(answer)


def _report_crash(error: BaseException) -> None:
    """Write the cause of a supervisor's crash to stderr."""
    try:
        sys.stderr.write(f"taskyard supervisor: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
