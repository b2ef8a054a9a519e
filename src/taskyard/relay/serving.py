"""Requests of other machines, taken up as they come and carried out side by side."""

from __future__ import annotations

import os
import threading

from taskyard.errors import TaskyardError
from taskyard.relay.carrying import ONCE, carried_out, interrupted
from taskyard.relay.forwarding import LOG, Forwarding
from taskyard.runtime.log import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.database.pool import Database
    from taskyard.relay.host import Host

#: Carried out at once; more wait for their turn. Most of them sleep: a stop until its job is gone, a read for output.
_MOST = 32

#: Also those that we took up and did not hear of, since the answer was lost.
_TAKE_UP = """
    UPDATE request SET state = 'begun', begun_by = %s, changed = clock_timestamp()
    WHERE id IN (
        SELECT id FROM request
        WHERE host = %s AND (state = 'asked' OR (state = 'begun' AND begun_by = %s)) AND NOT id = ANY(%s::uuid[])
        ORDER BY changed LIMIT %s FOR UPDATE
    )
    RETURNING id::text, job, verb, arguments, asked_by
"""

#: What relays before us had begun: the lock says that they are gone.
_LEFT_BEHIND = """
    SELECT id::text, job, verb, arguments, asked_by FROM request WHERE host = %s AND state = 'begun' AND begun_by <> %s
"""

_ANSWER = """
    WITH done AS (
        UPDATE request SET state = 'done', answer = %s, changed = clock_timestamp() WHERE id = %s RETURNING reply_to
    )
    SELECT pg_notify(reply_to, '') FROM done
"""


class Serving:
    """The requests of one relay."""

    def __init__(self, host: Host, database: Database, forwarding: Forwarding, wake: Callable[[], None]) -> None:
        """`forwarding` is ours alone; `wake` is called when there is room for more."""
        self._forwarding = forwarding
        self._host = host
        self._database = database
        self._wake = wake
        self._me = os.urandom(6).hex()
        self._hands: set[str] = set()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._is_new = True

    @property
    def is_busy(self) -> bool:
        """Whether something is being carried out."""
        return bool(self._hands)

    def look(self) -> None:
        """Take up what is asked for."""
        if self._is_new:
            for request, job, verb, arguments, asked_by in self._database.ask(_LEFT_BEHIND, [self._host.id, self._me]):
                if verb in ONCE:
                    self._answered(request, interrupted(self._host.name, job, verb))
                else:
                    self._begin(request, job, verb, arguments, asked_by)
            self._is_new = False
        with self._lock:
            known = list(self._hands)
        room = _MOST - len(known)
        if room > 0:
            for row in self._database.ask(_TAKE_UP, [self._me, self._host.id, self._me, known, room]):
                self._begin(*row)

    def _begin(self, request: str, job: str, verb: str, arguments: str, asked_by: str) -> None:
        with self._lock:
            if request in self._hands:
                return
            self._hands.add(request)
        words = (request, job, verb, arguments, asked_by)
        threading.Thread(target=self._carry_out, args=words, name="taskyard-request", daemon=True).start()

    def _carry_out(self, request: str, job: str, verb: str, arguments: str, asked_by: str) -> None:
        try:
            answer = carried_out(self._host.home, job, verb, arguments, asked_by=asked_by)
            with self._sending:
                self._forwarding.push([job])  # whoever asked for a change finds it in the record
            self._answered(request, answer)
        except TaskyardError as error:
            note(self._host.home, LOG, f"the answer to {verb} of {job} could not be sent: {error}")
        finally:
            with self._lock:
                self._hands.discard(request)
            self._wake()

    def _answered(self, request: str, answer: str) -> None:
        self._database.ask(_ANSWER, [answer, request])
