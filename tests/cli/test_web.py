"""`taskyard web`, where what it needs is not installed."""

from __future__ import annotations

import sys

import pytest

from support.cli import taskyard
from taskyard.core.installation import extra_install_command


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("taskyard.ui.web", "taskyard.servers.http", "starlette"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    ran = taskyard("web", "--json")
    assert (ran.code, ran.error["code"], ran.error["extra"]) == (2, "missing_extra", "web")
    assert extra_install_command("web") in ran.error["message"]


def test_the_port_is_a_port() -> None:
    for port in ("x", "-1", "65536", "127.0.0.1", ""):
        assert taskyard("web", "--port", port, "--json").error["code"] == "bad_value"
