"""
How a teammate works: the loop, and what it needs.

    loop         claim, work, complete, look again, idle
    desk         what it does with list, mail and team
    lookout      who is woken when the list changes; one for all in a program
    post         mail in and out: letters, shutting down, plans
    running      one teammate from joining to leaving
    embedding    teammates whose work is a function of your program

Pure: `plan`, `prompts`, `idle`, `failing`, `colours`. The kind of job is `taskyard.kinds.teammate`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.teamwork.embedding import Working as Working
    from taskyard.teamwork.embedding import run as run
    from taskyard.teamwork.identity import current as current
    from taskyard.teamwork.loop import Turn as Turn

__all__ = ["Turn", "Working", "current", "run"]

_HOMES = {"Turn": "loop", "Working": "embedding", "current": "identity", "run": "embedding"}


def __getattr__(name: str) -> object:
    """Load a name from where it lives, when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'taskyard.teamwork' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"taskyard.teamwork.{_HOMES[name]}"), name)
