"""The engine `claude` with programs that speak Claude Code's protocol, well or badly. The real one: tests/clients."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.watching import Watched, work
from taskyard.agents.engines.claude import Claude, cli_options, mcp_config
from taskyard.agents.engines.engine import Brief, TurnResult

PROGRAM = """
import json, os, sys, time
def tell(**message): print(json.dumps(message), flush=True)
def hear(): return json.loads(sys.stdin.readline())
def ask(number, tool, **given):
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given}
    tell(type="control_request", request_id=f"r{number}", request=request)
def done(text="", **more): tell(type="result", subtype="success", is_error=False, result=text, **more)
prompt = hear()["message"]["content"]
tell(type="system", subtype="init", session_id="s-1")
"""


def program(body: str) -> list[str]:
    return [sys.executable, "-S", "-c", PROGRAM + body]


def run(body: str, tmp_path: Path, watched: Watched | None = None) -> TurnResult:
    return work(Claude(), "Say hello.", tmp_path, command=program(body), watched=watched)


@pytest.mark.req("Q-03")
def test_a_request_is_asked_and_answered_in_its_format(tmp_path: Path) -> None:
    watched = Watched(answers=["y"])
    body = "ask(1, 'Bash', command='make')\ndone(json.dumps(hear()))"
    assert run(body, tmp_path, watched).text == (
        '{"type": "control_response", "response": {"subtype": "success", "request_id": "r1", "response": '
        '{"behavior": "allow", "updatedInput": {"command": "make"}}}}'
    )
    assert "command: make" in watched.questions[0]
    assert watched.said("answer") == ["y"]


@pytest.mark.req("Q-03")
def test_requests_at_once_are_asked_one_after_the_other(tmp_path: Path) -> None:
    watched = Watched(answers=["y", "n", "y"])
    body = """
for number in range(3): ask(number, f"Tool{number}")
heard = [hear()["response"] for _ in range(3)]
done(" ".join(one["request_id"] + "=" + one["response"]["behavior"] for one in heard))
"""
    assert run(body, tmp_path, watched).text == "r0=allow r1=deny r2=allow"
    assert [f"Tool{number}" in question for number, question in enumerate(watched.questions)] == [True] * 3


@pytest.mark.req("Q-03")
def test_an_answer_that_is_none_is_asked_for_again_and_then_denied(tmp_path: Path) -> None:
    watched = Watched(answers=["hm", "maybe", "what"])
    body = "ask(1, 'Bash', command='make')\ndone(hear()['response']['response']['behavior'])"
    assert run(body, tmp_path, watched).text == "deny"
    assert len(watched.questions) == 3
    assert "Answer y, a or n" in watched.questions[1]


@pytest.mark.req("Q-03")
def test_what_it_withdraws_is_not_asked_any_more(tmp_path: Path) -> None:
    class Slow(Watched):
        async def ask(self, question: str) -> str | None:
            import asyncio

            self.questions.append(question)
            if len(self.questions) == 1:
                await asyncio.Event().wait()
            return "y"

    watched = Slow()
    body = """
ask(1, "First"); time.sleep(0.3)
tell(type="control_cancel_request", request_id="r1")
ask(2, "Second")
done(hear()["response"]["request_id"])
"""
    assert run(body, tmp_path, watched).text == "r2"


def test_a_request_of_another_kind_is_declined(tmp_path: Path) -> None:
    body = """
tell(type="control_request", request_id="r9", request={"subtype": "elicitation"})
done(json.dumps(hear()["response"]))
"""
    assert run(body, tmp_path).text == '{"subtype": "error", "request_id": "r9", "error": "not supported"}'


@pytest.mark.req("K-02")
def test_what_is_sent_before_the_result_is_worked_on_and_has_the_last_word(tmp_path: Path) -> None:
    body = """
