"""
What is wrong with a place as it is set up, if anything: found step by step, each with what to do next.

    its table → its backend → its URL → its token → the host → the port → TLS → who answers there
"""

from __future__ import annotations

import asyncio

from taskyard.errors import BadValue, MissingExtra, RemoteAway, RemoteRefused, TaskyardError
from taskyard.remote import backend_of
from taskyard.remote.pace import quick_of
from taskyard.remote.remotes import token_of
from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from taskyard.errors import UsageError
    from taskyard.remote.backend import Probing
    from taskyard.remote.remotes import Remote

#: Seconds for each step that asks somebody else.
PATIENCE = 10.0

#: The port of a URL that names none.
_PORTS = {"http": 80, "https": 443}


class Checked(NamedTuple):
    """What came of it."""

    remote: str
    backend: str
    url: str
    problem: str = ""  #: a word for programs; "": none
    said: str = ""  #: what is there, or what is wrong
    advice: str = ""  #: what to do next, if something is wrong

    @property
    def is_away(self) -> bool:
        """Whether trying again later may help."""
        return self.problem in ("connection_refused", "timeout", "away", "no_such_host")


class _Wrong(Exception):
    """A step that failed."""

    def __init__(self, problem: str, said: str, advice: str) -> None:
        super().__init__(said)
        self.problem, self.said, self.advice = problem, said, advice


def not_understood(name: str, error: UsageError) -> Checked:
    """What is wrong with a place whose table cannot be."""
    return Checked(name, "", "", "bad_table", str(error), "Look at it in config.toml.")


async def check(remote: Remote) -> Checked:
    """Look at one place; nothing is begun there, and nothing is raised."""
    found = Checked(remote.name, remote.backend, shown_url(remote.url))
    token = ""
    try:
        url = _url(remote)
        quick_of(remote)
        token = token_of(remote)
        backend = backend_of(remote, token)
        if url is not None and url.hostname:
            await _reached(remote.name, url)
        if not hasattr(backend, "probe"):
            return found._replace(said="set up; its backend cannot tell whether it is there")
        try:
            prober: Probing = cast("Probing", backend)
            said = await asyncio.wait_for(prober.probe(), PATIENCE)
        finally:
            await backend.close()
        return found._replace(said=said)
    except Exception as error:  # the top of an edge: whatever it is, it is what is wrong
        wrong = _understood(remote, error)
        said = wrong.said.replace(token, "…") if token else wrong.said
        return found._replace(problem=wrong.problem, said=said, advice=wrong.advice)


def _url(remote: Remote) -> SplitResult | None:
    """Its URL in parts; None if it has none."""
    from urllib.parse import urlsplit

    where = f"remotes.{remote.name}.url"
    if not remote.url:
        return None
    try:
        parts = urlsplit(remote.url)
        port = parts.port
    except ValueError as error:
        raise _Wrong("bad_url", f"{where} is no URL: {error}", "Write it as http://host:port.") from error
    if "@" in parts.netloc:
        advice = "Take them out of it, and name the variable that holds the token: token_env."
        raise _Wrong("bad_url", f"{where} holds a name or a password, which would be shown", advice)
    if parts.scheme in _PORTS and not parts.hostname:
        raise _Wrong("bad_url", f"{where} names no host", "Write it as http://host:port.")
    if not parts.scheme or (port is not None and parts.scheme not in _PORTS):
        raise _Wrong("bad_url", f"{where} does not begin with http:// or https://", "Write it as http://host:port.")
    return parts if parts.scheme in _PORTS else None


async def _reached(name: str, url: SplitResult) -> None:
    """See that somebody listens there, and speaks TLS where the URL says so."""
    import socket
    import ssl

    host, port = url.hostname or "", url.port or _PORTS[url.scheme]
    try:
        opening = asyncio.open_connection(host, port, ssl=True if url.scheme == "https" else None)
        _, writer = await asyncio.wait_for(opening, PATIENCE)
        writer.close()
    except socket.gaierror as error:
        advice = "Is it spelt right, and is this machine in its network?"
        raise _Wrong("no_such_host", f"{host} is not known here: {error.strerror or error}", advice) from error
    except ssl.SSLError as error:
        advice = "Write http:// if it does not speak TLS; else have its certificate known to this machine."
        raise _Wrong("tls", f"{host}:{port} cannot be trusted: {error.reason or error}", advice) from error
    except ConnectionRefusedError as error:
        advice = f"Does it run? Does it listen on port {port}, and not on its own machine alone?"
        raise _Wrong("connection_refused", f"nobody listens at {host}:{port}", advice) from error
    except TimeoutError as error:
        advice = "Is a firewall between here and there?"
        raise _Wrong("timeout", f"{host}:{port} did not answer within {PATIENCE:.0f} s", advice) from error
    except OSError as error:
        raise _Wrong(
            "away", f"{host}:{port}: {error.strerror or error}", f"See whether {name} can be reached."
        ) from error


def _understood(remote: Remote, error: Exception) -> _Wrong:
    if isinstance(error, _Wrong):
        return error
    if isinstance(error, MissingExtra):
        return _Wrong("missing_extra", str(error), "Install what is named.")
    if isinstance(error, BadValue):
        is_backend = error.field.endswith(".backend")
        return _Wrong("unknown_backend" if is_backend else "bad_value", str(error), "Change it in config.toml.")
    if isinstance(error, RemoteAway):
        return _Wrong("away", error.why, f"See whether {remote.name} runs, and can be reached from here.")
    if isinstance(error, RemoteRefused):
        unset = bool(remote.token_env) and error.why.startswith(f"${remote.token_env}")
        advice = (
            f"`export {remote.token_env}=…` before you start jobs there."
            if unset
            else str(error).removeprefix(error.fact).strip()
        )
        return _Wrong("token_unset" if unset else "refused", error.why, advice or "See what it takes: its own log.")
    if isinstance(error, TimeoutError):
        return _Wrong("timeout", f"it did not answer within {PATIENCE:.0f} s", "Is it busy, or something else there?")
    said = str(error) if isinstance(error, TaskyardError) else f"{type(error).__name__}: {error}"
    return _Wrong("broken", said, f"This is a fault of the backend {remote.backend}.")


def shown_url(url: str) -> str:
    """A URL that can be shown: without a name and a password."""
    scheme, sign, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{sign}{host.rpartition('@')[2]}{slash}{path}"
