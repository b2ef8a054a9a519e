"""Agents that speak the Agent Client Protocol: one built on its SDK, and programs that only pretend."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from support import acp_agent
from support.acp_sessions import keeping
from support.watching import Watched, work
from taskyard.agents.engines.acp import Acp
from taskyard.agents.engines.engine import TurnResult


def agent(behaviour: str) -> list[str]:
    return [sys.executable, acp_agent.__file__, behaviour]


@pytest.mark.req("K-02")
def test_what_an_agent_says_does_and_costs_is_told(tmp_path: Path) -> None:
    watched = Watched()
    said = work(Acp(), "go", tmp_path, command=agent("works"), watched=watched)

    assert said == TurnResult("It prints 1.")
    assert [line["type"] for line in watched.lines] == ["thought", "assistant", "tool_use", "tool_result", "assistant"]
    assert watched.tools == [("Read a.py", {"path": "a.py"})]
    assert watched.said("tool_result") == ["print(1)"]
    assert watched.usage == [{"input_tokens": 900}]  # `used` has the output already
    assert watched.cost == 0.25


@pytest.mark.req("K-02")
def test_what_is_sent_meanwhile_is_the_next_prompt(tmp_path: Path) -> None:
    watched = Watched(messages=["and this", "and that"])
    said = work(Acp(), "first this", tmp_path, command=agent("echo"), model="Large", watched=watched)

    assert watched.said("assistant")[0] == f"You said: first this (turn 1, large, in {tmp_path})"
    assert watched.said("user") == ["and this\n\nand that"]
    assert said.text == f"You said: and this\n\nand that (turn 2, large, in {tmp_path})"


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


ASKS = """
def says(text):
    words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    print(json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": words}}), flush=True)
def asks(method, **params):
    print(json.dumps({"id": "q", "method": method, "params": {"sessionId": "s", **params}}), flush=True)
    return json.loads(sys.stdin.readline())
option = {"optionId": "this-once", "name": "Yes", "kind": "allow_once"}
call = {"toolCallId": "c", "title": "Run make"}
turn = heard()
"""
END = "print(json.dumps({'id': turn, 'result': {'stopReason': 'end_turn'}}), flush=True); sys.stdin.read()"


@pytest.mark.req("O-08")
def test_what_it_asks_permission_for_is_asked_until_the_answer_is_one_of_its_options(tmp_path: Path) -> None:
    watched = Watched(answers=["maybe", "y"])
    asks = (
        "says(asks('session/request_permission', toolCall=call, options=[option])['result']['outcome']['optionId'])\n"
    )
    said = work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + asks + END), watched=watched)
    assert said.text == "this-once"
    assert watched.questions[0] == "Run make\n1. Yes"
    assert len(watched.questions) == 2


@pytest.mark.req("O-08")
def test_where_nobody_can_answer_nothing_is_allowed(tmp_path: Path) -> None:
    asks = "says(asks('session/request_permission', toolCall=call, options=[option])['result']['outcome']['outcome'])\n"
    said = work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + asks + END))
    assert said.text == "cancelled"


@pytest.mark.req("K-02")
def test_files_and_commands_are_the_agent_s_own_affair(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s", encoding="utf-8")
    asks = f"says(str(asks('fs/read_text_file', path='{tmp_path}/secret')['error']['code']))\n"
    assert work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + asks + END)).text == "-32601"


@pytest.mark.req("B-08")
def test_one_that_asks_without_end_and_reads_nothing_is_given_up(tmp_path: Path) -> None:
    flood = "for n in range(200_000): print(json.dumps({'id': n, 'method': 'x' * 300}), flush=False)\n"
    said = work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + flood))
    assert said.error == "it asks for more and more, and does not read the answers"


@pytest.mark.req("K-02")
@pytest.mark.parametrize("way", ["load", "resume"])
def test_one_that_is_sent_on_goes_on_in_its_session(tmp_path: Path, way: str) -> None:
    engine, watched, command = Acp(), Watched(), keeping(way)
    work(engine, "one", tmp_path, command=command)
    said = work(engine, "two", tmp_path, command=command, watched=watched)
    assert said.text == f"two session/{way} s"
    assert [line["type"] for line in watched.lines] == ["system", "assistant"]
    assert (watched.lines[0]["session_id"], watched.tools) == ("s", [])  # nothing is repeated
    assert watched.cost == 0.75  # what this run has cost


@pytest.mark.req("K-02")
def test_a_session_that_an_agent_knows_no_longer_is_begun_anew(tmp_path: Path) -> None:
    engine, watched, command = Acp(), Watched(), keeping("forget")
    work(engine, "one", tmp_path, command=command)
    said = work(engine, "two", tmp_path, command=command, watched=watched)
    assert (said.text, said.error) == ("two", "")
    assert watched.said("note") == ["its session cannot go on: no such session"]


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("body", "error", "retryable"),
    [
        (SPEAKS + "answer(result={'stopReason': 'refusal'})", "it refused to continue", False),
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
    assert (said.error, said.is_retryable) == ("it produced no output for 0.3 s", True)


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("pass", "it ended in the middle (exit code 0)"),
        ("import sys\nfor line in sys.stdin: print(line, flush=True)", "it refused `initialize`: Method not found"),
        ("import sys; print('x' * 9_000_000, flush=True); sys.stdin.read()", "a message of more than 4,194,304 bytes"),
        (
            "import sys; [print('{' * 5000, flush=True) for _ in range(300)]; sys.stdin.read()",
            "does not speak the Agent Client",
        ),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\x00\\n[1]\\n{\"id\": []}\\n'); sys.exit(2)", "exit code 2"),
        (SESSION + 'heard(); print(\'{"id": 2, "result": 7}\', flush=True)', "violates the protocol"),
        (SESSION + 'heard(); print(\'{"id": 2, "error": "broken"}\', flush=True)', "broken"),
        (SESSION + "heard(); sys.stdin.close(); sys.stdout.close(); sys.exit(1)", "exit code 1"),
    ],
    ids=["ends", "an echo", "a huge line", "garbage", "bytes", "a wrong answer", "a wrong error", "hangs up"],
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
    assert "did not answer `initialize` within 1 s" in said.error or "produced no output for 0.3 s" in said.error
    assert time.monotonic() - began < 30


@pytest.mark.req("B-08")
def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "no-such-agent cannot be started" in work(Acp(), "go", tmp_path, command=["no-such-agent"]).error


TELLS = """
def tells(**update):
    print(json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": update}}), flush=True)
"""


@pytest.mark.req("K-02")
def test_a_tool_is_told_once_with_what_later_messages_say_of_it(tmp_path: Path) -> None:
    watched = Watched()
    body = (
        "tells(sessionUpdate='tool_call', toolCallId='c', title='Terminal', kind='execute', rawInput={})\n"
        "tells(sessionUpdate='tool_call_update', toolCallId='c', rawInput={'cwd': '/'})\n"
        "tells(sessionUpdate='tool_call_update', toolCallId='c', title='make t', rawInput={'command': 'make t'})\n"
        "tells(sessionUpdate='tool_call_update', toolCallId='c', status='completed')\n"
        "tells(sessionUpdate='tool_call', toolCallId='d', title='Think')\n"
    )
    work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + TELLS + body + END), watched=watched)

    assert watched.tools == [("make t", {"command": "make t"}), ("Think", {})]


@pytest.mark.req("Q-03")
@pytest.mark.parametrize("answer", ["n", None])
def test_a_tool_that_was_refused_makes_the_turn_incomplete(tmp_path: Path, answer: str | None) -> None:
    body = (
        "no = {'optionId': 'no', 'name': 'No', 'kind': 'reject_once'}\n"
        "asks('session/request_permission', toolCall=call, options=[option, no])\n"
    )
    watched = Watched(answers=[answer])
    said = work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + body + END), watched=watched)

    assert said.refused == ("Run make",)
    assert not said.is_complete


@pytest.mark.req("Q-01")
@pytest.mark.parametrize(
    ("error", "until"),
    [
        ("{'code': -32603, 'message': 'no', 'data': {'errorKind': 'rate_limit'}}", False),
        ("{'code': -32603, 'message': '529 overloaded'}", False),
        ("{'code': -32603, 'message': 'You have exhausted your daily quota'}", False),
        ("{'code': 429, 'message': '429 Too Many Requests. Retry-After: 600'}", True),
    ],
)
def test_a_rate_limit_is_reported_as_one_with_the_time_it_lifts(tmp_path: Path, error: str, until: bool) -> None:
    said = work(Acp(), "go", tmp_path, command=bare(SPEAKS + f"answer(error={error})"))

    assert said.rate_limit is not None and said.is_retryable
    assert (said.rate_limit.until_ms is not None) is until


@pytest.mark.req("B-08")
def test_a_turn_that_the_agent_reports_as_failed_is_no_answer(tmp_path: Path) -> None:
    body = (
        "failure = {'severity': 'error', 'category': 'service', 'title': 'last status: 429 Too Many Requests'}\n"
        "tells(sessionUpdate='session_info_update', _meta={'jetbrains': {'air': {'sessionFailure': failure}}})\n"
    )
    said = work(Acp(), "go", tmp_path, command=bare(SESSION + ASKS + TELLS + body + END))

    assert said.error == "last status: 429 Too Many Requests"
    assert said.rate_limit is not None
