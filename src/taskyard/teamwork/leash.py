"""
Around a program that works for a teammate inside another program: `python -I -S …/leash.py HOME JOB STARTER WORD…`.

A job inside a program has no keeper. This stands between the two: whatever the program started ends with it, also what
left its session, and all of it ends when the program around the teammate dies. Jobs that were started on the way have
keepers of their own, which are never signalled.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE = os.path.abspath(__file__)

#: Seconds between asking and making: less than the grace of a job.
_GRACE = 1.0

#: What shells answer for a program that is not there.
_NOT_FOUND = 127


class _Asked(Exception):
    """Somebody wants it to end."""


def leashed(*, home: str, job: str) -> tuple[str, ...]:
    """The words before a command line that run it so."""
    return (sys.executable, "-I", "-S", _FILE, home, job, str(os.getpid()))


def main(arguments: Sequence[str]) -> int:
    """Run a program to its end, and everything below it; its exit code, below 0 the signal that ended it."""
    import signal

    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.keeper import kernel
    from taskyard.runtime.keeper.ladder import sweep
    from taskyard.runtime.keeper.others import Others

    home, job, starter, *words = arguments
    kernel.adopt_orphans()
    kernel.be_called("taskyard-leash")
    signal.signal(signal.SIGTERM, _ask)
    kernel.be_told_of_parents_death(signal.SIGTERM)
    if os.getppid() != int(starter):
        return 1  # it died before we could ask to be told
    try:
        code = _run(words)
    except _Asked:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = -int(signal.SIGTERM)
        _ask_everybody(Others(JobFolder(home, job)).keepers())
    sweep(Others(JobFolder(home, job)).keepers)
    return code


def _ask(*_: object) -> None:
    raise _Asked


def _run(words: Sequence[str]) -> int:
    from taskyard.runtime.keeper.signals import ALL

    try:
        pid = os.posix_spawnp(words[0], list(words), os.environ, setsigmask=(), setsigdef=ALL)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NOT_FOUND
    while True:
        ended, status = os.waitpid(-1, 0)  # orphans are collected along the way
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


def _ask_everybody(but: frozenset[int]) -> None:
    """Ask all below us to end, and give them a while."""
    import signal
    import time

    from taskyard.runtime.keeper import tree

    below = tree.below(os.getpid(), but=but)
    tree.signal_all(below, signal.SIGTERM)
    tree.signal_all(below, signal.SIGCONT)
    until = time.monotonic() + _GRACE
    while time.monotonic() < until and tree.below(os.getpid(), but=but):
        time.sleep(0.01)


def _end(code: int) -> None:
    """End as the program did."""
    import signal

    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(_FILE))))
    _end(main(sys.argv[1:]))
