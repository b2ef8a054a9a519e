"""A hold on all notices: while `<home>/hold` exists, nothing wakes an agent. Set by `stop --all --hold`."""

from __future__ import annotations

import os

from taskyard.disk import files


def is_on(home: str) -> bool:
    """Whether notices are held back."""
    return os.path.lexists(_path(home))


def put_on(home: str) -> None:
    """Hand no more notices to agents until `release`."""
    files.make_private_folder(home)
    files.replace(_path(home), b"")


def release(home: str) -> bool:
    """Let notices go again; False if nothing held them."""
    try:
        os.unlink(_path(home))
    except FileNotFoundError:
        return False
    return True


def _path(home: str) -> str:
    return f"{home}/hold"
