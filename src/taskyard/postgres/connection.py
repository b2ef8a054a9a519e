"""Connections to PostgreSQL: connect, prepared statements, a pool with retry, and error translation.

    database(address)            the one of this process
    database.ask(sql, values)    one statement in its own transaction
    database.within(work)        several in one transaction, which the server aborts if this client stays idle

Every wait has a timeout: connecting, a statement, a lock, a transaction whose client is gone, and a connection
cut while an answer is in transit. Both calls are retried with backoff, for as long as `patience` allows, when
the connection breaks or the server is unavailable. An answer may be lost after its statement took effect:
statements must be idempotent.

`PreparedConnection` prepares each statement once and then uses libpq directly (`psycopg.pq`): for statements
that take the server 0.1 ms a cursor would cost more than all the rest. Values and rows are converted by the
driver; signals interrupt the wait for an answer. Connections are opened by the thread that needs one, so that a
refused caller gets the reason at once; there is no background thread. The driver is loaded when the module is
imported: import it only when a connection is needed.
"""

from __future__ import annotations

import os
import random
import select
import threading
import time
from contextlib import contextmanager

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus

from taskyard.config import database_label, parse_database_url
from taskyard.core.system import boottime
from taskyard.errors import Repeated, StorageError, StoreAway, TaskyardError
from taskyard.postgres import deadline, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, LiteralString, TypeVar

    from psycopg.pq.abc import PGconn, PGresult

    from taskyard.postgres.listener import PgListener


if TYPE_CHECKING:
    PgConnection = psycopg.Connection[tuple[Any, ...]]

#: Seconds to connect and authenticate.
CONNECT_TIMEOUT = 5

#: Seconds one statement may take; typical ones take a millisecond.
STATEMENT_TIMEOUT = 30

#: Seconds to wait for a lock; a client holding one longer is gone, and its transaction is aborted by then.
LOCK_TIMEOUT = 10

#: Seconds a transaction may be idle: its client may have been disconnected.
IDLE_TIMEOUT = 5

#: Seconds without TCP acknowledgement after which the connection counts as cut.
TCP_TIMEOUT = 10

#: SQLSTATE classes and codes after which a retry may succeed: the server starts, stops, is full, failed over,
#: or aborted this transaction in favour of another.
_TRANSIENT_CODES = ("08", "57P", "53", "25006", "40")


#: SQLSTATE unique_violation: the row exists.
_UNIQUE_VIOLATION = "23505"

#: Messages of a server that accepts no connections for now. libpq gives no code for rejected connections.
_TRANSIENT_TEXTS = (
    "starting up",
    "shutting down",
    "recovery",
    "too many",
    "not yet accepting",
    "remaining connection slots",
)


#: Messages of libpq for an incomplete or invalid address.
_PERMANENT_TEXTS = ("no password supplied", "Servname not supported", "invalid port number")

#: Advice for messages of a server, or of libpq, that refuses a connection.
_ADVICE = {
    "no password supplied": "Put it into ~/.pgpass, or set PGPASSWORD.",
    "password authentication failed": "Check ~/.pgpass, PGPASSWORD, and the user name in the address.",
    "does not exist": "Check the address (`store`), or create it with createdb or createuser.",
    "permission denied": "Its owner can GRANT what is missing; see the guide on PostgreSQL.",
}


def connect(address: str, *, check: bool = True) -> PgConnection:
    """Open a connection in autocommit mode. `check`: accept only a database of this schema version.

    Raises:
        StoreAway: it cannot be reached now.
        SchemaMismatch: it holds tables of another version, or none.
        StorageError: it refuses the connection, and a retry will not help.
    """
    import psycopg

    given = parse_database_url(address)
    settings = {
        "statement_timeout": f"{STATEMENT_TIMEOUT}s",
        "lock_timeout": f"{LOCK_TIMEOUT}s",
        "idle_in_transaction_session_timeout": f"{IDLE_TIMEOUT}s",
        "search_path": schema.SCHEMA,
        # Every query is served by an index. A plan cached while a table is small must not scan all of it when
        # it is large; and such plans are not worth compiling.
        "enable_seqscan": "off",
        "jit": "off",
    }
    options = " ".join([given.get("options", ""), *(f"-c {name}={value}" for name, value in settings.items())])
    ours = {
        "application_name": "taskyard",
        "client_encoding": "UTF8",  # whatever encoding the database uses
        "connect_timeout": CONNECT_TIMEOUT,
        "keepalives_idle": TCP_TIMEOUT // 2,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": TCP_TIMEOUT * 1000,
    }
    asked = {name: value for name, value in ours.items() if name not in given}
    with translate_errors(address):
        link: PgConnection = psycopg.connect(address, autocommit=True, options=options.strip(), **asked)  # type: ignore[arg-type]
    try:
        if check:
            with translate_errors(address):
                schema.check_version(link, database_label(address))
    except TaskyardError:
        link.close()
        raise
    return link


