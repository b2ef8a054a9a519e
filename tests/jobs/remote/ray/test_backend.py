"""The backend for Ray, against a server that answers as a real one was recorded to."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TypeVar

import pytest

from support.ray_answers import recorded
from support.ray_server import RayServer, ray_server, say, send
from taskyard.errors import BadValue, RemoteAway, RemoteRefused, TaskyardError
from taskyard.jobs.remote import create_backend, ray
from taskyard.jobs.remote.backend import PollResult, RemoteState, Work
from taskyard.jobs.remote.ray import RayBackend
from taskyard.jobs.remote.remotes import Remote
from taskyard.testing import check_remote_backend

TOKEN = "the-token-of-this-cluster"

T = TypeVar("T")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RayServer]:
    with ray_server(tmp_path, TOKEN) as found:
        yield found


def made(server: RayServer, token: str = TOKEN) -> RayBackend:
    return RayBackend(Remote("cluster", "ray", url=server.url), token)


def ask(server: RayServer, act: Callable[[RayBackend], Awaitable[T]], token: str = TOKEN) -> T:
    async def asked() -> T:
        backend = made(server, token)
        try:
            return await act(backend)
        finally:
            await backend.close()

    return asyncio.run(asked())


def polled(server: RayServer, cursor: str = "") -> PollResult:
    return ask(server, lambda backend: backend.poll("r1", cursor))


def job_says(server: RayServer, name: str, **changed: object) -> None:
    """From now on of every job this is told."""
    told = json.dumps({**json.loads(recorded()[name].body), **changed})
    server.instead["/api/jobs/"] = lambda handler: say(handler, name, told)


def log_says(server: RayServer, said: bytes) -> None:
    server.instead["/api/v0/logs/file"] = lambda handler: send(handler, 200, said, "text/plain")


@pytest.mark.req("X-02")
def test_ray_keeps_the_promises_of_a_place(server: RayServer) -> None:
    check_remote_backend(
        lambda: made(server),
        talkative=lambda work: work._replace(command='printf %s "$TASKYARD_PROMPT"'),
        failing=lambda work: work._replace(command="exit 3"),
        endless=lambda work: work._replace(command="exec sleep 300"),
        away=lambda: RayBackend(Remote("gone", "ray", url="http://127.0.0.1:9")),
        stranger=lambda: made(server, "wrong"),
    )


def test_it_is_found_by_its_name(server: RayServer) -> None:
    assert isinstance(create_backend(Remote("cluster", "ray", url=server.url)), RayBackend)


def test_a_probe_tells_the_version_and_how_many_nodes_there_are(server: RayServer) -> None:
    assert ask(server, RayBackend.probe) == "Ray 2.60.0, 1 node"


def test_a_probe_of_one_that_does_not_list_its_nodes_tells_the_version(server: RayServer) -> None:
    server.instead["/api/v0/nodes"] = lambda handler: say(handler, "no route")

    assert ask(server, RayBackend.probe) == "Ray 2.60.0"


# -- states ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("pending", RemoteState.RUNNING),
        ("running", RemoteState.RUNNING),
        ("succeeded", RemoteState.COMPLETED),
        ("failed", RemoteState.FAILED),
        ("stopped", RemoteState.STOPPED),
    ],
)
def test_each_status_of_ray_is_a_state_of_ours(server: RayServer, name: str, state: RemoteState) -> None:
    job_says(server, name)

    seen = polled(server)

    assert seen.state is state
    assert seen.metadata["status"] == name.upper()


def test_a_failure_says_why_without_the_log_that_ray_adds(server: RayServer) -> None:
    job_says(server, "failed")

    assert polled(server).error == "Job entrypoint command failed with exit code 3"


@pytest.mark.req("X-02")
def test_a_job_that_ray_forgot_is_lost_and_that_is_said_plainly(server: RayServer) -> None:
    seen = polled(server, "12-0000000a")

    assert (seen.state, seen.cursor) == (RemoteState.LOST, "12-0000000a")
    assert "its head was restarted, which loses all jobs" in seen.error


def test_a_404_of_somebody_else_is_not_taken_for_a_lost_job(server: RayServer) -> None:
    server.instead["/api/"] = lambda handler: send(handler, 404, b"<h1>nginx</h1>", "text/html")

    for verb in (lambda backend: backend.poll("r1"), lambda backend: backend.stop("r1"), RayBackend.probe):
        with pytest.raises(RemoteRefused, match="not Ray"):
            ask(server, verb)


def test_a_status_that_nobody_knows_is_refused(server: RayServer) -> None:
    job_says(server, "running", status="DREAMING\x1b[31m")

    with pytest.raises(RemoteRefused, match="DREAMING") as raised:
        polled(server)
    assert "\x1b" not in str(raised.value)


# -- logs ------------------------------------------------------------------------------------


def test_what_is_said_without_a_line_end_comes_when_the_job_is_over(server: RayServer) -> None:
    log_says(server, b"one\ntw")
    job_says(server, "running")
    first = polled(server)
    job_says(server, "succeeded")
    last = polled(server, first.cursor)

    assert (first.text, last.text) == ("one\n", "tw")


@pytest.mark.req("X-02")
def test_of_a_job_that_died_with_its_node_what_was_copied_stays(server: RayServer) -> None:
    log_says(server, b"one\ntwo\n")
    job_says(server, "running")
    first = polled(server)
    job_says(server, "died with its node")
    server.instead |= {
        "/api/v0/logs/file": lambda handler: say(handler, "no agent"),
        "/api/v0/nodes": lambda handler: say(handler, "node dead"),
    }
    last = polled(server, first.cursor)

    assert first.text == "one\ntwo\n"
    assert (last.state, last.text, last.cursor) == (RemoteState.FAILED, "", first.cursor)
    assert "died unexpectedly" in last.error and "its node is gone" in last.error


def test_while_a_node_does_not_answer_its_job_is_running_and_that_is_noted(server: RayServer) -> None:
    job_says(server, "running")
    server.instead["/api/v0/logs/file"] = lambda handler: say(handler, "node away")

    seen = polled(server, "4-00000000")

    assert (seen.state, seen.text, seen.cursor) == (RemoteState.RUNNING, "", "4-00000000")
    assert seen.metadata["log"]


def test_a_job_whose_log_cannot_be_read_now_is_not_over_before_it_is(server: RayServer) -> None:
    job_says(server, "succeeded")
    server.instead["/api/v0/logs/file"] = lambda handler: say(handler, "node away")

    with pytest.raises(RemoteAway, match="the log of r1 cannot be read now"):
        polled(server)


@pytest.mark.parametrize(("total", "is_lost"), [(0, False), (2, True)])
def test_a_node_that_is_not_listed_is_gone_unless_the_head_lists_none_yet(
    server: RayServer, total: int, is_lost: bool
) -> None:
    job_says(server, "succeeded")
    listed = json.dumps({"data": {"result": {"total": total, "result": []}}})
    server.instead |= {
        "/api/v0/logs/file": lambda handler: say(handler, "no agent"),
        "/api/v0/nodes": lambda handler: say(handler, "node dead", listed),
    }

    if is_lost:
        assert "its node is gone" in polled(server).error
    else:
        with pytest.raises(RemoteAway):
            polled(server)


def test_a_job_that_never_wrote_anything_is_over_all_the_same(server: RayServer) -> None:
    job_says(server, "succeeded")

    assert polled(server).state is RemoteState.COMPLETED


def test_a_log_that_comes_packed_is_not_unpacked(server: RayServer) -> None:
    job_says(server, "running")
    packed = gzip.compress(b"hello\n")
    server.instead["/api/v0/logs/file"] = lambda handler: send(
        handler, 200, packed, "text/plain", content_encoding="gzip"
    )

    with pytest.raises(RemoteRefused, match="packed"):
        polled(server)


def test_what_came_of_a_log_that_broke_off_is_told_and_the_job_is_not_over(server: RayServer) -> None:
    job_says(server, "succeeded")

    def breaks_off(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.wfile.write(b"one\ntwo\nthr")

    server.instead["/api/v0/logs/file"] = breaks_off

    seen = polled(server)

    assert (seen.state, seen.text) == (RemoteState.RUNNING, "one\ntwo\n")


def test_a_log_that_is_another_one_now_comes_from_its_beginning_and_says_so(server: RayServer) -> None:
    job_says(server, "running")
    log_says(server, b"one\ntwo\n")
    first = polled(server)
    log_says(server, b"three\n")
    second = polled(server, first.cursor)

    assert second.text.splitlines()[1:] == ["three"]
    assert "another one" in second.text.splitlines()[0]
    assert polled(server, second.cursor).text == ""


def test_a_final_state_waits_for_the_last_of_a_log_that_comes_in_parts(
    server: RayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "MAX_POLL_BYTES", 1000)
    lines = b"".join(b"line %d\n" % number for number in range(400))
    job_says(server, "failed")
    log_says(server, lines)
    seen, text, polls = polled(server), "", 1
    while not seen.state.is_final:
        assert not seen.error
        seen, text, polls = polled(server, seen.cursor), text + seen.text, polls + 1

    assert (text + seen.text).encode() == lines
    assert polls == 4 and seen.error


def test_of_a_log_that_is_too_long_the_beginning_and_the_last_lines_are_told(
    server: RayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray, "MAX_LOG_BYTES", 1000)
    monkeypatch.setattr(ray, "TAIL_BYTES", 100)
    log_says(server, b"".join(b"line %d\n" % number for number in range(400)))
    job_says(server, "running")
    first = polled(server)
    quiet = polled(server, first.cursor)
    job_says(server, "succeeded")
    last = polled(server, first.cursor)
    after = polled(server, last.cursor)

    assert first.text.startswith("line 0\n")
    assert quiet.text == "" and quiet.state is RemoteState.RUNNING
    assert "too long" in last.text and last.text.endswith("\nline 399\n") and len(last.text) < 300
    assert last.state is after.state is RemoteState.COMPLETED and after.text == ""


def test_a_long_log_with_nothing_new_is_asked_for_less_often(server: RayServer) -> None:
    job_says(server, "running")
    log_says(server, b"0123456789\n" * 360_000)  # 0.4 seconds' worth, at the pace of the backend

    async def again_and_again(backend: RayBackend) -> None:
        cursor = (await backend.poll("r1")).cursor
        for _ in range(5):
            cursor = (await backend.poll("r1", cursor)).cursor

    ask(server, again_and_again)

    assert server.asked.count("GET /api/jobs/r1") == 6
    assert server.asked.count("GET /api/v0/logs/file") == 2


# -- what is asked and refused ---------------------------------------------------------------


def test_work_that_is_there_already_is_found(server: RayServer) -> None:
    work = Work("r1", "Go.", "echo once")

    assert [ask(server, lambda backend: backend.submit(work)) for _ in range(3)] == ["r1"] * 3
    assert len(server.jobs) == 1


def test_what_ray_refuses_says_why(server: RayServer) -> None:
    server.instead["/api/jobs/"] = lambda handler: say(handler, "bad metadata")

    with pytest.raises(RemoteRefused, match="TypeError: metadata values must be strings"):
        ask(server, lambda backend: backend.submit(Work("r1", "Go.", "true")))


def test_what_a_node_refuses_is_refused_though_the_head_calls_it_its_own_failure(server: RayServer) -> None:
    said = recorded()["exists"].body.replace("already exists", "is no good")
    server.instead["/api/jobs/"] = lambda handler: say(handler, "exists", said)

    with pytest.raises(RemoteRefused, match="is no good"):
        ask(server, lambda backend: backend.submit(Work("r1", "Go.", "true")))


def test_a_failure_inside_of_ray_may_pass(server: RayServer) -> None:
    server.instead["/api/jobs/"] = lambda handler: say(handler, "bad json")

    for verb in (
        lambda backend: backend.submit(Work("r1", "Go.", "true")),
        lambda backend: backend.poll("r1"),
        lambda backend: backend.stop("r1"),
    ):
        with pytest.raises(RemoteAway, match="got itself in trouble"):
            ask(server, verb)


@pytest.mark.parametrize(("token", "why"), [("", "it requires a token"), ("wrong", "it rejects the token")])
def test_credentials_that_are_not_taken_are_refused_with_advice(server: RayServer, token: str, why: str) -> None:
    with pytest.raises(RemoteRefused, match=why) as raised:
        ask(server, RayBackend.probe, token)

    assert "RAY_AUTH_MODE=token" in str(raised.value)


def test_the_token_is_in_one_header_and_in_no_error(server: RayServer) -> None:
    ask(server, RayBackend.probe)
    echo = f"no entry with {TOKEN}".encode()
    errors: list[TaskyardError] = []
    for status in (302, 400, 404, 500):
        server.instead["/api/"] = lambda handler, status=status: send(  # type: ignore[misc]
            handler, status, echo, "text/plain", location=f"http://elsewhere.example/?{TOKEN}"
        )
        with pytest.raises(TaskyardError) as raised:
            polled(server)
        errors.append(raised.value)

    assert all(TOKEN not in f"{error} {error.facts()}" for error in errors)
    assert {name for headers in server.headers for name, value in headers.items() if TOKEN in value} == {
        "authorization"
    }


@pytest.mark.parametrize(
    "url",
    [
        "",
        "head:8265",
        "ftp://head",
        "file:///tmp",
        "http://",
        "http://ada:secret@head:8265",
        "http://head/?x=1",
        "http://[",
    ],
)
def test_a_url_that_no_dashboard_has_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(BadValue, match=r"remotes\.cluster\.url") as raised:
        RayBackend(Remote("cluster", "ray", url=url))

    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("token", ["a\nb", "a\r\nx-evil: 1", "schlüssel", "\x00"])
def test_a_token_that_cannot_be_one_is_refused_and_not_shown(server: RayServer, token: str) -> None:
    with pytest.raises(RemoteRefused, match="characters that no token has") as raised:
        made(server, token)

    assert token not in str(raised.value)
