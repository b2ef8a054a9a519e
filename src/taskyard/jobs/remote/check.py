"""
Diagnose a configured remote step by step, with advice for the first problem found.

    table → backend → URL → token → host → port → TLS → the backend's own probe
"""

from __future__ import annotations

import asyncio

from taskyard.core.values import NamedTuple, cast
from taskyard.errors import BadValue, MissingExtra, RemoteAway, RemoteRefused, TaskyardError
from taskyard.jobs.remote import create_backend
from taskyard.jobs.remote.backend import poll_interval
from taskyard.jobs.remote.remotes import read_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from taskyard.errors import UsageError
    from taskyard.jobs.remote.backend import Probeable
    from taskyard.jobs.remote.remotes import Remote

#: Seconds for each step that uses the network.
CHECK_TIMEOUT = 10.0

#: Ports of URLs that name none.
_DEFAULT_PORTS = {"http": 80, "https": 443}


class CheckResult(NamedTuple):
    """Result of a check."""

    remote: str
    backend: str
    url: str
    problem: str = ""  #: a machine-readable code; "" if none
    said: str = ""  #: what is there, or what is wrong
    advice: str = ""  #: what to do next, if something is wrong

    @property
    def is_away(self) -> bool:
        """Whether a later retry may help."""
        return self.problem in ("connection_refused", "timeout", "away", "no_such_host")


class _CheckFailure(Exception):
    """A step that failed."""

    def __init__(self, problem: str, said: str, advice: str) -> None:
        super().__init__(said)
        self.problem, self.said, self.advice = problem, said, advice


def bad_table_result(name: str, error: UsageError) -> CheckResult:
    """Return the result for a remote whose table is invalid."""
    return CheckResult(name, "", "", "bad_table", str(error), "Look at it in config.toml.")


async def check(remote: Remote) -> CheckResult:
    """Check one remote; starts nothing there, and never raises."""
    found = CheckResult(remote.name, remote.backend, redact_url(remote.url))
    token = ""
    try:
        url = _parse_url(remote)
        poll_interval(remote)
        token = read_token(remote)
        backend = create_backend(remote, token)
        if url is not None and url.hostname:
            await _check_connection(remote.name, url)
        if not hasattr(backend, "probe"):
            return found._replace(said="set up; its backend cannot test the connection")
        try:
            prober: Probeable = cast("Probeable", backend)
            said = await asyncio.wait_for(prober.probe(), CHECK_TIMEOUT)
        finally:
            await backend.close()
        return found._replace(said=said)
    except Exception as error:  # top level: any exception is the problem to report
        wrong = _to_failure(remote, error)
        said = wrong.said.replace(token, "…") if token else wrong.said
        return found._replace(problem=wrong.problem, said=said, advice=wrong.advice)


def _parse_url(remote: Remote) -> SplitResult | None:
    """Return the URL in parts; None if there is none."""
    from urllib.parse import urlsplit

    where = f"remotes.{remote.name}.url"
    if not remote.url:
        return None
    try:
        parts = urlsplit(remote.url)
        port = parts.port
    except ValueError as error:
        raise _CheckFailure("bad_url", f"{where} is not a URL: {error}", "Write it as http://host:port.") from error
    if "@" in parts.netloc:
        advice = "Take them out of it, and name the variable that holds the token: token_env."
        raise _CheckFailure("bad_url", f"{where} holds a name or a password, which would be shown", advice)
    if parts.scheme in _DEFAULT_PORTS and not parts.hostname:
        raise _CheckFailure("bad_url", f"{where} names no host", "Write it as http://host:port.")
    if not parts.scheme or (port is not None and parts.scheme not in _DEFAULT_PORTS):
        raise _CheckFailure(
            "bad_url", f"{where} does not begin with http:// or https://", "Write it as http://host:port."
        )
    return parts if parts.scheme in _DEFAULT_PORTS else None


async def _check_connection(name: str, url: SplitResult) -> None:
    """Check that a server listens there, with TLS where the URL requires it."""
    import socket
    import ssl

    host, port = url.hostname or "", url.port or _DEFAULT_PORTS[url.scheme]
    try:
        opening = asyncio.open_connection(host, port, ssl=True if url.scheme == "https" else None)
        _, writer = await asyncio.wait_for(opening, CHECK_TIMEOUT)
        writer.close()
    except socket.gaierror as error:
        advice = "Is it spelt right, and is this machine in its network?"
        raise _CheckFailure("no_such_host", f"{host} is not known here: {error.strerror or error}", advice) from error
    except ssl.SSLError as error:
        advice = "Write http:// if it does not use TLS; else make this machine trust its certificate."
        raise _CheckFailure("tls", f"{host}:{port} cannot be trusted: {error.reason or error}", advice) from error
    except ConnectionRefusedError as error:
        advice = f"Does it run? Does it listen on port {port}, and not on its own machine alone?"
        raise _CheckFailure("connection_refused", f"no server listens at {host}:{port}", advice) from error
    except TimeoutError as error:
        advice = "Is a firewall between here and there?"
        raise _CheckFailure("timeout", f"{host}:{port} did not answer within {CHECK_TIMEOUT:.0f} s", advice) from error
    except OSError as error:
        raise _CheckFailure(
            "away", f"{host}:{port}: {error.strerror or error}", f"See whether {name} can be reached."
        ) from error


def _to_failure(remote: Remote, error: Exception) -> _CheckFailure:
    if isinstance(error, _CheckFailure):
        return error
    if isinstance(error, MissingExtra):
        return _CheckFailure("missing_extra", str(error), "Install what is named.")
    if isinstance(error, BadValue):
        is_backend = error.field.endswith(".backend")
        return _CheckFailure("unknown_backend" if is_backend else "bad_value", str(error), "Change it in config.toml.")
    if isinstance(error, RemoteAway):
        return _CheckFailure("away", error.why, f"See whether {remote.name} runs, and can be reached from here.")
    if isinstance(error, RemoteRefused):
        unset = bool(remote.token_env) and error.why.startswith(f"${remote.token_env}")
        advice = (
            f"`export {remote.token_env}=…` before you start jobs there."
            if unset
            else str(error).removeprefix(error.fact).strip()
        )
        return _CheckFailure(
            "token_unset" if unset else "refused", error.why, advice or "Its own log shows the reason."
        )
    if isinstance(error, TimeoutError):
        return _CheckFailure(
            "timeout", f"it did not answer within {CHECK_TIMEOUT:.0f} s", "Is it busy, or something else there?"
        )
    said = str(error) if isinstance(error, TaskyardError) else f"{type(error).__name__}: {error}"
    return _CheckFailure("broken", said, f"This is a fault of the backend {remote.backend}.")


def redact_url(url: str) -> str:
    """Return a URL for display, without user name and password."""
    scheme, sign, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{sign}{host.rpartition('@')[2]}{slash}{path}"
