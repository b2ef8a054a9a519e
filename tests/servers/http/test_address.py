"""Where a server listens."""

from __future__ import annotations

import socket

import pytest

from taskyard.errors import BadValue, CannotListen, UsageError
from taskyard.servers.http.server import Address, check_exposure, listen, parse_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8765", "127.0.0.1", 8765),
        ("0", "127.0.0.1", 0),
        ("127.0.0.1:8765", "127.0.0.1", 8765),
        ("localhost:1", "127.0.0.1", 1),
        ("[::1]:65535", "::1", 65535),
        ("0.0.0.0:80", "0.0.0.0", 80),
    ],
)
def test_an_address_is_a_port_or_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize(
    "text", ["", "x", ":", ":80", "127.0.0.1", "127.0.0.1:", "1.2.3:80", "::1:80", "[::1]", "-1", "65536", "٣", "a.b:1"]
)
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(BadValue, match=r"127\.0\.0\.1:8765"):
        parse_address(text)


def test_only_what_this_machine_alone_can_reach_needs_no_word() -> None:
    for host in ("127.0.0.1", "127.8.9.10", "::1"):
        check_exposure(Address(host, 1), allow_remote=False)
    for host in ("0.0.0.0", "::", "10.0.0.1", "fe80::1"):
        check_exposure(Address(host, 1), allow_remote=True)
        with pytest.raises(UsageError, match="can run commands as you"):
            check_exposure(Address(host, 1), allow_remote=False)


def test_port_0_is_any_free_one_and_one_that_is_taken_is_said_to_be() -> None:
    first, address = listen(Address("127.0.0.1", 0))
    with first:
        assert address.port > 0
        with pytest.raises(CannotListen, match="the port is taken"):
            listen(address)
    with pytest.raises(CannotListen, match="does not have that address"):
        listen(Address("192.0.2.1", 0))


def test_answers_are_not_held_back_for_a_fuller_packet() -> None:
    """asyncio sees to that for sockets that say that they are TCP's."""
    made, _ = listen(Address("127.0.0.1", 0))
    with made:
        assert made.proto == socket.IPPROTO_TCP
