"""
Under which names a server may be asked, and from pages of which origin. Pure.

A page in somebody's browser may point a name of its own at this machine (DNS rebinding), or send requests here: the
first shows in `Host`, the second in `Origin`. Neither is a name of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from taskyard.errors import BadValue
from taskyard.serving.address import Address

LOCAL = ("127.0.0.1", "localhost", "[::1]")

_LONGEST = 255

_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-:[]")


class Hosts(NamedTuple):
    """The names of one server."""

    hosts: frozenset[str]  #: as `Host` has them, with a port where it is not the scheme's own
    origins: frozenset[str]

    def knows(self, host: str) -> bool:
        """Whether a request for `host` is for us."""
        return host.lower() in self.hosts

    def welcomes(self, origin: str) -> bool:
        """Whether a page of `origin` is ours."""
        return origin.lower() in self.origins


def names_of(address: Address, names: Sequence[str] = ()) -> list[str]:
    """Every name a server has, without a port: local ones, its own address, those given."""
    own = f"[{address.host}]" if ":" in address.host else address.host
    is_another = own not in LOCAL and not address.is_everywhere
    return [*LOCAL, *names, *([own] if is_another else [])]


def hosts_of(address: Address, names: Sequence[str] = ()) -> Hosts:
    """The names of a server at `address` and at no other port; `names`: as a proxy passes them on, port and all.

    Raises:
        BadValue: one of them can be no name.
    """
    given = [_checked(name) for name in names]
    own = [f"{name}:{address.port}" for name in names_of(address)]
    own += names_of(address) if address.port == 80 else []
    origins = [f"http://{name}" for name in own]
    origins += [f"{scheme}://{name}" for name in given for scheme in ("http", "https")]
    return Hosts(frozenset((*own, *given)), frozenset(origins))


def _checked(name: str) -> str:
    lower = name.lower()
    if not 0 < len(lower) <= _LONGEST or not _SIGNS.issuperset(lower):
        raise BadValue("--allow-host", name, "a name or address, with its port where it has one of its own")
    return lower
