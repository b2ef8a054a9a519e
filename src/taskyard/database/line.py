"""
A connection on which the same few statements are asked again and again. (Loads the driver: import it when one is made.)

Each is prepared once, and then goes straight through libpq (`psycopg.pq`): for statements that take the server a tenth
of a millisecond, a cursor would cost more than all the rest. Values and rows are the driver's, as everywhere. The wait
for an answer is one that signals interrupt.
"""

from __future__ import annotations

import select

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, LiteralString

    from psycopg.pq.abc import PGconn, PGresult

    from taskyard.database.connection import Link

#: Seconds in which the server is told that nobody waits for an answer any more.
_CANCEL = 1.0


class Line:
    """One connection of a pool; for one thread at a time."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._known: dict[tuple[str, tuple[int, ...] | None], bytes] = {}  # prepared: a text with types, and its name

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and nothing is under way on it."""
        return self.link.pgconn.transaction_status == TransactionStatus.IDLE

    def ask(self, sql: LiteralString, values: Sequence[object] = ()) -> list[Any]:
        """The rows that a statement answers with, in a transaction of its own.

        Raises:
            psycopg.Error: as by `execute`.
        """
        server, adapting = self.link.pgconn, Transformer(self.link)
        given = adapting.dump_sequence(values, [PyFormat.AUTO] * len(values))
        name = self._prepared(sql, adapting.types)
        server.send_query_prepared(name, given, adapting.formats)
        answer = self._answer(server)
        if answer.status == ExecStatus.COMMAND_OK:
            return []
        adapting.set_pgresult(answer)
        return adapting.load_rows(0, answer.ntuples, tuple)

    def _prepared(self, sql: str, types: tuple[int, ...] | None) -> bytes:
        """The name under which the server knows a statement."""
        name = self._known.get((sql, types))
        if name is None:
            name = b"yard_%d" % len(self._known)
            first, *rest = sql.split("%s")
            text = first + "".join(f"${number}{part}" for number, part in enumerate(rest, 1))
            self.link.pgconn.send_prepare(name, text.encode(), types)
            self._answer(self.link.pgconn)
            self._known[sql, types] = name
        return name

    def _answer(self, server: PGconn) -> PGresult:
        """What the server says to what was sent; an error is raised."""
        answer = None
        try:
            while server.flush():
                _wait(server, select.POLLIN | select.POLLOUT)
            while (found := _next(server)) is not None:  # one, and then that there is no other
                answer = found
        except psycopg.Error:
            if answer is None:
                raise  # else it says why the link is gone
        except BaseException:
            self.link.cancel_safe(timeout=_CANCEL)  # nobody will hear of it
            raise
        assert answer is not None, "something was sent"
        if answer.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(answer)
        return answer


def _next(server: PGconn) -> PGresult | None:
    """The next answer, once all of it is here; None: that was all."""
    while server.is_busy():
        _wait(server, select.POLLIN)
    return server.get_result()


def _wait(server: PGconn, what: int) -> None:
    ready = select.poll()
    ready.register(server.socket, what)
    ready.poll()
    server.consume_input()
