"""The relay as a process of its own: `python -m taskyard.relay`, started by `summon`."""

from __future__ import annotations

import os
import sys

from taskyard import config, paths
from taskyard.errors import TaskyardError
from taskyard.relay.summon import INHERITED, lock_path


def main() -> int:
    """Be the relay of the home in our environment, until there is nothing left to do."""
    home = paths.home()
    inherited = INHERITED if _is_lock(lock_path(home)) else None
    try:
        from taskyard.database.pool import database
        from taskyard.relay.host import host_of
        from taskyard.relay.life import run

        settings = config.load()
        os.chdir("/")  # no folder of anybody's is held by us
        store = database(settings.store, patience=settings.database_patience)
        run(host_of(home, settings), store, settings, inherited=inherited)
    except TaskyardError as error:
        from taskyard.relay.forwarding import LOG
        from taskyard.runtime.log import note

        note(home, LOG, str(error))
        return 1
    return 0


def _is_lock(path: str) -> bool:
    """Whether we were born with the lock in hand."""
    try:
        return os.path.samestat(os.fstat(INHERITED), os.stat(path))
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
