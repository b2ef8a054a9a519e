"""
Whether there can be news at all, by a glance at a few folders: for those who ask at every step and mostly hear nothing.

Everything that could become a notice has a name in one of them: every job whose end is yet to be told, what waits, and
what is in somebody's hands and may come back. Jobs come first: what one of them tells meanwhile, the boxes show.
"""

from __future__ import annotations

import os

from taskyard.runtime.folder import JobFolder, living_folder
from taskyard.runtime.liveness import keeper_of


def is_quiet(home: str) -> bool:
    """Whether certainly no notice waits for anybody; where that cannot be told, it is not."""
    try:
        return _all_kept(home) and not any(map(_listed, _boxes(home)))
    except OSError:
        return False


def _all_kept(home: str) -> bool:
    return all(keeper_of(JobFolder(home, name)) is not None for name in _listed(living_folder(home)))


def _boxes(home: str) -> list[str]:
    return [f"{home}/outbox/{name}/{part}" for name in _listed(f"{home}/outbox") for part in ("new", "taken")]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
