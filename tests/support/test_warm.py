"""A server from the loader is the server that would have been started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from support import warm
from support.cli import LONGEST
from support.repo import SOURCE
from support.wait import until
from taskyard.core.system import stat_fields


@pytest.fixture(autouse=True)
def _warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "_fork_exec", warm.fork_exec)


def served(*words: str, **env: str) -> subprocess.Popen[bytes]:
    around = {**os.environ, "PYTHONPATH": str(SOURCE), **env}
    return subprocess.Popen([*warm.COMMAND, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=around)


def is_forked(child: subprocess.Popen[bytes]) -> bool:
    """Who is forked keeps the command line of the loader; one who has just been started has none for a moment."""
    command = Path(f"/proc/{child.pid}/cmdline")
    until(command.read_bytes)
    return b"mcp\0" not in command.read_bytes()


def test_it_is_a_child_of_ours_in_our_folder_with_our_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with served() as child:
        assert child.stdin is not None
        assert child.stdout is not None
        meta = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": meta}).encode())
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert json.loads(child.stdout.readline())["result"]["serverInfo"]["name"] == "taskyard"
        assert is_forked(child)
        fields = stat_fields(str(child.pid))
        assert fields is not None
        assert int(fields[1]) == os.getpid()
        assert os.readlink(f"/proc/{child.pid}/cwd") == str(tmp_path)
        child.stdin.close()
        assert child.wait(LONGEST) == 0


def test_signals_and_exit_codes_are_its_own() -> None:
    with served("--no-such-option") as child:
        assert child.wait(LONGEST) == 2
    with served() as child:
        assert is_forked(child)
        child.kill()
        assert child.wait(LONGEST) == -signal.SIGKILL


def test_it_has_the_variables_it_was_given(tmp_path: Path) -> None:
    with served("--show-token", TASKYARD_HOME=str(tmp_path / "one")) as child:
        token, _ = child.communicate(timeout=LONGEST)
    assert (tmp_path / "one" / "mcp-token").read_bytes().strip() == token.strip()


def test_python_that_is_to_start_otherwise_is_started_as_ever() -> None:
    with served(PYTHONPATH=f"{SOURCE}:/elsewhere") as child:
        assert not is_forked(child)
        child.kill()
