"""What a request over HTTP must show before any of it is heard, and what never leaves the server."""

from __future__ import annotations

import os
import socket
import stat
import time
from pathlib import Path

import anyio
import pytest

import taskyard
from support import cli
from support.mcp_http import ACCEPT, NEW, OLD, HttpServer, call_headers, call_of, together
from support.wait import until

SECRET = "a-secret-of-my-own-0123456789"


def nothing_happened() -> bool:
    with taskyard.open(list="demo") as yard:
        return not yard.tasks.list()


@pytest.mark.req("T-05")
def test_without_the_token_nothing_is_heard_and_nothing_told() -> None:
    message = call_of("TaskCreate", {"subject": "A"})
    with HttpServer() as server:
        wrong = [
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Basic {server.token}"},
            {"Authorization": server.token},
            {"Authorization": f"Bearer {server.token}x"},
            {"Authorization": f"Bearer {server.token[:-1]}"},
            {"Authorization": "Bearer "},
            {"Authorization": "Bearer \xff\xfe"},
        ]
        for headers in wrong:
            for path in ("/mcp", "/", "/mcp/../mcp"):
                for version in (NEW, OLD):
                    sent = {**call_headers("TaskCreate"), **headers, "Mcp_Protocol_Version": version}
                    got = server.bare("POST", path, b"%r" % message, token=None, **sent, Accept=ACCEPT)
                    assert got.status == 401
                    assert got.headers["www-authenticate"].startswith('Bearer realm="taskyard"')
                    assert got.json["error"] == "unauthorized"
        for method in ("GET", "DELETE", "OPTIONS", "PUT"):
            assert server.bare(method, "/mcp", token=None).status == 401
        assert server.call("TaskList").status == 200
    assert nothing_happened()


@pytest.mark.req("T-05")
def test_two_tokens_in_one_request_are_none() -> None:
    with HttpServer() as server:
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            twice = f"Authorization: Bearer {server.token}\r\n" * 2
            raw.sendall(f"GET /mcp HTTP/1.1\r\nHost: {server.address}\r\n{twice}Connection: close\r\n\r\n".encode())
            assert raw.recv(100).startswith(b"HTTP/1.1 401")


@pytest.mark.req("T-05")
def test_that_it_lives_is_all_a_stranger_learns() -> None:
    with HttpServer() as server:
        got = server.bare("GET", "/healthz", token=None)
        assert (got.status, got.json) == (200, {"status": "ok"})
        assert server.bare("POST", "/healthz", b"{}", token=None).status == 405
        assert "server" not in got.headers


@pytest.mark.req("T-05")
def test_a_name_that_is_not_its_own_is_turned_away() -> None:
    """As a page does whose own name leads to this machine since a moment ago."""
    with HttpServer() as server:
        port = server.address.split(":")[1]
        for host in (
            "evil.example",
            f"evil.example:{port}",
            f"127.0.0.1.evil.example:{port}",
            "",
            f"localhost.:{port}",
        ):
            assert server.bare("GET", "/healthz", token=None, Host=host).status == 421
            assert server.bare("POST", "/mcp", b"{}", Host=host).status == 421
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", "localhost:1234"):
            assert server.bare("GET", "/healthz", token=None, Host=host).status == 200


@pytest.mark.req("T-05")
def test_a_page_of_another_origin_is_turned_away_and_none_may_read_an_answer() -> None:
    with HttpServer() as server:
        message, headers = call_of("TaskCreate", {"subject": "A"}), call_headers("TaskCreate")
        for origin in ("https://evil.example", "null", "http://localhost:1", "file://"):
            assert server.post(message, **headers, Origin=origin).status == 403
        assert nothing_happened()
        asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization"}
        for got in (
            server.bare("OPTIONS", "/mcp", Origin=f"http://{server.address}", **asked),
            server.post(message, **headers, Origin=f"http://{server.address}"),
        ):
            assert not [name for name in got.headers if name.startswith("access-control")]


@pytest.mark.req("T-05")
def test_a_further_name_is_one_that_was_given() -> None:
    with HttpServer("--allow-host", "yard.example") as server:
        for host, status in (("yard.example", 200), ("yard.example:443", 200), ("other.example", 421)):
            assert server.bare("GET", "/healthz", token=None, Host=host).status == status


