"""A client's hook finds the agent that the client's own MCP server acts for, and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.cli import process
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

#: A client: it starts a server, asks it for something or not, and prints what its hook answers once it is told to.
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
if sys.argv[2] == "asks":
    say('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"TaskList","arguments":{}}}')
    server.stdout.readline()
print("ready", flush=True)
sys.stdin.readline()
hook = ["sh", "-c", '"$0" -m taskyard hook UserPromptSubmit --strict "$@"; true', sys.executable, *sys.argv[3:]]
done = subprocess.run(hook, input=b'{"hook_event_name": "UserPromptSubmit"}', stdout=subprocess.PIPE)
print(done.stdout.decode().strip() or "nothing", flush=True)
server.stdin.close(); server.wait()
"""


class Client:
    def __init__(self, agent: str, *hook: str, asks: bool = True) -> None:
        command = [sys.executable, "-c", CLIENT, agent, "asks" if asks else "does not", *hook]
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


def notice_for(agent: str) -> str:
    """A job of `agent` that ended."""
    jobs = Jobs(os.environ["TASKYARD_HOME"], agent=agent)
    job = jobs.start(Shell(["true"], on_parent_exit="keep"))
    jobs.wait(job.id, timeout=20)
    jobs.close()
    return job.id


@pytest.mark.req("N-07", "T-05")
def test_of_two_clients_whose_hooks_have_one_name_each_hears_what_is_for_its_own_server() -> None:
    first, second = Client("ada", "--by", "ada"), Client("ada", "--by", "ada")
    for_first, for_second = notice_for("ada"), notice_for("ada-2")

    told = second.hook()
    assert (for_first in told, for_second in told) == (False, True)
    told = first.hook()
    assert (for_first in told, for_second in told) == (True, False)


@pytest.mark.req("N-07", "T-05")
def test_a_client_whose_server_has_no_name_yet_takes_nothing_of_another_of_that_name() -> None:
    first, second = Client("ada", "--by", "ada"), Client("ada", "--by", "ada", asks=False)
    job_id = notice_for("ada")

    assert second.hook() == "nothing"
    assert job_id in first.hook()


@pytest.mark.req("N-07")
def test_a_name_that_nobody_has_now_is_the_hooks_own() -> None:
    client = Client("bob", "--by", "ada")
    job_id = notice_for("ada")

    assert job_id in client.hook()
