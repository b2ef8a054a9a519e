"""
What a forked child must do before all else, such as letting go of its parent's locks.

It is registered with the first need of it, not with the import: a server that forks hundreds of keepers has no lock
and no log open, and every step that all of them take counts.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_minded: set[Callable[[], None]] = set()


def mind(action: Callable[[], None]) -> None:
    """Have every child that is forked from now on call `action` first; once, however often this is said."""
    if action not in _minded:
        _minded.add(action)
        os.register_at_fork(after_in_child=action)
