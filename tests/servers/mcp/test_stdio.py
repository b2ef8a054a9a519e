"""`taskyard mcp` as clients start it: a process at the other end of a pipe, which may be killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

import taskyard
from support.mcp_server import LONGEST, Mode, Model, over_stdio, talk_over_stdio
from support.wait import until
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell

BOTH: list[Mode] = ["auto", "legacy"]  # the current protocol, and the one before it


class Raw:
    """A server whose client writes bare messages, and can be killed."""

    def __init__(self, *words: str) -> None:
        command = [sys.executable, "-m", "taskyard", "mcp", "--list", "demo", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._last = 0
        version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        self.ask("initialize", version)
        self.tell("notifications/initialized")

    def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._write({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def begin(self, method: str, params: dict[str, Any], *, times: int = 1) -> int:
        """Send a request, or the same several times at once; the number of the last."""
        numbers = range(self._last + 1, self._last + times + 1)
        sent = [{"jsonrpc": "2.0", "id": number, "method": method, "params": params} for number in numbers]
        self.write(b"\n".join(json.dumps(message).encode() for message in sent))
        self._last += times
        return self._last

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = self.begin(method, params)
        while (message := self.read()).get("id") != number:
            pass
        found: dict[str, Any] = message["result"]
        return found

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server is gone"
        found: dict[str, Any] = json.loads(line)
        return found

    def _write(self, message: dict[str, Any]) -> None:
        self.write(json.dumps(message).encode())

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hang_up(self) -> int:
        """Leave as a client does: by closing the pipe."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._gone()

    def kill(self) -> None:
        self.process.kill()
        self._gone()

    def _gone(self) -> int:
        code = self.process.wait(LONGEST)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        return code


def home() -> str:
    return os.environ["TASKYARD_HOME"]


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", BOTH)
@pytest.mark.usefixtures("cold")
def test_it_serves_the_current_protocol_and_the_one_before(mode: Mode) -> None:
    async def body(model: Model) -> None:
        assert model.client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        names = {tool.name for tool in (await model.client.list_tools()).tools}
        assert names >= {
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskUpdate",
            "TaskClaim",
            "TaskOutput",
            "TaskStop",
            "KillShell",
            "Bash",
            "SendMessage",
            "ListJobs",
        }
        assert (await model.call("TaskCreate", subject="A")).text == "Task #1 created successfully: A"
        started = await model.call("Bash", command="echo hello", run_in_background=True)
        found = await model.call("TaskOutput", task_id=started.data["task_id"])
        assert found.data["output"] == "hello\n"
        assert (await model.refused("TaskGet", taskId="7")).text == "Task not found"

    talk_over_stdio(body, mode=mode)


@pytest.mark.req("C-02", "T-05")
def test_it_tells_clients_when_a_list_pays_off() -> None:
    async def body(model: Model) -> None:
        said = model.client.instructions or ""
        assert "more than three steps" in said
        assert "no need to poll" in said

    talk_over_stdio(body)


@pytest.mark.req("L-09", "L-10")
def test_claims_are_the_connection_s_and_go_back_when_it_ends() -> None:
    with taskyard.open(list="demo") as yard:
        yard.tasks.create("A")
        yard.tasks.create("B")
        first, second = Raw("--agent", "ada"), Raw("--agent", "ada")
        assert first.call("TaskClaim")["structuredContent"]["task"]["owner"] == "ada"
        claimed = second.call("TaskClaim")["structuredContent"]["task"]
        assert (claimed["id"], claimed["owner"]) == ("2", "ada-2")
        lease = claimed["lease"]
        assert (lease["kind"], lease["owner"]) == ("process", "ada-2")

        first.kill()
        until(lambda: yard.tasks.get("1").owner is None)
        assert yard.tasks.get("1").status.value == "pending"
        assert second.hang_up() == 0
        until(lambda: yard.tasks.get("2").owner is None)


