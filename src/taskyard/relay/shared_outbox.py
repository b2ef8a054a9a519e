"""
Notices for a receiver whose machine shares a database with others: taken from there, from whichever machine they came.

The promises are those of `runtime.notices`: delivered until acknowledged, always under the same id, `redelivered` only
if a receiver died over it, the urgent first, the next in line if whoever it was meant for is gone. Two readers of one
name on two machines never both get one: the database hands it out once. Whether a receiver lives, and whether the time
of one who promised an answer is over, goes by the database's clock.
"""

from __future__ import annotations

import os

from taskyard import message_ids
from taskyard.clock import elapsed
from taskyard.errors import BadValue
from taskyard.relay.far_notices import notice_in
from taskyard.relay.forwarding import Forwarding
from taskyard.relay.summon import summon
from taskyard.runtime import holding, looking
from taskyard.runtime.batch import MOST, Batch, arranged
from taskyard.runtime.notice import NEXT, PERSON, Notice
from taskyard.runtime.notices import Outbox, size
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from taskyard.database.pool import Database
    from taskyard.instances import Instance
    from taskyard.relay.host import Host
    from taskyard.runtime.notice_waiting import Waiting

#: Nobody tells of a death: while there is something that one would bring us, look this often, in seconds.
_LOOK_EVERY = 1.0

#: And this often otherwise: a keeper here may have been killed while nothing of ours watched it.
_LONG = 30.0

#: Looked at at once: more wait than anybody takes.
_MOST_LOOKED_AT = 1000

_WAITING = "SELECT id, body, recipient, is_again, rest FROM waiting_notices(%s, %s)"

_TAKE = """
    UPDATE notice SET state = 'delivered', holder = %s, op = %s, changed = clock_timestamp(),
        until = clock_timestamp() + %s::float8 * interval '1 second'
    WHERE id = ANY(%s) AND (state = 'stored' OR (state = 'delivered' AND op = %s)) RETURNING id, is_again
"""

_ACK = """
    UPDATE notice SET state = 'read', holder = NULL, until = NULL, op = %s, changed = clock_timestamp()
    WHERE id = ANY(%s) AND (state IN ('delivered', 'stored') OR (state = 'read' AND op = %s))
    RETURNING id
"""

_GIVE_BACK = """
    WITH back AS (
        UPDATE notice SET state = 'stored', is_again = true, holder = NULL, changed = clock_timestamp()
        WHERE state = 'delivered' AND holder = %s AND until IS NULL RETURNING id
    )
    SELECT pg_notify('notices', '') FROM back LIMIT 1
"""

_NAME = """
    INSERT INTO receiver (instance, box) VALUES (%s, %s) ON CONFLICT (instance) DO UPDATE SET box = excluded.box
"""


#: Whether a death, or the end of somebody's time, could bring anything.
_IS_OPEN = "SELECT EXISTS (SELECT FROM notice WHERE state <> 'read')"


