"""After an emergency stop nothing wakes an agent until a person lets go: a file that says so."""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files


def hold(home: str, *, by: str) -> None:
    """Let no notice reach an agent from now on."""
    files.make_private_folder(home)
    files.replace(_path(home), json.dumps({"by": by, "at": now_ms()}).encode())


def release(home: str) -> bool:
    """Let notices flow again; whether they were held."""
    try:
        os.unlink(_path(home))
    except FileNotFoundError:
        return False
    return True


def is_held(home: str) -> bool:
    """Whether notices are held back."""
    return os.path.lexists(_path(home))


def _path(home: str) -> str:
    return f"{home}/hold"
