"""Access checks of HTTP servers: allowed hosts and origins, and the bearer token.

A web page may resolve a host name of its own to this machine (DNS rebinding), or send requests here: the first
shows in `Host`, the second in `Origin`. Neither is a name of ours.

The token is created once, in a file that only its owner can read, and is sent as `Authorization: Bearer …`,
exactly once per request. It is never written anywhere else: not to a log, the arguments of a process or the
environment of a job. Commands of the same user can still read its file, and the environment that a server was
started with (/proc): nothing is secret from them.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from collections.abc import Sequence
from typing import NamedTuple

from starlette.datastructures import Headers

from taskyard.core import files
from taskyard.errors import BadText, BadValue, StorageError
from taskyard.servers.http.server import Address

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")

_MAX_HOST_CHARS = 255

_HOST_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-:[]")


class AllowedHosts(NamedTuple):
    """The host names and origins of one server."""

    hosts: frozenset[str]  #: as in `Host`, with a port unless it is the scheme's default
    origins: frozenset[str]

    def knows(self, host: str) -> bool:
        """Return whether `host` names this server."""
        return host.lower() in self.hosts

    def allows_origin(self, origin: str) -> bool:
        """Return whether `origin` is one of this server."""
        return origin.lower() in self.origins


def host_names(address: Address, names: Sequence[str] = ()) -> list[str]:
    """Return every name of a server, without port: local ones, its own address, those given."""
    own = f"[{address.host}]" if ":" in address.host else address.host
    is_another = own not in LOCAL_HOSTS and not address.is_everywhere
    return [*LOCAL_HOSTS, *names, *([own] if is_another else [])]


def allowed_hosts(address: Address, names: Sequence[str] = ()) -> AllowedHosts:
    """Return the names of a server at `address` and at no other port.

    Args:
        address: Where it listens.
        names: Further names, as a proxy passes them on, with port.

    Raises:
        BadValue: One of them is not a valid name.
    """
    given = [_check_host(name) for name in names]
    own = [f"{name}:{address.port}" for name in host_names(address)]
    own += host_names(address) if address.port == 80 else []
    origins = [f"http://{name}" for name in own]
    origins += [f"{scheme}://{name}" for name in given for scheme in ("http", "https")]
    return AllowedHosts(frozenset((*own, *given)), frozenset(origins))


def _check_host(name: str) -> str:
    lower = name.lower()
    if not 0 < len(lower) <= _MAX_HOST_CHARS or not _HOST_CHARS.issuperset(lower):
        raise BadValue("--allow-host", name, "a name or address, with its port where it has one of its own")
    return lower


#: Minimum characters of a token: a shorter one can be guessed.
MIN_TOKEN_CHARS = 16

_MAX_TOKEN_BYTES = 4096


class Token(NamedTuple):
    """The token, and where it comes from."""

    text: str
    file: str | None  #: None: from the environment

    def __repr__(self) -> str:
        """Return a text without the token, for logs."""
        return f"Token(file={self.file!r})"

    def fits(self, given: str) -> bool:
        """Return whether `given` is the token, in constant time."""
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self.text.encode())


def ensure_token(path: str, *, rotate: bool = False) -> Token:
    """Return the token in the file `path`; create it if missing, or if `rotate`.

    Raises:
        BadText: It is too short, or cannot be sent in a header.
        StorageError: Other users can read its file, or it cannot be created.
    """
    if rotate:
        files.replace(path, _generate_token())
    return Token(_read_token(path) or _create_token(path), path)


def check_token(text: str, field: str) -> str:
    """Return `text` if it is a valid token; `field` states its source, for the error.

    Raises:
        BadText: It is not; the error does not repeat it.
    """
    if len(text) < MIN_TOKEN_CHARS:
        raise BadText(field, f"is too short: at least {MIN_TOKEN_CHARS} characters")
    if not all("!" <= char <= "~" for char in text):
        raise BadText(field, "cannot stand in a header: letters, digits and signs of ASCII alone, without spaces")
    return text


def _generate_token() -> bytes:
    return f"{secrets.token_urlsafe(32)}\n".encode()


def _create_token(path: str) -> str:
    try:
        files.create(path, _generate_token())
    except FileExistsError:
        pass  # another server created it first: use that one
    found = _read_token(path)
    if found is None:
        raise StorageError(path, "it was removed while it was made", advice="Try again.")
    return found


def _read_token(path: str) -> str | None:
    data = files.read(path, most=_MAX_TOKEN_BYTES)
    if data is None:
        return None
    found = os.lstat(path)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StorageError(
            path, "others can read this secret", advice=f"Make a new one: remove it, or `chmod 600 {path}`."
        )
    return check_token(data.decode("ascii", "replace").strip(), f"token in {path}")


def has_token(headers: Headers, token: Token) -> bool:
    """Return whether a request has the token."""
    given = headers.getlist("authorization")
    scheme, _, secret = (given[0] if len(given) == 1 else "").partition(" ")
    return scheme.lower() == "bearer" and token.fits(secret.strip())


def challenge(headers: Headers) -> dict[str, str]:
    """Return the `WWW-Authenticate` header of a refusal."""
    problem = ', error="invalid_token"' if headers.getlist("authorization") else ""
    return {"WWW-Authenticate": f'Bearer realm="taskyard"{problem}'}
