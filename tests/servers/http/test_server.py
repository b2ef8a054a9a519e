"""The end of a server by a signal, also of one whose event loop is stuck."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest

#: Serves one request that never ends, in Python or in a regular expression, on the event loop.
STUCK = """
import re, sys, anyio
from starlette.responses import Response
from taskyard.servers.http import server
from taskyard.servers.http.server import Address; from taskyard.servers.http.server import listen
from taskyard.servers.http.server import Exchanges

server.EXIT_DEADLINE = float(sys.argv[2])

async def app(scope, receive, send):
    print("stuck", flush=True)
    while sys.argv[1] == "python":
        pass
    re.match("(a|aa)+$", "a" * 60 + "b")

async def run():
    listening, address = listen(Address("127.0.0.1", 0))
    limits = server.Limits(10, 1000)
    ready = lambda: print(address.port, flush=True)
    end = Exchanges(Response(status_code=503))
    await server.serve(app, listening, identify=lambda _: None, limits=limits, exchanges=end, ready=ready)

anyio.run(run)
"""


@contextmanager
def _stuck(how: str, last: float) -> Generator[subprocess.Popen[bytes]]:
    """A server whose event loop runs something that does not end; it exits `last` seconds after a signal."""
    command = [sys.executable, "-c", STUCK, how, str(last)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            with socket.create_connection(("127.0.0.1", int(process.stdout.readline()))) as made:
                made.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert process.stdout.readline() == b"stuck\n"
                yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", ["python", "regular expression"])
def test_a_signal_ends_a_server_that_is_stuck(how: str) -> None:
    with _stuck(how, 0.5) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 1


@pytest.mark.parametrize("how", ["python", "regular expression"])
def test_a_second_signal_ends_a_server_that_is_stuck_at_once(how: str) -> None:
    with _stuck(how, 3600) as process:
        deadline = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < deadline:
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        assert process.wait(1) == 128 + signal.SIGINT
