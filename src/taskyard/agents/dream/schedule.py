"""Decide whether a dream of a memory folder is due: last run, sessions since, running dreams."""

from __future__ import annotations

import time

from taskyard.agents.dream import sources, staging
from taskyard.agents.dream.staging import DreamDir
from taskyard.errors import DreamHeld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from taskyard.agents.dream.sources import Project, Session
    from taskyard.agents.dream.staging import Readiness
    from taskyard.config import Settings

#: Maximum sessions counted.
_MOST_COUNTED = 100_000


def parse_source_names(text: str) -> tuple[str, ...]:
    """Parse the source names of a setting: `claude,taskyard`."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def sessions_since(names: Iterable[str], project: Project, since: float) -> list[tuple[str, Session]]:
    """Return the sessions that changed after `since`, each with its source's name, newest first.

    Raises:
        BadValue: there is no such source.
    """
    found: list[tuple[str, Session]] = []
    for name in names:
        for session in sources.find(name).sessions(project):
            if session.changed > since and len(found) < _MOST_COUNTED:
                found.append((name, session))
    return sorted(found, key=lambda each: (-each[1].changed, each[1].id))


def check_schedule(
    memory: str, names: Sequence[str], project: Project, settings: Settings, *, held: bool = False
) -> Readiness:
    """Return the current readiness, after recovery from a dead dream. `held`: the caller has the lock."""
    side = DreamDir(memory)
    if not held:
        staging.recover_if_idle(side)
    is_running = not held and staging.is_running(side)
    last = staging.last_success(side) / 1e9
    now = time.time()
    return staging.check_readiness(
        now=now,
        last_done=last,
        sessions=len(sessions_since(names, project, last if last <= now + 60 else 0.0)),
        is_running=is_running,
        hours=settings.dream_hours,
        least=settings.dream_sessions,
        is_on=settings.dream_enabled,
    )


def require_ready(found: Readiness) -> None:
    """Raise unless a dream may start.

    Raises:
        DreamHeld: names what blocks it, and when it becomes possible.
    """
    if not found.is_open:
        is_forcible = staging.RUNNING not in found.held_by
        why = staging.format_reasons(found, now=time.time())
        opens = None if found.opens_at is None else round(found.opens_at * 1000)
        raise DreamHeld(found.held_by, why, opens_at=opens, forcible=is_forcible)
