"""A client's hook finds the agent that the client's own MCP server acts for, and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.cli import process
from taskyard.kinds.shell import Shell
from taskyard.runtime.jobs import Jobs

#: A client: it starts a server and waits to be asked for its hook, whose answer it prints.
CLIENT = """
import subprocess, sys
server = subprocess.Popen([sys.executable, "-m", "taskyard", "mcp", "--list", "demo", "--agent", sys.argv[1]],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def say(text):
    server.stdin.write(text.encode() + b"\\n"); server.stdin.flush()
say('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"client","version":"1"}}}')
server.stdout.readline()
say('{"jsonrpc":"2.0","method":"notifications/initialized"}')
say('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"TaskList","arguments":{}}}')
server.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
done = subprocess.run(["sh", "-c", '"$0" -m taskyard hook UserPromptSubmit --strict; true', sys.executable],
                      input=b'{"hook_event_name": "UserPromptSubmit"}', stdout=subprocess.PIPE)
print(done.stdout.decode().strip() or "nothing", flush=True)
server.stdin.close(); server.wait()
"""


class Client:
    def __init__(self, agent: str) -> None:
        command = [sys.executable, "-c", CLIENT, agent]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def hook(self) -> str:
        """What the client's hook answers with."""
        said, _ = self._process.communicate("go\n", timeout=30)
        return said.strip()


@pytest.mark.req("N-07", "T-05")
def test_a_hook_delivers_what_is_for_the_server_of_the_same_client() -> None:
    first, second = Client("ada"), Client("bob")
    jobs = Jobs(os.environ["TASKYARD_HOME"], agent="bob")
    job = jobs.start(Shell(["true"], on_parent_exit="keep"))
    jobs.wait(job.id, timeout=20)
    jobs.close()

    assert first.hook() == "nothing"
    told = json.loads(second.hook())["hookSpecificOutput"]["additionalContext"]

    assert job.id in told
    assert process("notices", "take", "--all", "--json").data == []
