"""
One connection to the server, and what its troubles mean.

Every wait on it ends: connecting, a statement, a lock, a transaction whose client is gone, and a link that is cut while
an answer is on its way.
"""

from __future__ import annotations

from contextlib import contextmanager

from taskyard.database import schema
from taskyard.database.address import parts_of, where_of
from taskyard.errors import StorageError, StoreAway, TaskyardError
from taskyard.errors.elsewhere import Repeated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    import psycopg

    Link = psycopg.Connection[tuple[Any, ...]]

#: Seconds for reaching the server and being let in.
CONNECT = 5

#: Seconds one statement may take; ours take a thousandth.
STATEMENT = 30

#: Seconds one waits for a lock; whoever holds one longer is gone, and so is its transaction by then.
LOCK = 10

#: Seconds a transaction may be open without a word from its client: its machine may have been cut off.
SILENT = 5

#: Seconds after which what was sent and not acknowledged means that the link is cut.
CUT = 10

#: Of the classes and codes of errors, those after which the same may succeed: the server starts, stops, is full,
#: was failed over, or chose us to give way.
_PASSING = ("08", "57P", "53", "25006", "40")


#: What must be one of its kind is there.
_IS_THERE = "23505"

#: What a server says that lets nobody in just now. Of those it turns away at the door libpq tells no code.
_NOT_NOW = ("starting up", "shutting down", "recovery", "too many", "not yet accepting", "remaining connection slots")


#: And what libpq says where the address itself lacks something.
_NEVER = ("no password supplied", "Servname not supported", "invalid port number")

#: What to do about what a server says, or its client, to whom it does not let in.
_ADVICE = {
    "no password supplied": "Put it into ~/.pgpass, or set PGPASSWORD.",
    "password authentication failed": "Look at ~/.pgpass, PGPASSWORD, and the user's name in the address.",
    "does not exist": "Look at the address (`store`), or make it with createdb or createuser.",
    "permission denied": "Its owner can GRANT what is missing; see the guide on PostgreSQL.",
}


def connect(address: str, *, check: bool = True) -> Link:
    """A new connection; each statement is a transaction of its own. `check`: only to a database of our version.

    Raises:
        StoreAway: it cannot be reached now.
        SchemaMismatch: it holds tables of another version, or none.
        StorageError: it will not let us in, and asking again will not help.
    """
    import psycopg

    given = parts_of(address)
    settings = {
        "statement_timeout": f"{STATEMENT}s",
        "lock_timeout": f"{LOCK}s",
        "idle_in_transaction_session_timeout": f"{SILENT}s",
        "search_path": schema.NAME,
        # What we ask for is found by an index, always. A plan that is made while a table is small, and kept, must not
        # read all of it when it is large; and plans like these are not worth compiling.
        "enable_seqscan": "off",
        "jit": "off",
    }
    options = " ".join([given.get("options", ""), *(f"-c {name}={value}" for name, value in settings.items())])
    ours = {
        "application_name": "taskyard",
        "client_encoding": "UTF8",  # whatever the database keeps its texts in
        "connect_timeout": CONNECT,
        "keepalives_idle": CUT // 2,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": CUT * 1000,
    }
    asked = {name: value for name, value in ours.items() if name not in given}
    with spoken(address):
        link: Link = psycopg.connect(address, autocommit=True, options=options.strip(), **asked)  # type: ignore[arg-type]
    try:
        if check:
            with spoken(address):
                schema.check(link, where_of(address))
    except TaskyardError:
        link.close()
        raise
    return link


@contextmanager
def spoken(address: str) -> Generator[None]:
    """Have what the driver raises within the block said in our words.

    Raises:
        StoreAway, StorageError: as `connect`.
    """
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise in_words(address, error) from error


def in_words(address: str, error: psycopg.Error) -> StoreAway | StorageError:
    """What went wrong: something that passes, or not."""
    import psycopg

    code = error.sqlstate or ""
    text = (error.diag.message_primary or str(error)).strip().splitlines()
    why = text[0].strip().rstrip(".") if text else type(error).__name__
    is_link = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)) and not code
    is_refused = is_link and "FATAL:" in why and not any(words in why for words in _NOT_NOW)
    is_refused = is_refused or any(words in why for words in _NEVER)
    if (is_link and not is_refused) or code.startswith(_PASSING):
        return StoreAway(where_of(address), why)
    if code == _IS_THERE:
        return Repeated(f"The database {where_of(address)}", why)
    advice = next((advice for words, advice in _ADVICE.items() if words in why), "")
    return StorageError(f"The database {where_of(address)}", why, advice=advice)