@pytest.mark.req("T-05")
def test_a_request_that_is_too_large_is_refused_as_soon_as_that_is_known() -> None:
    with HttpServer(TASKYARD_MCP_BODY_LIMIT="10000") as server:
        large = call_of("TaskCreate", {"subject": "A", "description": "x" * 10_000})
        assert server.post(large, **call_headers("TaskCreate")).status == 413
        assert server.post(large, Mcp_Protocol_Version=OLD).status == 413

        def pieces() -> object:
            yield from [b" " * 1000] * 20

        headers = {"Content_Type": "application/json", "Accept": ACCEPT}
        assert server.bare("POST", "/mcp", pieces(), **call_headers("TaskCreate"), **headers).status == 413
        host, port = server.address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:  # it says so before anything is sent
            raw.sendall(
                f"POST /mcp HTTP/1.1\r\nHost: {server.address}\r\nAuthorization: Bearer {server.token}\r\n"
                "Content-Length: 99999999999\r\n\r\n".encode()
            )
            assert raw.recv(100).startswith(b"HTTP/1.1 413")
        assert server.is_alive
    assert nothing_happened()


@pytest.mark.req("T-05")
def test_the_token_is_made_once_and_only_its_owner_can_read_it() -> None:
    with HttpServer() as first:
        file = Path(first.ready["token_file"])
        assert file == Path(os.environ["TASKYARD_HOME"], "mcp-token")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(first.token) >= 40
        with HttpServer() as second:
            assert second.token == first.token
            assert second.address != first.address
    assert cli.process("mcp", "--show-token").out.strip() == first.token
    assert cli.process("mcp", "--show-token", "--json").data == {"token": first.token, "token_file": str(file)}


@pytest.mark.req("T-05")
@pytest.mark.usefixtures("cold")
def test_a_token_of_ones_own_is_in_no_log_no_argument_and_no_job() -> None:
    with HttpServer(TASKYARD_MCP_TOKEN=SECRET) as server:
        assert server.ready["token_file"] is None
        assert server.bare("GET", "/mcp", token="wrong-" + SECRET).status == 401
        found = server.call("Bash", command="env").json["result"]
        assert not found.get("isError")
        assert "TASKYARD_JOB" in found["structuredContent"]["output"]
        assert SECRET not in found["structuredContent"]["output"]
        command = Path(f"/proc/{server.process.pid}/cmdline").read_bytes()
        assert SECRET.encode() not in command
        server.post(b"{", **call_headers("TaskList"))
        server.bare("GET", "/mcp", Host="evil.example")
        until(lambda: "evil.example" in server.said)
        assert SECRET not in server.said
    assert not Path(os.environ["TASKYARD_HOME"], "mcp-token").exists()


@pytest.mark.req("T-05")
def test_a_token_from_a_file_goes_before_that_of_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET + "\n", encoding="ascii")
    file.chmod(0o600)
    with HttpServer("--token-file", str(file), TASKYARD_MCP_TOKEN="another-" + SECRET) as server:
        assert server.token == SECRET
        assert server.call("TaskList").status == 200


@pytest.mark.req("T-05")
@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("--http", "0.0.0.0:0"), "usage", "--allow-remote"),
        (("--http", "[::]:0"), "usage", "--allow-remote"),
        (("--http", "192.0.2.7:80"), "usage", "not encrypted"),
        (("--http", "192.0.2.7:0", "--allow-remote"), "cannot_listen", "does not have that address"),
        (("--http", "evil.example:80"), "bad_value", "127.0.0.1:8765"),
        (("--http", "99999"), "bad_value", "a port"),
        (("--token-file", "x"), "usage", "--http"),
    ],
)
def test_what_it_will_not_do_is_said_and_nothing_is_served(words: tuple[str, ...], code: str, part: str) -> None:
    ran = cli.process("mcp", *words, "--json")
    assert ran.code != 0
    assert ran.error["code"] == code
    assert part in ran.error["message"]


@pytest.mark.req("T-05")
def test_a_hostile_workflow_is_refused_at_once_and_others_are_answered_meanwhile() -> None:
    hostile = {"env": {"a": "${{" * 60_000}, "steps": [{"id": "s", "run": "true"}]}
    waits: list[float] = []

    async def attack(server: HttpServer) -> None:
        async with server.client("eve") as model:
            said = await model.refused("Workflow", definition=hostile)
            assert "${{ without }}" in said.text or "more than 1,000 times" in said.text

    async def body() -> None:
        async with server.client("ada") as model, anyio.create_task_group() as tasks:
            tasks.start_soon(attack, server)
            for _ in range(5):
                began = time.monotonic()
                await model.call("TaskList")
                waits.append(time.monotonic() - began)

    with HttpServer() as server:
        together(body)
        assert max(waits) < 5.0
        assert server.stop() == 0
