"""Entry point of the relay process: `python -m taskyard.postgres.relay`, started by `ensure_relay`."""

from __future__ import annotations

import os
import sys

from taskyard import config
from taskyard.errors import TaskyardError
from taskyard.postgres.relay.ensure_running import LOCK_FD, lock_path


def main() -> int:
    """Run the relay of the home in the environment until it is idle."""
    home = config.home()
    inherited = LOCK_FD if _holds_lock(lock_path(home)) else None
    try:
        from taskyard.postgres.connection import database
        from taskyard.postgres.relay.records import ensure_host
        from taskyard.postgres.relay.relay import run

        settings = config.load_settings()
        os.chdir("/")  # do not keep a folder busy
        store = database(settings.store, patience=settings.database_patience)
        run(ensure_host(home, settings), store, settings, inherited=inherited)
    except TaskyardError as error:
        from taskyard.jobs.helper_process import append_log
        from taskyard.postgres.relay.uploader import LOG

        append_log(home, LOG, str(error))
        return 1
    return 0


def _holds_lock(path: str) -> bool:
    """Return whether the lock was inherited."""
    try:
        return os.path.samestat(os.fstat(LOCK_FD), os.stat(path))
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
