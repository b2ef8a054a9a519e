"""Asking the relay of another home for something, and waiting for its answer: told by it, and never without end."""

from __future__ import annotations

import json
import os

from taskyard.clock import elapsed
from taskyard.errors import HostAway, OutcomeUnknown, StorageError
from taskyard.relay.carrying import ONCE
from taskyard.relay.troubles import from_json
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.database.pool import Database
    from taskyard.relay.records import Far

#: Seconds until an answer is missed, beyond what carrying it out takes.
PATIENCE = 10.0

#: Nobody tells that a host fell silent: see for ourselves this often, in seconds.
_LOOK_EVERY = 2.0

_ASK = """
    WITH made AS (
        INSERT INTO request (id, host, job, verb, arguments, asked_by, reply_to, state, changed)
        VALUES (%s, %s, %s, %s, %s, %s, %s, 'asked', clock_timestamp()) ON CONFLICT (id) DO NOTHING
    )
    SELECT pg_notify(%s, '')
"""

_LOOK = """
    SELECT r.state, r.answer, h.until >= clock_timestamp(), extract(epoch FROM clock_timestamp() - h.heard)::float8
    FROM request r JOIN host h ON h.id = r.host WHERE r.id = %s
"""

#: What nobody began yet will not be done, from now on.
_WITHDRAW = """
    UPDATE request SET state = 'withdrawn', changed = clock_timestamp()
    WHERE id = %s AND state IN ('asked', 'withdrawn') RETURNING id
"""


class Asking:
    """One who asks."""

    def __init__(self, database: Database, agent: str | None) -> None:
        self._database = database
        self._agent = agent or ""
        self._channel = f"answers_{os.urandom(6).hex()}"

    def ask(
        self, far: Far, verb: str, arguments: Mapping[str, object] | None = None, *, takes: float = 0.0
    ) -> dict[str, object]:
        """What the relay of a job's host answers; it may take `takes` seconds over it.

        Raises:
            HostAway: nothing is heard of that host.
            OutcomeUnknown: it began, was cut off, and doing it again could do harm.
            TaskyardError: whatever was raised there.
        """
        if not far.is_heard:
            raise HostAway(far.job.host_name, far.job.id, seconds=far.silence)
        from uuid import uuid4

        sound = self._database.ear.sound(self._channel)
        count, request = sound.count, str(uuid4())
        until = elapsed() + takes + PATIENCE
        words = [request, far.host, far.job.id, verb, json.dumps(dict(arguments or {})), self._agent, self._channel]
        self._database.ask(_ASK, [*words, f"host_{far.host}"])
        while True:
            state, answer, is_heard, silence = self._database.ask(_LOOK, [request])[0]
            if state == "done":
                return _understood(str(answer))
            left = until - elapsed()
            if left <= 0 or not is_heard:
                return self._given_up(far, verb, request, float(silence))
            count = sound.wait(count, min(left, _LOOK_EVERY))

    def _given_up(self, far: Far, verb: str, request: str, silence: float) -> dict[str, object]:
        """The answer after all, if it came at the last moment.

        Raises:
            HostAway, OutcomeUnknown: it did not.
        """
        if self._database.ask(_WITHDRAW, [request]):
            raise HostAway(far.job.host_name, far.job.id, seconds=silence)
        state, answer, _, _ = self._database.ask(_LOOK, [request])[0]
        if state == "done":
            return _understood(str(answer))
        if verb in ONCE:
            raise OutcomeUnknown(far.job.host_name, far.job.id, "type into")
        raise HostAway(far.job.host_name, far.job.id, seconds=silence, is_withdrawn=False)


def _understood(text: str) -> dict[str, object]:
    answer = as_object(json.loads(text))
    if answer is None:
        raise StorageError("the answer of another machine", "it cannot be read")
    if (error := as_object(answer.get("error"))) is not None:
        raise from_json(error)
    return answer
