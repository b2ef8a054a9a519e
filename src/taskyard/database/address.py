"""Which database is meant, checked, and said without what is secret in it."""

from __future__ import annotations

from taskyard.errors import BadValue, MissingExtra

#: How an address of ours begins.
SCHEMES = ("postgresql://", "postgres://")


def is_address(store: str) -> bool:
    """Whether a store's name is that of a database."""
    return store.startswith(SCHEMES)


def without_password(address: str) -> str:
    """The same database, for those who have the password from elsewhere: `~/.pgpass`, PGPASSWORD, a service file."""
    import re

    plain = re.sub(r"(?<=://)([^:/?@]*):[^/?]*@", r"\1@", address, count=1)
    return re.sub(r"(?<=[?&])(password|sslpassword)=[^&]*&?", "", plain).rstrip("?&")


def where_of(address: str) -> str:
    """A database as people are told of it: host, port and name; no user's password, whatever the address holds.

    Raises:
        BadValue: no such address can be.
        MissingExtra: the packages for PostgreSQL are not there.
    """
    found = parts_of(address)
    host = found.get("host") or found.get("hostaddr") or found.get("service") or "the local socket"
    port = f":{found['port']}" if found.get("port") else ""
    return f"{host}{port}/{found.get('dbname') or found.get('user') or ''}".rstrip("/")


def parts_of(address: str) -> dict[str, str]:
    """What an address says, by libpq's own words.

    Raises:
        BadValue, MissingExtra: as `where_of`.
    """
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ModuleNotFoundError as error:
        raise MissingExtra("A store in PostgreSQL", "postgres", error.name or "") from error
    try:
        return {key: str(value) for key, value in conninfo_to_dict(address).items() if value is not None}
    except ProgrammingError:
        # What libpq says about it quotes it, password and all.
        raise BadValue("store", "this address", "postgresql://user@host:5432/database") from None
