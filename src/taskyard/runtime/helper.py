"""Starting the command line for something that nobody waits for, from a process that has loaded next to nothing."""

from __future__ import annotations

import os
import sys

from taskyard.disk.processes import open_descriptors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: Starts the command line from wherever this package is, with nothing of the caller's Python settings.
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.cli.main import main; sys.exit(main())"


#: Has its words run by nobody's child: whoever asked may live long, and need not collect it.
_LET_GO = ["/bin/sh", "-c", '"$@" &', "sh"]


def start_helper(home: str, *words: str) -> None:
    """Start `taskyard WORDS` for the jobs in `home`, in a session of its own, with nothing of ours open.

    Raises:
        OSError: it cannot be.
    """
    streams: Sequence[tuple[object, ...]] = [
        *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in open_descriptors()),
    ]
    command = [*_LET_GO, sys.executable, "-I", "-S", "-c", _PROGRAM, os.path.dirname(_PACKAGE), *words]
    pid = os.posix_spawn(command[0], command, {**os.environ, "TASKYARD_HOME": home}, file_actions=streams, setsid=True)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # this program collects no children