@contextmanager
def translate_errors(address: str) -> Generator[None]:
    """Translate driver errors raised within the block.

    Raises:
        StoreAway, StorageError: as `connect`.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise translate_error(address, error) from error


def translate_error(address: str, error: psycopg.Error) -> StoreAway | StorageError:
    """Classify an error as transient (`StoreAway`) or permanent (`StorageError`)."""
    import psycopg

    code = error.sqlstate or ""
    text = (error.diag.message_primary or str(error)).strip().splitlines()
    why = text[0].strip().rstrip(".") if text else type(error).__name__
    is_link = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not code
    is_refused = is_link and "FATAL:" in why and not any(words in why for words in _TRANSIENT_TEXTS)
    is_refused = is_refused or any(words in why for words in _PERMANENT_TEXTS)
    if (is_link and not is_refused) or code.startswith(_TRANSIENT_CODES):
        return StoreAway(database_label(address), why)
    if code == _UNIQUE_VIOLATION:
        return Repeated(f"The database {database_label(address)}", why)
    advice = next((advice for words, advice in _ADVICE.items() if words in why), "")
    return StorageError(f"The database {database_label(address)}", why, advice=advice)


#: Timeout in seconds for cancelling an abandoned statement on the server.
_CANCEL_TIMEOUT = 1.0


class PreparedConnection:
    """One connection of a pool, for one thread at a time."""

    def __init__(self, link: PgConnection) -> None:
        self.link = link
        self._known: dict[tuple[str, tuple[int, ...] | None], bytes] = {}  # (sql, types) → statement name

    @property
    def is_idle(self) -> bool:
        """Whether it is open and no statement is in progress."""
        return self.link.pgconn.transaction_status == TransactionStatus.IDLE

    def ask(self, sql: LiteralString, values: Sequence[object] = ()) -> list[Any]:
        """Run a statement in its own transaction and return its rows.

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
        """Return the name of the prepared statement, preparing it at first use."""
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
        """Return the server's result for what was sent; raise an error result."""
        answer = None
        try:
            while server.flush():
                _poll_socket(server, select.POLLIN | select.POLLOUT)
            while (found := _next_result(server)) is not None:  # one result, then None
                answer = found
        except psycopg.Error:
            if answer is None:
                raise  # otherwise the result contains the reason
        except BaseException:
            self.link.cancel_safe(timeout=_CANCEL_TIMEOUT)  # no caller waits for the result
            raise
        assert answer is not None, "something was sent"
        if answer.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(answer)
        return answer


def _next_result(server: PGconn) -> PGresult | None:
    """Return the next complete result; None if there are no more."""
    while server.is_busy():
        _poll_socket(server, select.POLLIN)
    return server.get_result()


def _poll_socket(server: PGconn, what: int) -> None:
    ready = select.poll()
    ready.register(server.socket, what)
    ready.poll()
    server.consume_input()


if TYPE_CHECKING:
    T = TypeVar("T")

#: Maximum connections per process: statements take a millisecond, and servers limit their clients.
MAX_CONNECTIONS = 8

#: Retry backoff in seconds: the first delay and the longest.
_FIRST_DELAY, _MAX_DELAY = 0.05, 2.0


