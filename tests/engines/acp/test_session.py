"""Agents that speak the Agent Client Protocol: one built on its SDK, and programs that only pretend."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from support import acp_agent
from support.watching import Watched, work
from taskyard.engines.acp.engine import Acp


def agent(behaviour: str) -> list[str]:
    return [sys.executable, acp_agent.__file__, behaviour]


@pytest.mark.req("K-02")
def test_what_an_agent_says_does_and_costs_is_told(tmp_path: Path) -> None:
    watched = Watched()
    said = work(Acp(), "go", tmp_path, command=agent("works"), watched=watched)

    assert said == ("It prints 1.", "", False)
    assert [line["type"] for line in watched.lines] == ["thought", "assistant", "tool_use", "tool_result", "assistant"]
    assert watched.tools == [("Read a.py", {"path": "a.py"})]
    assert watched.said("tool_result") == ["print(1)"]
    assert watched.usage == [{"input_tokens": 900}, {"output_tokens": 40}]
    assert watched.cost == 0.25


@pytest.mark.req("K-02")
def test_what_is_sent_meanwhile_is_the_next_prompt(tmp_path: Path) -> None:
    watched = Watched(messages=["and this", "and that"])
    said = work(Acp(), "first this", tmp_path, command=agent("echo"), model="Large", watched=watched)

    assert watched.said("assistant")[0] == f"You said: first this (turn 1, large, in {tmp_path})"
    assert watched.said("user") == ["and this\n\nand that"]
    assert said.text == f"You said: and this\n\nand that (turn 2, large, in {tmp_path})"


@pytest.mark.req("K-02")
@pytest.mark.parametrize("behaviour", ["resumes", "loads"])
def test_one_that_is_sent_on_goes_on_in_its_session(tmp_path: Path, behaviour: str) -> None:
    engine, watched = Acp(), Watched()
    work(engine, "one", tmp_path, command=agent(behaviour))
    said = work(engine, "two", tmp_path, command=agent(behaviour), watched=watched)
    assert "two (turn 2," in said.text
    assert watched.said("assistant") == [said.text]  # nothing of what it had said before


@pytest.mark.req("O-08")
@pytest.mark.parametrize(
    ("answers", "outcome"),
    [(["maybe", "y"], "once"), ([None], "cancelled")],
    ids=["at the second try", "nobody is there"],
)
def test_what_it_asks_permission_for_is_asked(tmp_path: Path, answers: list[str | None], outcome: str) -> None:
    watched = Watched(answers=answers)
    said = work(Acp(), "go", tmp_path, command=agent("asks"), watched=watched)

    assert said.text == outcome
    assert watched.questions[0] == "Run make\n  command: make\n1. Always allow\n2. Allow once\n3. Reject"
    assert len(watched.questions) == len(answers)


#: An agent in bare Python, which starts in no time: says hello, and then does what stands behind it.
HELLO = """
import json, os, sys, time
def heard():
    return json.loads(sys.stdin.readline())["id"]
def answer(**fields):
    print(json.dumps({"jsonrpc": "2.0", "id": heard(), **fields}), flush=True)
answer(result={"protocolVersion": 1, "authMethods": [{"id": "b", "name": "Log in with a browser"}]})
"""
SESSION = HELLO + "answer(result={'sessionId': 's'})\n"
SPEAKS = (
    SESSION
    + """
words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Half an ans"}}
print(json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": words}}), flush=True)
"""
)


def bare(body: str) -> list[str]:
    return [sys.executable, "-S", "-c", body]


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("body", "error", "retryable"),
    [
        (SPEAKS + "answer(result={'stopReason': 'refusal'})", "it refused to go on", False),
        (SPEAKS + "answer(result={'stopReason': 'max_tokens'})", "most tokens", False),
        (SPEAKS + "answer(result={'stopReason': 'cancelled'})", "it was cancelled", False),
        (SPEAKS + "answer(error={'code': -32603, 'message': '429 slow down'})", "429 slow down", True),
        (SPEAKS + "answer(error={'code': -32603, 'message': 'no credit'})", "refused the prompt: no credit", False),
        (
            SPEAKS + "heard(); sys.stderr.write('no memory'); sys.stderr.flush(); os._exit(3)",
            "code 3): no memory",
            True,
        ),
        (
            HELLO + "answer(error={'code': -32000, 'message': 'Who?'})",
            "log in to it first (Log in with a browser)",
            False,
        ),
        (HELLO.replace('": 1,', '": 0,'), "version 0", False),
    ],
)
def test_whatever_is_no_answer_is_said_as_it_is(tmp_path: Path, body: str, error: str, retryable: bool) -> None:
    said = work(Acp(), "go", tmp_path, command=bare(body))
    assert error in said.error
    assert said.is_retryable is retryable


@pytest.mark.req("B-08")
def test_one_that_falls_silent_in_a_turn_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "0.3")
    said = work(Acp(), "go", tmp_path, command=bare(SPEAKS + "time.sleep(60)"))
    assert (said.error, said.is_retryable) == ("it said nothing for 0.3 s", True)


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("pass", "it ended in the middle (exit code 0)"),
        ("import sys; print('x' * 9_000_000, flush=True); sys.stdin.read()", "a message of more than 4,194,304 bytes"),
        (
            "import sys; [print('{' * 5000, flush=True) for _ in range(300)]; sys.stdin.read()",
            "does not speak the Agent Client",
        ),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00\\n[1]\\n{\"id\": []}\\n'); sys.exit(2)", "exit code 2"),
        (SESSION + 'heard(); print(\'{"id": 2, "result": 7}\', flush=True)', "not what the protocol says"),
        (SESSION + 'heard(); print(\'{"id": 2, "error": "broken"}\', flush=True)', "broken"),
        (SESSION + "heard(); sys.stdin.close(); sys.stdout.close(); sys.exit(1)", "exit code 1"),
    ],
    ids=["ends", "a huge line", "garbage", "bytes", "a wrong answer", "a wrong error", "hangs up"],
)
def test_a_program_that_only_pretends_has_failed_and_never_answered(tmp_path: Path, body: str, error: str) -> None:
    said = work(Acp(), "go", tmp_path, command=bare(body))
    assert error in said.error
    assert said.text == ""


@pytest.mark.req("B-08")
@pytest.mark.parametrize(
    "body", ["import time; time.sleep(60)", SESSION + "time.sleep(60)"], ids=["never says hello", "never reads"]
)
def test_a_program_that_neither_speaks_nor_reads_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_START", "1")
    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "0.3")
    began = time.monotonic()
    said = work(Acp(), "x" * 1_000_000, tmp_path, command=bare(body))
    assert "did not answer `initialize` within 1 s" in said.error or "said nothing for 0.3 s" in said.error
    assert time.monotonic() - began < 30


@pytest.mark.req("B-08")
def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "no-such-agent cannot be started" in work(Acp(), "go", tmp_path, command=["no-such-agent"]).error
