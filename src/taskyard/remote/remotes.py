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

from taskyard import config
from taskyard.errors import BadValue, RemoteNotFound, RemoteRefused
from taskyard.names import check_name, nearest
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


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


def remotes(environ: Mapping[str, str] | None = None) -> dict[str, Remote]:
    """Every place that is set up, by name.

    Raises:
        Damaged: the settings file is not TOML.
        BadValue: a table of it cannot be understood.
    """
    tables = config.in_file(os.environ if environ is None else environ).get("remotes", {})
    found = as_object(tables)
    if found is None:
        raise BadValue("remotes", tables, "tables such as [remotes.cluster]")
    return {name: _remote(name, table) for name, table in found.items()}


def remote_named(name: str, environ: Mapping[str, str] | None = None) -> Remote:
    """One place.

    Raises:
        RemoteNotFound: none of this name is set up.
        Damaged, BadValue: as `remotes`.
    """
    known = remotes(environ)
    if name not in known:
        raise RemoteNotFound(name, nearest=nearest(name, list(known)))
    return known[name]


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
    if "token" in fields:
        raise BadValue(f"remotes.{name}.token", "…", "token_env or token_keyring: a token does not belong in this file")
    options = {key: value for key, value in fields.items() if key not in _TEXTS}
    return Remote(name, **texts, options=options)  # type: ignore[arg-type]  # texts, as was checked