class Database:
    """One database, for every thread of this process."""

    def __init__(self, address: str, *, patience: float = 15.0) -> None:
        """`patience`: seconds for which an unavailable server is retried."""
        self.address = address
        self.where = database_label(address)
        self.patience = patience
        self.away_since: float | None = None  #: start of the outage (`boottime`); None: available
        self.why = ""  #: reason of the last outage
        self._free: list[PreparedConnection] = []
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._listener: PgListener | None = None
        self._is_discarded = False
        self._wait_reporter = deadline.WaitReporter(self.where)
        self._pid = os.getpid()

    def ask(self, sql: LiteralString, values: Sequence[object] = (), *, patience: float | None = None) -> list[Any]:
        """Run one statement and return its rows.

        Raises:
            StoreAway: the server was unavailable for all of `patience`.
            SchemaMismatch: its tables are of another version.
            StorageError: it refuses, and a retry will not help.
        """
        return self._persist(lambda line: line.ask(sql, values), patience)

    def within(self, work: Callable[[PgConnection], T], *, patience: float | None = None) -> T:
        """Run `work` in one transaction and return its result. It must be quick, and may run again.

        Raises:
            StoreAway, SchemaMismatch, StorageError: as `ask`.
        """

        def done(line: PreparedConnection) -> T:
            with line.link.transaction():
                return work(line.link)

        return self._persist(done, patience)

    @property
    def listener(self) -> PgListener:
        """The listener for changes by other clients."""
        with self._lock:
            if self._listener is None:
                from taskyard.postgres.listener import PgListener

                self._listener = PgListener(self.address)
            return self._listener

    def close(self) -> None:
        """Close all idle connections; the next statement opens another."""
        with self._lock:
            free, self._free = self._free, []
            listener, self._listener = self._listener, None
        if self._pid != os.getpid():
            return  # a forked child must not terminate its parent's sessions
        if listener is not None:
            listener.close()
        for line in free:
            line.link.close()

    def leave(self) -> None:
        """Close everything for good: a later statement gets a connection of its own and closes it."""
        self._is_discarded = True
        self.close()

    def _persist(self, work: Callable[[PreparedConnection], T], patience: float | None) -> T:
        seconds = deadline.wait_limit(self.patience if patience is None else patience)
        with self._wait_reporter.during(seconds, lambda: self.why if self.away_since is not None else ""):
            return self._tried(work, seconds)

    def _tried(self, work: Callable[[PreparedConnection], T], patience: float) -> T:
        import psycopg

        began, pause, is_stale = boottime(), _FIRST_DELAY, True
        while True:
            line, was_used = None, False
            try:
                with self._room:
                    line, was_used = self._borrow()
                    try:
                        answer = work(line)
                    finally:
                        self._give_back(line)
                self.away_since = None
                return answer
            except psycopg.Error as error:
                trouble = translate_error(self.address, error)
                if not isinstance(trouble, StoreAway):
                    raise trouble from error
                if is_stale and was_used and line is not None and line.link.closed:
                    is_stale = False  # it broke while idle, which does not mean the server is unavailable
                    self._forget()
                    continue
                self._wait(trouble, error, began, pause, patience)
            except StoreAway as trouble:
                self._wait(trouble, trouble, began, pause, patience)
            pause = min(pause * 2, _MAX_DELAY)

    def _wait(self, trouble: StoreAway, cause: Exception, began: float, pause: float, patience: float) -> None:
        """Sleep before the next try, or give up."""
        self.why = trouble.why
        self.away_since = self.away_since if self.away_since is not None else boottime()
        spent = boottime() - began
        if spent + pause > patience:
            raise StoreAway(self.where, trouble.why, seconds=spent) from cause
        time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # so that not all come back at once

    def _borrow(self) -> tuple[PreparedConnection, bool]:
        """Return a connection, and whether it was used before."""
        with self._lock:
            if self._pid != os.getpid():  # forked: the parent's connections must not be used or closed
                _parent_connections.extend(self._free)
                self._free, self._listener, self._pid = [], None, os.getpid()
            if self._free:
                return self._free.pop(), True

        return PreparedConnection(connect(self.address)), False

    def _give_back(self, line: PreparedConnection) -> None:
        if line.is_idle:
            with self._lock:
                if not self._is_discarded:
                    self._free.append(line)
                    return
        line.link.close()

    def _forget(self) -> None:
        """Close all other idle connections after one was found broken."""
        with self._lock:
            free, self._free = self._free, []
        for line in free:
            line.link.close()


#: Connections of the parent process: kept, since dropping the object closes the connection.
_parent_connections: list[PreparedConnection] = []

_databases: dict[str, Database] = {}
_lock = threading.Lock()


def database(address: str, *, patience: float | None = None) -> Database:
    """Return the database at an address: one object for the whole process.

    Raises:
        BadValue: the address is invalid.
        MissingExtra: the packages for PostgreSQL are not installed.
    """
    with _lock:
        if address not in _databases:
            _databases[address] = Database(address)
        found = _databases[address]
    if patience is not None:
        found.patience = patience
    return found


def close_database(address: str) -> None:
    """Close the database at an address with all its connections."""
    with _lock:
        found = _databases.pop(address, None)
    if found is not None:
        found.leave()