@pytest.mark.req("B-10")
def test_jobs_of_a_connection_end_with_it() -> None:
    server = Raw("--agent", "ada")
    job_id = server.call("Bash", command="sleep 60", run_in_background=True)["structuredContent"]["task_id"]
    server.kill()

    job = Jobs(home()).wait(job_id, timeout=20)

    assert job.end is not None
    assert (job.end.cause, job.end.by, job.end.proof) == ("stopped", "its starter's exit", "proved")


@pytest.mark.req("T-05")
def test_the_token_for_http_is_handed_to_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_MCP_TOKEN", "d0-not-tell-anybody")
    server = Raw()
    found = server.call("Bash", command="env")["structuredContent"]["output"]
    server.kill()
    assert "TASKYARD_JOB" in found
    assert "d0-not-tell" not in found


@pytest.mark.req("T-05")
@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        (rb'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"\ud800"}}', 77, -32700),
        (rb'{"jsonrpc":"2.0","id":"\ud800","method":"tools/list"}', None, -32700),
        (b'{"jsonrpc":"2.0","id":77,"method":', None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 10_000, None, -32700),
        (b"[]", None, -32600),
        (b'{"id":77,"method":"tools/list"}', 77, -32600),
        (b'{"id":77,"result":5}', None, -32600),
    ],
)
def test_a_line_that_cannot_be_read_is_answered_and_the_next_one_is_served(
    line: bytes, number: int | None, code: int
) -> None:
    server = Raw()
    server.write(b"")  # says nothing, and is told nothing
    server.write(line)
    said = server.read()
    assert (said["id"], said["error"]["code"]) == (number, code)
    assert "Nothing was done" in said["error"]["message"]
    assert server.call("TaskList")["content"][0]["text"] == "No tasks found"
    assert server.hang_up() == 0


@pytest.mark.req("T-05")
def test_a_first_line_that_cannot_be_read_keeps_nobody_from_being_served() -> None:
    command = [sys.executable, "-m", "taskyard", "mcp", "--list", "demo"]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    lines = b"nonsense\n" + json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}).encode()
    ran = subprocess.run(command, input=lines + b"\n", capture_output=True, timeout=LONGEST, check=True)
    first, second = map(json.loads, ran.stdout.splitlines())
    assert (first["error"]["code"], second["id"]) == (-32700, 1)


@pytest.mark.req("N-07", "B-05")
def test_a_notice_is_read_with_the_next_request_and_comes_again_if_there_is_none() -> None:
    jobs = Jobs(home(), agent="ada")
    one = jobs.start(Shell(["true"], on_parent_exit="keep")).id
    jobs.wait(one, timeout=20)
    jobs.close()
    first = Raw("--agent", "ada")
    (notice,) = first.call("TaskList")["_meta"]["taskyard/notices"]
    assert (notice["task_id"], notice["redelivered"]) == (one, False)
    first.kill()  # the answer was sent; nobody said that it arrived

    second = Raw("--agent", "ada")
    (again,) = second.call("TaskList")["_meta"]["taskyard/notices"]
    assert (again["id"], again["redelivered"]) == (notice["id"], True)
    assert "_meta" not in second.call("TaskList")  # this request said so
    second.kill()

    third = Raw("--agent", "ada")
    assert "_meta" not in third.call("TaskList")
    third.kill()


@pytest.mark.req("N-03")
def test_many_notices_come_as_batches_a_model_can_read() -> None:
    jobs = Jobs(home(), agent="ada")
    ids = [jobs.start(Shell(f": {'x' * 180} {number}")).id for number in range(40)]
    jobs.wait_all(ids, timeout=30)
    server = Raw("--agent", "ada")
    told: list[str] = []
    while notices := (said := server.call("TaskList")).get("_meta", {}).get("taskyard/notices", []):
        assert sum(len(block["text"]) for block in said["content"]) < 12_000
        told += [notice["task_id"] for notice in notices]
        waiting = len(ids) - len(told)
        assert ("more notice" in said["content"][-1]["text"]) == (waiting > 0)
    server.kill()
    jobs.close()
    assert sorted(told) == sorted(ids)


