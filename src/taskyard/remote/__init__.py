"""
Agents that run elsewhere: where, by name (`remotes`), and how each place is spoken to (`backend`).

A backend is one module with one class (`backend.RemoteBackend`), made of a `Remote` and its token. A package of
somebody else's adds one by an entry point of the group `taskyard.remotes`.
"""

from __future__ import annotations

from taskyard.errors import BadValue, MissingExtra
from taskyard.names import nearest
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.remote.backend import RemoteBackend
    from taskyard.remote.remotes import Remote

#: Ours, and where each lives.
BUILTIN: Mapping[str, str] = {
    "ray": "taskyard.remote.ray:RayBackend",
    "a2a": "taskyard.remote.a2a.backend:A2aBackend",
    "fake": "taskyard.remote.fake:FakeBackend",
}

_GROUP = "taskyard.remotes"


def backend_of(remote: Remote, token: str = "") -> RemoteBackend:
    """What speaks to a place.

    Raises:
        BadValue: there is no such backend, or it cannot do with what is set up.
        MissingExtra: it takes packages that are not there.
    """
    places = known()
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


def known() -> dict[str, str]:
    """Every backend there is here, with the place of its class; nobody can take the place of one of ours."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
