"""What is wrong with a place, step by step, by real sockets on this machine."""

from __future__ import annotations

import asyncio
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.fake_places import FakePlace
from taskyard.jobs.remote.check import CheckResult, check, redact_url
from taskyard.jobs.remote.remotes import Remote


def checked(remote: Remote) -> CheckResult:
    return asyncio.run(check(remote))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[FakePlace]:
    found = FakePlace(tmp_path / "place")
    yield found
    found.kill()


class Door(socketserver.BaseRequestHandler):
    """Whoever knocks is answered with what the server was given to say."""

    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(self.server.says)  # type: ignore[attr-defined]  # set by `door`


@contextmanager
def door(says: bytes) -> Iterator[str]:
    """Where somebody listens, for a URL."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Door) as server:
        server.says = says  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.req("X-02")
def test_a_place_that_works_says_what_it_is(place: FakePlace) -> None:
    found = checked(place.remote())

    assert (found.problem, found.said) == ("", "a fake place with 0 sessions")


@pytest.mark.req("X-02")
@pytest.mark.parametrize(
    ("remote", "problem", "said", "advice"),
    [
        (Remote("x", "rey"), "unknown_backend", "remotes.x.backend", "config.toml"),
        (Remote("x", "fake", url="place"), "bad_url", "does not begin with http://", "http://host"),
        (Remote("x", "fake", url="http://"), "bad_url", "names no host", "http://host"),
        (Remote("x", "fake", url="http://h:99999"), "bad_url", "not a URL", "http://host"),
        (Remote("x", "fake", url="http://ada:pw@h"), "bad_url", "a password", "token_env"),
        (Remote("x", "fake", url="file:///nowhere"), "away", "no server for /nowhere", "x runs"),
        (Remote("x", "fake", url="file:///x", token_env="NO_SUCH"), "token_unset", "$NO_SUCH is not set", "export"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(remote: Remote, problem: str, said: str, advice: str) -> None:
    found = checked(remote)

    assert (found.problem, said in found.said, advice in found.advice) == (problem, True, True), found
    assert "pw" not in str(found)


@pytest.mark.req("X-02")
@pytest.mark.parametrize(
    ("says", "scheme", "problem", "said"),
    [
        (b"welcome\n", "http", "", "a door"),
        (b"SSH-2.0\n", "http", "refused", "something else is there"),
        (b"no TLS here\n", "https", "tls", "cannot be trusted"),
        (b"401\n", "http", "refused", "401: it does not take …"),
    ],
)
def test_who_answers_is_looked_at(
    says: bytes, scheme: str, problem: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOOR_TOKEN", "sesame")
    with door(says) as at:
        found = checked(Remote("x", "knock", url=f"{scheme}://{at}", token_env="DOOR_TOKEN"))

    assert (found.problem, said in found.said) == (problem, True), found
    assert "sesame" not in str(found)


@pytest.mark.req("X-02")
def test_a_port_at_which_nobody_listens_is_told_as_that() -> None:
    with door(b"") as at:
        pass
    found = checked(Remote("x", "knock", url=f"http://{at}"))

    assert (found.problem, found.is_away, found.said) == ("connection_refused", True, f"no server listens at {at}")


@pytest.mark.req("X-02")
def test_a_host_that_nobody_knows_is_told_as_that() -> None:
    """In a network of its own, so that nobody is asked."""
    program = (
        "import asyncio; from taskyard.jobs.remote.check import check;"
        " from taskyard.jobs.remote.remotes import Remote;"
        " print(asyncio.run(check(Remote('x', 'knock', url='http://nowhere.invalid:80'))).problem)"
    )
    alone = ["unshare", "--map-root-user", "--net", sys.executable, "-c", program]
    ran = subprocess.run(
        alone,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=os.environ | {"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    if "unshare" in ran.stderr:
        pytest.skip("no network of its own can be made here")

    assert ran.stdout.strip() == "no_such_host", ran.stderr


def test_a_password_is_never_shown() -> None:
    assert redact_url("http://ada:pw@host:80/a@b") == "http://host:80/a@b"
    assert redact_url("") == ""
