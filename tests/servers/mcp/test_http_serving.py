"""How `taskyard mcp --http` begins and ends."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import anyio
import pytest

from support import cli
from support.mcp_http import HttpServer, together
from support.mcp_server import Mode, Said
from support.wait import until

BOTH: list[Mode] = ["auto", "legacy"]

#: Seconds a server may take to end, on a machine with other things to do.
BOUND = 14.0


@pytest.mark.req("T-05")
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_within_a_bound_however_many_listen(sig: signal.Signals) -> None:
    async def body() -> None:
        async with server.client("ada", mode="legacy", stay=True) as one, server.client("eve", stay=True) as two:
            await one.call("TaskList")
            await two.call("TaskList")
            began = time.monotonic()
            assert await anyio.to_thread.run_sync(server.stop, sig) == 0
            assert time.monotonic() - began < BOUND

    with HttpServer() as server:
        together(body)
    assert "Traceback" not in server.said


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", BOTH)
def test_a_call_on_its_way_is_answered_before_the_end(mode: Mode, tmp_path: Path) -> None:
    began, go = tmp_path / "began", tmp_path / "go"

    async def body() -> None:
        said: list[Said] = []
        async with server.client("ada", mode=mode, stay=True) as model:
            await model.client.list_tools()  # it wants to know what an answer looks like

            async def ask() -> None:
                said.append(
                    await model.call("Bash", command=f"touch {began}; until [ -e {go} ]; do sleep 0.02; done; echo hi")
                )

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await anyio.to_thread.run_sync(lambda: until(began.exists))
                server.process.send_signal(signal.SIGTERM)
                await anyio.to_thread.run_sync(lambda: until(lambda: not accepts(server), what="nobody is let in"))
                go.touch()
        assert said[0].data["output"] == "hi\n"

    with HttpServer() as server:
        together(body)
        assert server.stop() == 0


def accepts(server: HttpServer) -> bool:
    try:
        return server.bare("GET", "/healthz", token=None).status == 200
    except OSError:
        return False


@pytest.mark.req("T-05")
@pytest.mark.parametrize("mode", BOTH)
def test_a_call_that_takes_too_long_does_not_keep_it(mode: Mode, tmp_path: Path) -> None:
    began = tmp_path / "began"

    async def body() -> None:
        async with server.client("ada", mode=mode, stay=True) as model, anyio.create_task_group() as group:

            async def ask() -> None:
                try:
                    await model.call("Bash", command=f"echo $$ > {began}; sleep 60")
                except Exception:
                    answers.append("none")

            group.start_soon(ask)
            await anyio.to_thread.run_sync(lambda: until(lambda: began.exists() and began.read_text().strip()))
            start = time.monotonic()
            assert await anyio.to_thread.run_sync(server.stop) == 0
            assert time.monotonic() - start < BOUND

    answers: list[str] = []
    with HttpServer() as server:
        together(body)
    pid = int(began.read_text(encoding="utf-8"))
    until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.req("T-05")
def test_a_port_that_is_taken_is_said_to_be() -> None:
    with HttpServer() as server:
        ran = cli.process("mcp", "--http", server.address, "--json")
        assert ran.code == 1
        assert ran.error["code"] == "cannot_listen"
        assert "is taken" in ran.error["message"]
        assert server.is_alive


@pytest.mark.req("T-05")
@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "localhost:0"])
def test_it_says_where_it_is(address: str) -> None:
    with HttpServer(address=address) as server:
        assert server.call("TaskList").status == 200
        assert server.address.rpartition(":")[0] == address.rpartition(":")[0].replace("localhost", "127.0.0.1")


@pytest.mark.req("T-05")
def test_people_are_told_in_words_and_not_told_the_secret() -> None:
    child = cli.start("mcp", "--http", "0", "--list", "demo")
    assert child.stdout is not None
    line = child.stdout.readline()
    child.terminate()
    _, errors = child.communicate(timeout=cli.LONGEST)
    assert child.returncode == 0
    assert line.startswith("Listening on http://127.0.0.1:")
    assert "/mcp-token." in line
    assert errors == ""
