"""Remotes that run agents, by name, as configured in config.toml.

    [remotes.cluster]
    backend = "ray"                    # ray, a2a, or one of an installed package
    url = "http://head.example:8265"
    token_env = "RAY_AUTH_TOKEN"       # environment variable with the token, or
    token_keyring = "ray/ada"          # service/user in the system's keyring
    command = "my-agent --json"        # program to run, where the remote runs programs

A token is never stored in our files: it is read when it is used.
"""

from __future__ import annotations

import os
import re

from taskyard import config
from taskyard.core.values import NamedTuple, as_object, check_name, nearest
from taskyard.errors import BadValue, MissingExtra, RemoteNotFound, RemoteRefused, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Remote(NamedTuple):
    """Configuration of one remote."""

    name: str
    backend: str
    url: str = ""
    token_env: str = ""  #: environment variable with the token; its value is never stored
    token_keyring: str = ""  #: `service/user` in the system's keyring
    command: str = ""  #: program to run, where the remote runs programs
    options: Mapping[str, object] = {}  #: other settings of the table, interpreted by the backend


_TEXT_FIELDS = ("backend", "url", "token_env", "token_keyring", "command")


#: Keys that would contain a secret, which is refused: the file is copied, shown and shared.
_SECRET = re.compile(r"(^|_)(token|secret|password|api_?key|authorization|bearer)$", re.IGNORECASE)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load_remotes(
    environ: Mapping[str, str] | None = None, *, report: Callable[[str, UsageError], object] | None = None
) -> dict[str, Remote]:
    """Return every configured remote by name; with `report`, skip invalid ones and pass their errors to it.

    Raises:
        Damaged: The settings file is not TOML.
        BadName, BadValue: A table is invalid (without `report`).
    """
    known: dict[str, Remote] = {}
    for name, table in _remote_tables(environ).items():
        try:
            known[name] = _parse_remote(name, table)
        except UsageError as error:
            if report is None:
                raise
            report(name, error)
    return known


def _remote_tables(environ: Mapping[str, str] | None) -> Mapping[str, object]:
    tables = config.read_config_file(os.environ if environ is None else environ).get("remotes", {})
    found = as_object(tables)
    if found is None:
        raise BadValue("remotes", tables, "tables such as [remotes.cluster]")
    return found


def find_remote(name: str, environ: Mapping[str, str] | None = None) -> Remote:
    """Return one remote.

    Raises:
        RemoteNotFound: No remote of this name is configured.
        Damaged, BadName, BadValue: As `load_remotes`; errors in other tables are ignored.
    """
    tables = _remote_tables(environ)
    if name not in tables:
        raise RemoteNotFound(name, nearest=nearest(name, list(tables)))
    return _parse_remote(name, tables[name])


def read_token(remote: Remote, environ: Mapping[str, str] | None = None) -> str:
    """Return the token of a remote, from the environment or the keyring; "" if none is configured.

    Raises:
        RemoteRefused: A token is configured and missing.
        MissingExtra: It is in a keyring, and no keyring package is installed.
    """
    env = os.environ if environ is None else environ
    if remote.token_env:
        if token := env.get(remote.token_env, "").strip():
            return token
        raise RemoteRefused(remote.name, f"${remote.token_env} is not set", "It must hold the token.")
    if remote.token_keyring:
        return read_keyring_token(remote)
    return ""


def _parse_remote(name: str, table: object) -> Remote:
    check_name("a remote", name)
    fields = as_object(table)
    if fields is None:
        raise BadValue(f"remotes.{name}", table, "a table")
    texts = {key: value for key in _TEXT_FIELDS if (value := fields.get(key)) is not None}
    for key, value in texts.items():
        if not isinstance(value, str):
            raise BadValue(f"remotes.{name}.{key}", value, "text")
    if not texts.get("backend"):
        raise BadValue(f"remotes.{name}.backend", texts.get("backend", ""), "the name of a backend, such as ray or a2a")
    _check_tokens(name, fields, texts)
    options = {key: value for key, value in fields.items() if key not in _TEXT_FIELDS}
    return Remote(name, **texts, options=options)  # type: ignore[arg-type]  # texts, as was checked


def _check_tokens(name: str, fields: Mapping[str, object], texts: Mapping[str, object]) -> None:
    """Refuse a table with a token in it, or with an invalid reference to one; errors never repeat its value."""
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


def read_keyring_token(remote: Remote) -> str:
    """Return the token of a remote by `service/user`.

    Raises:
        RemoteRefused: It is missing, or the keyring cannot be opened.
        MissingExtra: No keyring package is installed.
    """
    try:
        import keyring
        import keyring.errors
    except ModuleNotFoundError as error:
        raise MissingExtra("A token in a keyring", "keyring", error.name or "") from error
    service, _, user = remote.token_keyring.partition("/")
    try:
        token = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:
        raise RemoteRefused(remote.name, f"the keyring cannot be opened ({type(error).__name__})") from error
    if not token:
        advice = f"`keyring set {service} {user}` puts it there."
        raise RemoteRefused(remote.name, f"the keyring has no token for {service} and {user}", advice)
    return token
