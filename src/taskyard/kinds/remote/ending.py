"""Ending a session where it runs, and seeing that it ended: by the place's word, or not at all."""

from __future__ import annotations

import asyncio

from taskyard.clock import elapsed
from taskyard.kinds.remote.line import Trouble
from taskyard.runtime.facts import CONFIRMED, UNCONFIRMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.kinds.remote.line import Line
    from taskyard.kinds.remote.sidecar import Sidecar
    from taskyard.kinds.remote.writing import Writing
    from taskyard.runtime.context import JobContext

#: Seconds that are left of a stop's grace for us to write down what came of it.
_LAST = 0.4

#: Seconds between two looks whether it ended, and before a place that cannot be reached is tried again.
_LOOK, _AGAIN = 0.1, 0.5

#: So often a place that cannot be reached is tried: whoever stops a job waits for the answer.
_TRIES = 4


async def end_there(
    line: Line, sidecar: Sidecar, writing: Writing, context: JobContext, *, grace: float, name: str
) -> None:
    """End the session, and tell whether it is over; bounded by `grace` seconds."""
    session = sidecar.place.session
    if not session:
        if sidecar.may_have_begun:
            context.tell(**{UNCONFIRMED: f"whether it had begun at {name} is not known"})
        else:
            context.tell(**{CONFIRMED: True})
        return
    deadline, tries, why = elapsed() + max(grace - _LAST, 0.5), 0, f"{name} has not ended it in time"
    while (left := deadline - elapsed()) > 0 and tries < _TRIES:
        try:
            await line.ask(lambda backend: backend.stop(session), patience=left)
            seen = await line.ask(lambda backend: backend.poll(session, sidecar.place.cursor), patience=left)
        except Trouble as trouble:
            why, tries = trouble.why, tries + 1
            await asyncio.sleep(_AGAIN)
            continue
        writing.add(seen.text, seen.cursor)
        if seen.state.is_final:
            context.tell(**{CONFIRMED: True, "disconnected": None, "needsInput": False})
            return
        await asyncio.sleep(_LOOK)
    context.tell(**{UNCONFIRMED: f"it may go on at {name}: {why}"})
