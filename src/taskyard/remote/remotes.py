"""
Places that run agents, by name, as a person set them up in config.toml:

    [remotes.cluster]
    backend = "ray"                    # ray, a2a, or one that a package brought
    url = "http://head.example:8265"
    token_env = "RAY_AUTH_TOKEN"       # the variable that holds the token, or
    token_keyring = "ray/ada"          # service/user in the system's keyring
    command = "my-agent --json"        # what runs there, where the place runs programs

A token itself stands nowhere in our files: it is asked for when it is used.
"""

from __future__ import annotations

import os
import re

from taskyard import config
from taskyard.errors import BadValue, RemoteNotFound, RemoteRefused, UsageError
from taskyard.names import check_name, nearest
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Remote(NamedTuple):
    """One place, as it is set up."""

    name: str
    backend: str
    url: str = ""
    token_env: str = ""  #: the variable that holds the token; its value is stored nowhere
    token_keyring: str = ""  #: `service/user` in the system's keyring
    command: str = ""  #: the program that works there, where the place runs programs
    options: Mapping[str, object] = {}  #: what else the table says; the backend knows what it means


_TEXTS = ("backend", "url", "token_env", "token_keyring", "command")


#: What a table may be tempted to hold, and must not: the file is copied, shown and shared.
_SECRET = re.compile(r"(^|_)(token|secret|password|api_?key|authorization|bearer)$", re.IGNORECASE)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def remotes(
    environ: Mapping[str, str] | None = None, *, report: Callable[[str, UsageError], object] | None = None
) -> dict[str, Remote]:
    """Every place that is set up, by name; with `report`, which is told of the others, those that can be understood.

    Raises:
        Damaged: the settings file is not TOML.
        BadName, BadValue: a table of it cannot be understood.
    """
    known: dict[str, Remote] = {}
    for name, table in _tables(environ).items():
        try:
            known[name] = _remote(name, table)
        except UsageError as error:
            if report is None:
                raise
            report(name, error)
    return known


def _tables(environ: Mapping[str, str] | None) -> Mapping[str, object]:
    tables = config.in_file(os.environ if environ is None else environ).get("remotes", {})
    found = as_object(tables)
    if found is None:
        raise BadValue("remotes", tables, "tables such as [remotes.cluster]")
    return found


def remote_named(name: str, environ: Mapping[str, str] | None = None) -> Remote:
    """One place.

    Raises:
        RemoteNotFound: none of this name is set up.
        Damaged, BadName, BadValue: as `remotes`; what is wrong with others does not matter.
    """
    tables = _tables(environ)
    if name not in tables:
        raise RemoteNotFound(name, nearest=nearest(name, list(tables)))
    return _remote(name, tables[name])


def token_of(remote: Remote, environ: Mapping[str, str] | None = None) -> str:
    """The token for a place, from the environment or the keyring; "" where it wants none.

    Raises:
        RemoteRefused: a token is named and is not there.
        MissingExtra: it is in a keyring, and nothing here can open one.
    """
    env = os.environ if environ is None else environ
    if remote.token_env:
        if token := env.get(remote.token_env, "").strip():
            return token
        raise RemoteRefused(remote.name, f"${remote.token_env} is not set", "It must hold the token.")
    if remote.token_keyring:
        from taskyard.remote.in_keyring import token_in_keyring

        return token_in_keyring(remote)
    return ""


def _remote(name: str, table: object) -> Remote:
    check_name("a remote", name)
    fields = as_object(table)
    if fields is None:
        raise BadValue(f"remotes.{name}", table, "a table")
    texts = {key: value for key in _TEXTS if (value := fields.get(key)) is not None}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise BadValue(f"remotes.{name}.{key}", value, "text")
    if not texts.get("backend"):
        raise BadValue(f"remotes.{name}.backend", texts.get("backend", ""), "the name of a backend, such as ray or a2a")
    _check_tokens(name, fields, texts)
    options = {key: value for key, value in fields.items() if key not in _TEXTS}
    return Remote(name, **texts, options=options)  # type: ignore[arg-type]  # texts, as was checked


def _check_tokens(name: str, fields: Mapping[str, object], texts: Mapping[str, object]) -> None:
    """Refuse a table that holds a token, or says where one is in a way that cannot be; none is repeated."""
    headers = as_object(fields.get("headers")) or {}
    for key in (*fields, *(f"headers.{header}" for header in headers)):
        if _SECRET.search(key.rpartition(".")[2]):
            raise BadValue(
                f"remotes.{name}.{key}", "…", "token_env or token_keyring: a token does not belong in this file"
            )
    if (variable := str(texts.get("token_env", ""))) and not _VARIABLE.fullmatch(variable):
        raise BadValue(f"remotes.{name}.token_env", "…", "the name of a variable, such as RAY_AUTH_TOKEN")
    if (place := str(texts.get("token_keyring", ""))) and not all(place.partition("/")):
        raise BadValue(f"remotes.{name}.token_keyring", "…", "service/user, as the keyring has them")
