"""Start detached `taskyard` processes from small ones such as supervisors, and JobEnded hooks.

JobEnded hooks are user commands run when a job ends. A supervisor runs no user code, so it only checks
whether a settings file mentions them, and then starts `taskyard __job_ended ID`. The file `hooks` in the
job's folder is created first, exclusively: a process that completes an end after a crash sees that they
were started. No hook can delay or change an end.

Failures of hooks and sinks, which no process waits for, are logged in `<home>/hooks.log` and
`<home>/sinks.log`.
"""

from __future__ import annotations

import json
import os
import sys

from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.system import iso, now_ms, open_descriptors
from taskyard.core.values import as_list
from taskyard.errors import Damaged, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.jobs.job_dir import JobPaths


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: Starts the command line from this package's location, without the caller's Python settings.
_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from taskyard.cli.main import main; sys.exit(main())"


#: Runs its arguments as an orphan, so that a long-lived caller need not reap it.
_DETACH = ["/bin/sh", "-c", '"$@" &', "sh"]


def start_helper(home: str, *words: str) -> None:
    """Start `taskyard WORDS` for the jobs in `home`, in its own session, with none of our descriptors.

    Raises:
        OSError: it cannot be started.
    """
    streams: Sequence[tuple[object, ...]] = [
        *((os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)),
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in open_descriptors()),
    ]
    command = [*_DETACH, sys.executable, "-I", "-S", "-c", _PROGRAM, os.path.dirname(_PACKAGE), *words]
    pid = os.posix_spawn(command[0], command, {**os.environ, "TASKYARD_HOME": home}, file_actions=streams, setsid=True)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # this program reaps no children


#: Bytes after which a log is truncated.
_MAX_LOG = 256 * 1024


def append_log(home: str, log: str, text: str) -> None:
    """Append a line to a log; errors are ignored, since there is nowhere left to report them."""
    try:
        fd = open_plain(f"{home}/{log}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            if os.fstat(fd).st_size > _MAX_LOG:
                os.ftruncate(fd, 0)
            files.write_all(fd, json.dumps({"at": iso(now_ms()), "what": text}).encode() + b"\n")
        finally:
            os.close(fd)
    except OSError:
        pass


#: A settings file without this is not parsed.
_HOOK_NAME = b"JobEnded"

#: Log of failures: no process waits for these hooks.
HOOKS_LOG = "hooks.log"


def start_hooks(folder: JobPaths, places: object) -> None:
    """Start the hooks of this end once, if there are any. `places` are the files that may define them."""
    if not places or not any(isinstance(place, str) and _mentions_hooks(place) for place in as_list(places) or ()):
        return
    try:
        files.create(folder.hooks, b"")
        start_helper(folder.home, "__job_ended", folder.id)
    except FileExistsError:
        pass  # started before, by a process that was killed after that
    except (OSError, StorageError) as error:
        append_log(folder.home, HOOKS_LOG, f"{folder.id}: {error}")


def _mentions_hooks(place: str) -> bool:
    try:
        fd = open_plain(place, follow=True)
    except OSError:
        return False
    try:
        return _HOOK_NAME in files.read_open(fd, place)
    except (OSError, Damaged, StorageError):
        return False
    finally:
        os.close(fd)
