"""An agent of our own on a model: one that a provider serves over HTTP, one that is a function, one that tries all."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from support.model_server import Reply, calls, provider, refuses, says
from support.watching import Watched, work
from taskyard.agents.engines.engine import TurnResult
from taskyard.agents.engines.model import Model

MODEL = "openai-chat:gpt-4o"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *replies: Reply, watched: Watched | None = None
) -> tuple[TurnResult, list[dict[str, object]]]:
    """What came of a prompt, and what the provider was asked."""
    with provider(*replies) as served_by:
        monkeypatch.setenv("OPENAI_BASE_URL", served_by.url)
        said = work(Model(), "go", tmp_path, model=MODEL, watched=watched)
    return said, served_by.requests


@pytest.mark.req("K-02")
def test_it_uses_tools_until_it_has_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    replies = (calls("Write", file_path="a.txt", content="hello"), says("It is ", "written."))
    said, requests = served(tmp_path, monkeypatch, *replies, watched=watched)

    assert said == TurnResult("It is written.")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "hello"
    assert [line["type"] for line in watched.lines] == ["tool_use", "tool_result", "assistant"]
    assert watched.tools == [("Write", {"file_path": "a.txt", "content": "hello"})]
    assert watched.usage[-1] == {"input_tokens": 1000, "output_tokens": 50}
    assert watched.cost is not None
    assert 0 < watched.cost < 1
    assert len(requests) == 2


@pytest.mark.req("B-10", "K-02")
def test_a_provider_with_too_much_to_do_is_asked_again_when_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched()
    limits = (refuses(429, "slow down", retry_after="0"), refuses(529, "overloaded", retry_after_ms="20"))
    said, requests = served(tmp_path, monkeypatch, *limits, says("Done."), watched=watched)

    assert said.text == "Done."
    assert len(requests) == 3
    assert ["slow down" in watched.limits[0][1], "overloaded" in watched.limits[1][1]] == [True, True]
    assert 0.02 <= watched.limits[1][0] < 1


@pytest.mark.req("B-10", "B-08")
def test_one_that_asks_for_longer_than_a_request_waits_ends_the_turn_with_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, requests = served(tmp_path, monkeypatch, refuses(429, "come tomorrow", retry_after="86400"))
    limit = said.rate_limit
    assert limit is not None and limit.until_ms is not None
    assert ("come tomorrow" in limit.reason, said.error, len(requests)) == (True, "", 1)
    assert abs(limit.until_ms / 1000 - time.time() - 86_400) < 60


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("reply", "error", "retryable"),
    [
        (says("Half an", finish=None)._replace(is_cut=True), "", True),
        (says("Half an", finish=None), "broke off in the middle", True),
        (says("Long", finish="length"), "cut at the most tokens", False),
        (says("Bad", finish="content_filter"), "filter of the provider", False),
        (Reply(body="<html>Bad gateway</html>"), "", True),
        (Reply(events=["{not JSON"]), "", True),
        (refuses(401, "Incorrect API key"), "Incorrect API key", False),
        (refuses(404, "The model does not exist"), "does not exist", False),
        (refuses(400, "too long"), "too long", False),
    ],
    ids=["cut", "cut in good order", "length", "filter", "HTML", "no JSON", "key", "model", "request"],
)
def test_whatever_is_no_whole_answer_is_never_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, error: str, retryable: bool
) -> None:
    said, requests = served(tmp_path, monkeypatch, reply)
    assert said.error
    assert error in said.error
    assert said.is_retryable is retryable
    assert len(requests) == 1


@pytest.mark.req("B-08")
def test_tools_of_an_answer_that_was_cut_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = calls("Write", file_path="a.txt", content="half of it")
    said, _ = served(tmp_path, monkeypatch, half._replace(events=half.events[:1]))
    assert (said.is_retryable, (tmp_path / "a.txt").exists()) == (True, False)


@pytest.mark.req("K-02")
def test_what_is_sent_meanwhile_is_in_the_next_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(messages=["and mind the gap"], after_a_tool=True)
    said, requests = served(tmp_path, monkeypatch, calls("Read", file_path="x"), says("Two."), watched=watched)
    assert said.text == "Two."
    assert ["and mind the gap" in str(request["messages"]) for request in requests] == [False, True]
    assert watched.said("user") == ["and mind the gap"]


@pytest.mark.req("K-02")
def test_one_that_is_sent_on_goes_on_in_its_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Model()
    with provider(says("First."), says("Second.")) as served_by:
        monkeypatch.setenv("OPENAI_BASE_URL", served_by.url)
        work(engine, "one", tmp_path, model=MODEL)
        assert work(engine, "two", tmp_path, model=MODEL).text == "Second."
    said = [message["content"] for message in served_by.requests[1]["messages"] if message["role"] != "system"]
    assert said == ["one", "First.", "two"]


@pytest.mark.req("K-02")
def test_a_provider_that_is_not_there_is_a_failure_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("taskyard.agents.engines.model_loop.MOST_TRIES", 1)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    said = work(Model(), "go", tmp_path, model=MODEL)
    assert (bool(said.error), said.is_retryable) == (True, True)


@pytest.mark.req("B-08")
def test_a_provider_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr("taskyard.agents.engines.model_loop.MOST_TRIES", 1)
    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "0.3")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        said = work(Model(), "go", tmp_path, model=MODEL)
    assert (bool(said.error), said.is_retryable) == (True, True)


@pytest.mark.req("K-02")
def test_the_model_of_trials_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    watched = Watched()
    said = work(Model(), "go", folder, model="test", watched=watched, own_tools=True)

    assert said.error == ""
    assert [name for name, _ in watched.tools] == ["TaskList"]
    assert list(folder.iterdir()) == []
    assert work(Model(), "go", folder, model="test", watched=Watched()).error == ""


@pytest.mark.req("K-02")
def test_a_model_that_tries_every_tool_is_answered_by_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic-ai's TestModel, with the tools of our own server, which is started for it."""
    (tmp_path / "eager.py").write_text("from pydantic_ai.models.test import TestModel\nmodel = TestModel()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    watched = Watched()
    said = work(Model(), "go", tmp_path, model="python:eager:model", watched=watched, own_tools=True)

    assert said.error == ""
    used = {name for name, _ in watched.tools}
    assert {"Bash", "Read", "Edit", "Write", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"} <= used
    assert {"TaskClaim", "SendMessage"} <= used
    assert "Task #1 created successfully" in said.text


@pytest.mark.req("K-02")
@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("python:no_such_module:model", "no_such_module"),
        ("python:os:no_such_model", "no_such_model"),
        ("python:os:path", "is not a pydantic-ai model"),
        ("nobody:gpt", "Unknown model"),
    ],
)
def test_a_model_that_cannot_be_had_is_named(tmp_path: Path, model: str, error: str) -> None:
    said = work(Model(), "go", tmp_path, model=model)
    assert (error in said.error, said.is_retryable) == (True, False)