class SharedOutbox(Outbox):
    """What waits for one receiver, or for everyone, on any machine."""

    def __init__(
        self,
        host: Host,
        database: Database,
        recipient: str | None = PERSON,
        *,
        instance: Instance | None = None,
        silence: float,
    ) -> None:
        """Nothing is made or read yet; the arguments are those of `Outbox`.

        `silence`: seconds for which an instance is believed to live without another word.
        """
        super().__init__(host.home, recipient, instance=instance)
        self._instance = instance
        self._database = database
        self._silence = silence
        self._forwarding = Forwarding(host, database)
        self._is_named = False
        self._unnamed = ""

    def batch(
        self,
        most: int = MOST,
        *,
        characters: int | None = None,
        hold: float | None = None,
        force: bool = False,
        but: Container[str] = (),
        only_next: bool = False,
    ) -> Batch:
        """The first that wait, now in this process's hands; the arguments are those of `Outbox.batch`."""
        if most < 1:
            raise BadValue("limit", most, "a number from 1")
        while force or not self.is_held():
            found, rest = self._found(_MOST_LOOKED_AT if but or only_next else most)
            line = [notice for notice in found if notice.task_id not in but]
            if only_next:
                line = [notice for notice in line if notice.priority == NEXT]
                rest = len(found)
            if not line:
                break
            count = len(arranged(line, most=most, characters=characters, size=size).notices)
            if taken := self._taken(line[:count], hold):
                return Batch(taken, max(0, rest - (len(found) - len(line)) - count))
        return Batch()

    def _taken(self, notices: list[Notice], hold: float | None) -> tuple[Notice, ...]:
        holder = f"until-{os.urandom(6).hex()}" if hold is not None else self._holder()
        op = os.urandom(8).hex()
        rows = self._database.ask(_TAKE, [holder, op, hold, [notice.id for notice in notices], op])
        got = {str(row[0]): bool(row[1]) for row in rows}
        return tuple(notice._replace(redelivered=got[notice.id]) for notice in notices if notice.id in got)

    def _holder(self) -> str:
        """In whose hands: the agent's instance, or an unnamed one of this process; others believe that it lives."""
        from taskyard.heart import heart

        holder = self._hands.holder()
        heart(self._database).keep(holder, silence=self._silence)
        if self._instance is None or holder != self._instance.id:
            self._unnamed = holder
        return holder

    def ack(self, ids: Iterable[str]) -> tuple[str, ...]:
        """File notices as read, whoever took them; answers those that are filed by this call."""
        wanted = list(ids)
        for notice_id in wanted:
            if not message_ids.is_id(notice_id):
                raise BadValue("The id of a notice", notice_id, "an id as `take` gives it")
        if not wanted:
            return ()
        op = os.urandom(8).hex()
        done = {str(row[0]) for row in self._database.ask(_ACK, [op, wanted, op])}
        return tuple(notice_id for notice_id in wanted if notice_id in done)

    def waiting(self) -> list[Notice]:
        """What waits, in order, left where it is; held back or not."""
        return self._found(_MOST_LOOKED_AT)[0]

    def state(self, notice_id: str) -> str | None:
        """Where a notice is: "stored", "delivered" (in somebody's hands) or "read"; None if there is none."""
        if not message_ids.is_id(notice_id):
            return None
        self._forwarding.before_reading()
        rows = self._database.ask("SELECT state FROM notice WHERE id = %s", [notice_id])
        return str(rows[0][0]) if rows else None

    def is_held(self) -> bool:
        """Whether notices are held back, on this machine or on all."""
        return holding.is_on(self.home) or bool(self._database.ask("SELECT is_on FROM hold"))

    def _waiting(self) -> Waiting:
        return cast("Waiting", _Waiting(self, self._database))

    def close(self) -> None:
        """Give back what was taken and not acknowledged, unless it is the instance's."""
        if self._unnamed:
            from taskyard.heart import heart

            unnamed, self._unnamed = self._unnamed, ""
            self._database.ask(_GIVE_BACK, [unnamed])
            heart(self._database).let_go(unnamed)
        super().close()

    def _found(self, most: int) -> tuple[list[Notice], int]:
        """The first that wait, after what waits on this machine was brought; and how many there are."""
        self._say_our_name()
        self._forwarding.before_reading()
        rows = self._database.ask(_WAITING, [self.recipient, most])
        found: list[Notice] = []
        for _, body, recipient, is_again, _ in rows:
            notice = notice_in(str(body), is_again=bool(is_again))
            if notice is not None:
                is_ours = self.recipient in (None, recipient)
                found.append(notice if is_ours else notice._replace(orphaned_from=str(recipient)))
        return found, int(rows[0][4]) if rows else 0

    def _say_our_name(self) -> None:
        """Whoever lives under a name is not passed over in favour of the next in line."""
        instance = self._instance
        if self._is_named or instance is None or not instance.name:
            return
        from taskyard.heart import heart
        from taskyard.runtime.recipients import box_name

        heart(self._database).keep(instance.id, silence=self._silence)
        self._database.ask(_NAME, [instance.id, box_name(instance.name)])
        self._is_named = True


class _Waiting:
    """One who waits for what an outbox may hand out; `cancel` wakes it from another thread."""

    def __init__(self, outbox: SharedOutbox, database: Database) -> None:
        self._outbox = outbox
        self._database = database
        self._sound = database.ear.sound("notices")
        self._is_cancelled = False

    def wait(self, timeout: float) -> bool:
        """Whether a notice can be taken, now or within `timeout` seconds."""
        until = elapsed() + timeout
        count = self._sound.count
        if any(looking.living_names(self._outbox.home)):
            summon(self._outbox.home, self._database.address)
        while not self._is_cancelled:
            if not self._outbox.is_held() and self._outbox.waiting():
                return True
            left = until - elapsed()
            if left <= 0:
                return False
            is_open = bool(self._database.ask(_IS_OPEN)[0][0])
            count = self._sound.wait(count, min(left, _LOOK_EVERY if is_open else _LONG))
        return False

    def cancel(self) -> None:
        """End the wait."""
        self._is_cancelled = True
        self._sound.ring()

    def __enter__(self) -> _Waiting:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()
