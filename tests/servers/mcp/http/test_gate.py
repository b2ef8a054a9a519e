"""Under which names the MCP server may be asked."""

from __future__ import annotations

from taskyard.servers.http.server import Address
from taskyard.servers.mcp.http import allowed_hosts


def test_the_names_a_server_has_are_local_ones_its_address_and_those_given() -> None:
    local = allowed_hosts(Address("127.0.0.1", 80), ())
    assert local.enable_dns_rebinding_protection
    assert local.allowed_hosts == ["127.0.0.1:*", "localhost:*", "[::1]:*"]
    assert local.allowed_origins == ["http://127.0.0.1:80", "http://localhost:80", "http://[::1]:80"]
    everywhere = allowed_hosts(Address("0.0.0.0", 80), ("yard.example",))
    assert "0.0.0.0:*" not in everywhere.allowed_hosts
    assert {"yard.example", "yard.example:*"} <= set(everywhere.allowed_hosts)
    assert "[fe80::1]:*" in allowed_hosts(Address("fe80::1", 80), ()).allowed_hosts
