"""`taskyard mcp` as a person meets it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

from support.cli import taskyard
from support.wait import until
from taskyard.core.installation import extra_install_command


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("taskyard.servers.mcp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)

    ran = taskyard("mcp")

    assert ran.code == 2
    assert extra_install_command("mcp") in ran.err


def test_at_a_terminal_it_says_what_it_is_and_ends_with_ctrl_c() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "taskyard", "mcp", "--list", "demo"]
    server = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, start_new_session=True)
    os.close(theirs)
    assert server.stderr is not None
    assert b"normally started by an MCP client" in server.stderr.readline()

    until(lambda: server.poll() is not None or _interrupted(server), timeout=20)

    assert server.wait(20) in (130, -signal.SIGINT)
    server.stderr.close()
    os.close(ours)


def _interrupted(server: subprocess.Popen[bytes]) -> bool:
    """Press Ctrl+C; it may not listen yet."""
    server.send_signal(signal.SIGINT)
    return False
