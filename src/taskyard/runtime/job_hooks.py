"""
JobEnded hooks: other people's commands that are told of an end, by a process of its own.

A keeper runs nobody's code, so it only looks whether any settings file speaks of them, and then starts
`taskyard __job_ended ID`. The file `hooks` in the job's folder is made first, exclusively: whoever completes an end
that somebody died over sees that it was told. No hook can delay or change an end.
"""

from __future__ import annotations

import os

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError
from taskyard.plain_file import open_plain
from taskyard.runtime.helper import start_helper
from taskyard.runtime.log import note
from taskyard.shapes import as_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.folder import JobFolder

#: What a settings file must hold before it is worth being read as one.
_NAME = b"JobEnded"

#: Where failures are noted: nobody waits for these hooks.
LOG = "hooks.log"


def tell_hooks(folder: JobFolder, places: object) -> None:
    """Have the hooks of this end run, once, if there are any. `places` are the files that may hold them."""
    if not places or not any(isinstance(place, str) and _speaks_of_it(place) for place in as_list(places) or ()):
        return
    try:
        files.create(folder.hooks, b"")
        start_helper(folder.home, "__job_ended", folder.id)
    except FileExistsError:
        pass  # told before, by somebody who died after that
    except (OSError, StorageError) as error:
        note(folder.home, LOG, f"{folder.id}: {error}")


def _speaks_of_it(place: str) -> bool:
    try:
        fd = open_plain(place, follow=True)
    except OSError:
        return False
    try:
        return _NAME in files.read_open(fd, place)
    except (OSError, Damaged, StorageError):
        return False
    finally:
        os.close(fd)
