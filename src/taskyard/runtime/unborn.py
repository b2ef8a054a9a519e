"""
A job that was about to be made when whoever wanted it died: is it there, or will it never be?

Its keeper may be on its way. A job comes into the world under a name among the living that must not exist before
(`keeper.birth`), so whoever takes that name first settles it: there will be no such job.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time

from taskyard.clock import elapsed
from taskyard.disk import files
from taskyard.plain_file import create_plain, open_plain
from taskyard.runtime.folder import JobFolder, living_folder

_FLOCK = struct.Struct("hhqqi4x")
_ASK = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)

#: A keeper locks its name, and then builds its job, within milliseconds; seconds after which one that does neither is
#: dead, and seconds after which we stop waiting for one that lives.
_DEAD, _PATIENCE = 1.0, 30.0

#: Between two looks, in seconds.
_LOOK_EVERY = 0.02


def settle(home: str, job_id: str) -> bool:
    """Whether a job is there; if not, it never will be."""
    folder = JobFolder(home, job_id)
    files.make_private_folder(living_folder(home))
    began = free_since = elapsed()
    while not os.path.lexists(folder.path):
        if _take(folder):
            return os.path.lexists(folder.path)
        now = elapsed()
        if _is_locked(folder):
            free_since = now
        if now - free_since > _DEAD or now - began > _PATIENCE:
            return os.path.lexists(folder.path)
        time.sleep(_LOOK_EVERY)
    return True


def _take(folder: JobFolder) -> bool:
    """Have the name under which the job would be born; False if somebody has it."""
    try:
        os.close(create_plain(folder.living))
    except FileExistsError:
        return False
    except OSError as error:
        raise files.storage_error(folder.living, error) from error
    if os.path.lexists(folder.path):
        files.remove(folder.living)  # it was born, and ended, between two looks
    return True


def _is_locked(folder: JobFolder) -> bool:
    try:
        fd = open_plain(folder.living)
    except OSError:
        return False
    try:
        found: int = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _ASK))[0]
    finally:
        os.close(fd)
    return found != fcntl.F_UNLCK