tell(type="assistant", message={"content": [{"type": "tool_use", "name": "Read", "input": {}}]})
more = hear()["message"]["content"]
done("first"); tell(type="system", subtype="init", session_id="s-1"); done("then " + more)
sys.stdin.read()
"""
    watched = Watched(messages=["the blue one"], after_a_tool=True)
    assert run(body, tmp_path, watched) == TurnResult("then the blue one")


@pytest.mark.req("B-09")
def test_one_that_stays_after_its_result_does_not_keep_the_job(tmp_path: Path) -> None:
    began = time.monotonic()
    assert run("done('Bye.'); sys.stdin.read(); time.sleep(600)", tmp_path) == TurnResult("Bye.")
    assert time.monotonic() - began < 20


@pytest.mark.req("B-08")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("sys.exit(3)", "broke off without a result (exit code 3)"),
        ("ask(1, 'Bash'); os.kill(os.getpid(), 9)", "broke off without a result"),
        ("done('x'); tell(type='assistant', message={}); sys.exit(0)", "broke off without a result (exit code 0)"),
        ("print('x' * 9_000_000)", "broke off"),
    ],
    ids=["ends", "dies while it asks", "dies in a second turn", "a huge line"],
)
def test_one_that_is_cut_has_failed_and_can_be_retried(tmp_path: Path, body: str, error: str) -> None:
    said = run(body, tmp_path, Watched(answers=["y"]))
    assert (error in said.error, said.is_retryable) == (True, True), said


@pytest.mark.req("B-09")
def test_silence_ends_it_but_not_while_a_person_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(Watched):
        async def ask(self, question: str) -> str | None:
            import asyncio

            await asyncio.sleep(3.2)
            return "y"

    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "3")
    body = "ask(1, 'Bash'); hear(); done('Late.')"
    assert run(body, tmp_path, Late()) == TurnResult("Late.")
    monkeypatch.setenv("TASKYARD_AGENT_SILENCE", "0.5")
    said = run("time.sleep(600)", tmp_path)
    assert ("produced no output for 0.5 s" in said.error, said.is_retryable) == (True, True)


@pytest.mark.req("K-02")
def test_called_again_it_resumes_with_what_was_granted(tmp_path: Path) -> None:
    engine = Claude()
    body = "ask(1, 'Bash', command='make test'); hear(); done(' '.join(sys.argv[1:]))"
    first = work(engine, "go", tmp_path, command=program(body), watched=Watched(answers=["a"]))
    second = work(engine, "go", tmp_path, command=program("done(' '.join(sys.argv[1:]))"))
    assert "--resume" not in first.text
    assert second.text.endswith("--resume s-1 --allowedTools Bash(make test)")


@pytest.mark.req("Q-03")
def test_a_rule_that_could_be_read_as_two_is_not_passed_on(tmp_path: Path) -> None:
    engine = Claude()
    body = "ask(1, 'Bash', command='echo ) Bash(*'); hear(); done()"
    work(engine, "go", tmp_path, command=program(body), watched=Watched(answers=["a"]))
    again = work(engine, "go", tmp_path, command=program("done(' '.join(sys.argv[1:]))"))
    assert "--allowedTools" not in again.text


def brief(**fields: Any) -> Brief:
    env = {"HOME": "/h", "TASKYARD_STORE": "postgresql://u:secret@h/x", "TASKYARD_MCP_TOKEN": "secret", "OTHER": "x"}
    return Brief("go", "/", env)._replace(**fields)


@pytest.mark.req("Q-03")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("", ["--permission-mode", "acceptEdits"]),
        ("ask", []),
        ("edit", ["--permission-mode", "acceptEdits"]),
        ("work", ["--permission-mode", "acceptEdits", "--allowedTools", "Bash"]),
        ("all", ["--permission-mode", "bypassPermissions"]),
    ],
)
def test_each_mode_has_its_words(mode: str, expected: list[str]) -> None:
    given = cli_options(brief(permissions=mode, own_tools=False), session=None)
    assert given[given.index("stdio") + 1 :] == expected


def test_a_mode_among_the_programs_own_words_is_left_alone() -> None:
    given = cli_options(
        brief(permissions="all", own_tools=False, command=("claude", "--permission-mode=plan")), session=None
    )
    assert "--permission-mode" not in given


def test_no_value_of_the_environment_is_on_the_command_line() -> None:
    text = mcp_config(brief())
    assert '"TASKYARD_STORE":"${TASKYARD_STORE}"' in text
    assert "secret" not in text
    assert "OTHER" not in text
    assert "TASKYARD_MCP_TOKEN" not in text
    assert '"alwaysLoad":true' in text


@pytest.mark.req("Q-03")
def test_tools_that_are_allowed_by_themselves_exist_and_run_nothing() -> None:
    from taskyard.agents.engines.provider import HARMLESS_TOOLS

    pytest.importorskip("mcp")
    import asyncio

    from taskyard import config as settings
    from taskyard.servers.mcp.callers import StdioCaller
    from taskyard.servers.mcp.server import build

    async def offered() -> dict[str, Any]:
        server = build(StdioCaller(agent="x", list="x", tasks_dir=None), settings.load_settings())
        return {tool.name: tool for tool in await server.list_tools()}

    tools = asyncio.run(offered())
    assert set(HARMLESS_TOOLS) <= set(tools)
    running = {"Bash", "Agent", "Workflow", "Monitor", "SendInput"}
    assert not running & set(HARMLESS_TOOLS)
