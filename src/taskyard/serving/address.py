"""
Where a server listens: `8765`, `127.0.0.1:8765`, `[::1]:8765`; port 0 is any free one.

Beyond this machine only if told so.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import NamedTuple

from taskyard.errors import BadValue, CannotListen, UsageError

_EXPECTED = "a port, or an address and a port such as 127.0.0.1:8765 or [::1]:8765"

#: Connections that may wait to be accepted.
_BACKLOG = 128

_WHY = {
    errno.EADDRINUSE: ("the port is taken", "Choose another, or 0 for any free one."),
    errno.EACCES: ("the port is for the system's own services", "Choose one from 1024, or 0 for any free one."),
    errno.EADDRNOTAVAIL: ("this machine does not have that address", "127.0.0.1 is always there."),
}


class Address(NamedTuple):
    """A place to listen."""

    host: str  #: an IP address, without brackets
    port: int

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for every address of this machine."""
        return ipaddress.ip_address(self.host).is_unspecified

    @property
    def shown(self) -> str:
        """As it stands in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parsed(text: str, option: str = "--http") -> Address:
    """The address that `text`, the value of `option`, names.

    Raises:
        BadValue: it names none.
    """
    host, colon, port = text.rpartition(":")
    if not colon:
        host = "127.0.0.1"
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise BadValue(option, text, _EXPECTED)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise BadValue(option, text, _EXPECTED)
    if host == "localhost":
        host = "127.0.0.1"
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        raise BadValue(option, text, _EXPECTED) from error
    return Address(host, int(port))


def check_reach(address: Address, *, allow_remote: bool) -> None:
    """Let nothing listen beyond this machine by accident.

    Raises:
        UsageError: it would, and nobody said that it may.
    """
    if not address.is_local and not allow_remote:
        raise UsageError(
            f"{address.shown} can be reached from other machines, and whoever has the token can run commands as you; "
            "what is said can be read along the way, as it is not encrypted. Add --allow-remote if that is meant."
        )


def listen(address: Address) -> tuple[socket.socket, Address]:
    """A socket that listens there, and the address it got.

    Raises:
        CannotListen: the address is taken, or not ours.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio answers at once only on these
    except OSError as error:
        raise CannotListen(address.shown, error.strerror or str(error), "127.0.0.1 is always there.") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address.host, address.port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        why, advice = _WHY.get(error.errno or 0, (error.strerror or str(error), "Choose another address."))
        raise CannotListen(address.shown, why, advice) from error
    return made, address._replace(port=made.getsockname()[1])