@pytest.mark.req("T-05", "B-09")
def test_a_client_killed_mid_call_leaves_nothing_running(tmp_path: Path) -> None:
    server = Raw("--agent", "ada")
    marker = tmp_path / "pid"
    server.begin("tools/call", {"name": "Bash", "arguments": {"command": f"echo $$ > {marker}; sleep 60"}})
    until(lambda: marker.exists() and marker.read_text(encoding="utf-8").strip() != "")
    pid = int(marker.read_text(encoding="utf-8"))

    server.kill()

    until(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.req("T-05")
def test_a_client_that_hangs_up_mid_call_ends_the_server_and_the_command(tmp_path: Path) -> None:
    server = Raw()
    marker = tmp_path / "pid"
    server.begin("tools/call", {"name": "Bash", "arguments": {"command": f"echo $$ > {marker}; sleep 60"}})
    until(lambda: marker.exists() and marker.read_text(encoding="utf-8").strip() != "")
    pid = int(marker.read_text(encoding="utf-8"))

    server.hang_up()

    until(lambda: not os.path.exists(f"/proc/{pid}"))


@pytest.mark.req("T-05")
def test_a_signal_ends_it_as_a_hang_up_does() -> None:
    server = Raw()
    server.call("TaskList")
    server.process.send_signal(signal.SIGTERM)
    assert server.hang_up() in (0, -signal.SIGTERM)


@pytest.mark.req("T-05", "L-08")
def test_many_clients_on_one_list_get_a_task_each() -> None:
    with taskyard.open(list="demo") as yard:
        for number in range(30):
            yard.tasks.create(f"Task {number}")
    claimed: list[str] = []

    async def work(number: int) -> None:
        async with over_stdio("--agent", f"agent{number}") as model:
            for _ in range(5):
                task_id = (await model.call("TaskClaim")).data["task"]["id"]
                assert not (await model.call("TaskUpdate", taskId=task_id, status="completed")).is_error
                claimed.append(task_id)

    async def everyone() -> None:
        with anyio.fail_after(LONGEST):
            async with anyio.create_task_group() as group:
                for number in range(6):
                    group.start_soon(work, number)

    anyio.run(everyone)
    assert sorted(claimed, key=int) == [str(number) for number in range(1, 31)]


@pytest.mark.req("N-07", "B-05")
def test_calls_that_were_sent_together_acknowledge_nothing_of_each_other() -> None:
    jobs = Jobs(home(), agent="ada")
    job = jobs.start(Shell(["true"], on_parent_exit="keep"))
    jobs.wait(job.id, timeout=20)
    for _ in range(3):
        server = Raw("--agent", "ada")
        server.begin("tools/call", {"name": "TaskList", "arguments": {}}, times=6)
        answers = [server.read() for _ in range(6)]
        told = [one for one in answers if "_meta" in one["result"]]
        assert len(told) == 1  # on one of them
        server.kill()
    jobs.close()


@pytest.mark.req("M-02")
def test_mail_that_was_read_comes_again_if_its_reader_dies_before_it_says_more() -> None:
    with taskyard.open(list="demo", agent="bob") as bob:
        bob.mail.open_box("ada")
        bob.mail.send("bob", "ada", "hello")
        first = Raw("--agent", "ada")
        (message,) = first.call("ReadMail")["structuredContent"]["messages"]
        assert (message["text"], message["redelivered"]) == ("hello", False)
        first.kill()

        second = Raw("--agent", "ada")
        (again,) = second.call("ReadMail")["structuredContent"]["messages"]
        assert (again["id"], again["redelivered"]) == (message["id"], True)
        assert second.call("ReadMail")["structuredContent"]["messages"] == []
        second.kill()
        assert bob.mail.receipt(message["id"]) == "read"
