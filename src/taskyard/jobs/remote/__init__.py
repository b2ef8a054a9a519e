"""
Remote agents: configured remotes (`remotes`) and the backends that connect to them (`backend`).

A backend is one module with one class (`backend.RemoteBackend`), constructed from a `Remote` and its token. A
third-party package adds one with an entry point of the group `taskyard.remotes`.
"""

from __future__ import annotations

from taskyard.core.values import cast, nearest
from taskyard.errors import BadValue, MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.jobs.remote.backend import RemoteBackend
    from taskyard.jobs.remote.remotes import Remote

#: Built-in backends, by name: import path of the class.
BUILTIN: Mapping[str, str] = {
    "ray": "taskyard.jobs.remote.ray:RayBackend",
    "a2a": "taskyard.jobs.remote.a2a:A2aBackend",
    "fake": "taskyard.testing.fake_remote:FakeBackend",
}

_GROUP = "taskyard.remotes"


def create_backend(remote: Remote, token: str = "") -> RemoteBackend:
    """Create the backend of a remote.

    Raises:
        BadValue: There is no such backend, or it rejects the configuration.
        MissingExtra: It needs a package that is not installed.
    """
    places = registry()
    if remote.backend not in places:
        near = nearest(remote.backend, list(places))
        raise BadValue(f"remotes.{remote.name}.backend", remote.backend, f"one of {', '.join(near or sorted(places))}")
    from importlib import import_module

    module, _, attribute = places[remote.backend].partition(":")
    try:
        made = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("taskyard"):
            raise
        raise MissingExtra(f"The remote {remote.name}", "remote", error.name or "") from error
    return cast("RemoteBackend", made(remote, token))


def registry() -> dict[str, str]:
    """Return the import path of every installed backend; built-in ones cannot be overridden."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
