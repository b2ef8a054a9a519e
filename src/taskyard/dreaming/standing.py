"""How things stand with a memory folder: when it was last dreamt of, how many sessions there were since, the gate."""

from __future__ import annotations

import time

from taskyard.dreaming import applying, gate, lock, sources
from taskyard.dreaming.side import Side
from taskyard.errors import DreamHeld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.config import Settings
    from taskyard.dreaming.gate import Gate
    from taskyard.dreaming.sources.source import Project, Session

#: Sessions that are counted at most: a number beyond is no more telling.
_MOST_COUNTED = 100_000


def named(text: str) -> tuple[str, ...]:
    """The sources that a setting names: `claude,taskyard`."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def sessions_since(names: Iterable[str], project: Project, since: float) -> list[tuple[str, Session]]:
    """The sessions that were spoken in after `since`, each with its source's name, the newest first.

    Raises:
        BadValue: there is no such source.
    """
    found: list[tuple[str, Session]] = []
    for name in names:
        for session in sources.find(name).sessions(project):
            if session.changed > since and len(found) < _MOST_COUNTED:
                found.append((name, session))
    return sorted(found, key=lambda each: (-each[1].changed, each[1].id))


def stands(memory: str, names: Sequence[str], project: Project, settings: Settings, *, held: bool = False) -> Gate:
    """The gate, as it is now; a dead dream's traces are put right first. `held`: we have the lock ourselves."""
    side = Side(memory)
    if not held:
        applying.look(side)
    is_running = not held and lock.is_running(side)
    last = lock.last_true(side) / 1e9
    now = time.time()
    return gate.judge(
        now=now,
        last_done=last,
        sessions=len(sessions_since(names, project, last if last <= now + 60 else 0.0)),
        is_running=is_running,
        hours=settings.dream_hours,
        least=settings.dream_sessions,
        is_on=settings.dream_enabled,
    )


def refuse(found: Gate) -> None:
    """Raise what holds a dream back, if anything does.

    Raises:
        DreamHeld: says what, and when the gate opens.
    """
    if not found.is_open:
        is_forcible = gate.RUNNING not in found.held_by
        why = gate.words(found, now=time.time())
        opens = None if found.opens_at is None else round(found.opens_at * 1000)
        raise DreamHeld(found.held_by, why, opens_at=opens, forcible=is_forcible)
