"""Under which names a server may be asked."""

from __future__ import annotations

import pytest

from taskyard.errors import BadValue
from taskyard.servers.http.access import allowed_hosts
from taskyard.servers.http.server import Address


def test_a_server_is_known_by_local_names_at_its_port() -> None:
    hosts = allowed_hosts(Address("127.0.0.1", 8787))
    for name in ("127.0.0.1:8787", "localhost:8787", "LocalHost:8787", "[::1]:8787"):
        assert hosts.knows(name)
        assert hosts.allows_origin(f"http://{name}")
        assert not hosts.allows_origin(f"https://{name}")
    for name in ("", "localhost", "localhost:87", "evil.example:8787", "localhost:8787 ", "127.0.0.1:8787/"):
        assert not hosts.knows(name)
        assert not hosts.allows_origin(f"http://{name}")


def test_a_server_is_known_by_the_address_it_printed_whichever_of_this_machine_it_is() -> None:
    for host, shown in (("127.0.0.2", "127.0.0.2"), ("::1", "[::1]"), ("192.0.2.1", "192.0.2.1")):
        assert allowed_hosts(Address(host, 8787)).knows(f"{shown}:8787")
        assert allowed_hosts(Address(host, 80)).knows(shown)
    assert not allowed_hosts(Address("0.0.0.0", 8787)).knows("0.0.0.0:8787")


def test_at_the_port_of_http_it_may_be_left_out() -> None:
    assert allowed_hosts(Address("127.0.0.1", 80)).knows("localhost")


def test_a_name_that_was_given_counts_as_it_was_given() -> None:
    hosts = allowed_hosts(Address("127.0.0.1", 8787), ("Yard.example", "other.example:444"))
    assert hosts.knows("yard.example")
    assert not hosts.knows("yard.example:8787")
    assert hosts.allows_origin("https://other.example:444")


@pytest.mark.parametrize("name", ["", "a/b", "a b", "a@b", "x" * 256, "é", "a\n"])
def test_what_can_be_no_name_is_refused(name: str) -> None:
    with pytest.raises(BadValue, match="--allow-host"):
        allowed_hosts(Address("127.0.0.1", 1), (name,))
