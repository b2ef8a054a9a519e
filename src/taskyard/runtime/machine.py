"""What a machine must have for background jobs, checked before one is started."""

from __future__ import annotations

import os

from taskyard.errors import StorageError

#: Descriptors that a supervisor and the command that starts it may need at once.
_LEAST_FILES = 32

MORE_FILES = "Raise the limit of open files, for example `ulimit -n 1024`, and try again."


def check_machine() -> None:
    """Refuse to start a job that could not be supervised.

    Raises:
        StorageError: `/proc` is not mounted, or too few files may be open.
    """
    if not os.path.exists("/proc/self/stat"):
        raise StorageError(
            "/proc",
            "it is not mounted, and a job's supervisor needs it to find the job's processes",
            advice="Mount it: `mount -t proc proc /proc`.",
        )
    from resource import RLIMIT_NOFILE, getrlimit

    most = getrlimit(RLIMIT_NOFILE)[0]
    if 0 <= most < _LEAST_FILES:
        why = f"at most {most} files may be open, and a job's supervisor needs {_LEAST_FILES}"
        raise StorageError("this process", why, advice=MORE_FILES)
