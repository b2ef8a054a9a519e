"""Guard process around a program that works for an in-process teammate.

Run as `python -I -S …/child_guard.py HOME JOB STARTER WORD…`. A job inside a program has no supervisor. The
guard kills everything the program started when it exits, including processes that left its session, and does
the same when the program around the teammate dies. Jobs started on the way have supervisors of their own,
which are never signalled.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE = os.path.abspath(__file__)

#: Seconds between SIGTERM and SIGKILL: less than the grace period of a job.
_GRACE = 1.0

#: Exit code of shells for a program that does not exist.
_NOT_FOUND = 127


class _Terminated(Exception):
    """SIGTERM was received."""


def guard_command(*, home: str, job: str) -> tuple[str, ...]:
    """Return the prefix of a command line that runs it under a guard."""
    return (sys.executable, "-I", "-S", _FILE, home, job, str(os.getpid()))


def main(arguments: Sequence[str]) -> int:
    """Run a program until it exits, then kill its descendants; return its exit code, below 0 the signal."""
    import signal

    from taskyard.jobs.job_dir import JobPaths
    from taskyard.jobs.supervisor import kernel
    from taskyard.jobs.supervisor.child_jobs import ChildJobs
    from taskyard.jobs.supervisor.terminate import kill_all

    home, job, starter, *words = arguments
    kernel.become_subreaper()
    kernel.set_process_name("taskyard-guard")
    signal.signal(signal.SIGTERM, _on_sigterm)
    kernel.set_parent_death_signal(signal.SIGTERM)
    if os.getppid() != int(starter):
        return 1  # it died before the parent-death signal was set
    try:
        code = _run(words)
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = -int(signal.SIGTERM)
        _terminate_descendants(ChildJobs(JobPaths(home, job)).supervisors())
    kill_all(ChildJobs(JobPaths(home, job)).supervisors)
    return code


def _on_sigterm(*_: object) -> None:
    raise _Terminated


def _run(words: Sequence[str]) -> int:
    from taskyard.jobs.supervisor.kernel import ALL_SIGNALS

    try:
        pid = os.posix_spawnp(words[0], list(words), os.environ, setsigmask=(), setsigdef=ALL_SIGNALS)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NOT_FOUND
    while True:
        ended, status = os.waitpid(-1, 0)  # orphans are reaped along the way
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def _terminate_descendants(exclude: frozenset[int]) -> None:
    """Send SIGTERM to all descendants, and give them a grace period."""
    import signal
    import time

    from taskyard.jobs.supervisor import terminate

    below = terminate.descendants(os.getpid(), exclude=exclude)
    terminate.signal_all(below, signal.SIGTERM)
    terminate.signal_all(below, signal.SIGCONT)
    until = time.monotonic() + _GRACE
    while time.monotonic() < until and terminate.descendants(os.getpid(), exclude=exclude):
        time.sleep(0.01)


def _exit_like(code: int) -> None:
    """Exit as the program did."""
    import signal

    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(os.path.join(_FILE, *[os.pardir] * 4)))
    _exit_like(main(sys.argv[1:]))
