"""Agents in the background, on real programs: good ones, and bad ones."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli import taskyard
from support.job_cli import ended
from support.wait import until
from taskyard.agents.agent.kind import Agent
from taskyard.errors import BadText, BadValue, EngineNotFound, UsageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.notices import Outbox
from taskyard.testing import check_job_handler

#: What a program prints, line by line; the prompt is in `prompt`.
PROGRAM = """
import json, sys
prompt = sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read().strip()
def say(**event):
    print(json.dumps(event), flush=True)
{body}
"""


def program(tmp_path: Path, body: str, *words: str) -> list[str]:
    path = tmp_path / f"agent{len(os.listdir(tmp_path))}.py"
    path.write_text(PROGRAM.format(body=body), encoding="utf-8")
    return [sys.executable, str(path), *words]


def transcript(jobs: Jobs, job_id: str) -> list[dict[str, Any]]:
    text = Path(JobPaths(jobs.home, job_id).transcript).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.req("K-02", "B-01", "O-03")
def test_a_program_works_on_a_prompt_and_its_answer_is_the_result(jobs: Jobs, tmp_path: Path) -> None:
    command = program(tmp_path, "print('You said:', prompt)")
    job = jobs.run(Agent("count the stars", command=command), timeout=30)

    assert (job.status.value, job.id[0]) == ("completed", "a")
    assert job.facts["result"] == "You said: count the stars"
    assert job.facts["agentType"] == "general-purpose"
    assert os.readlink(job.output_file) == "transcript.jsonl"
    lines = transcript(jobs, job.id)
    assert [(line["type"], line["text"]) for line in lines] == [
        ("prompt", "count the stars"),
        ("assistant", "You said: count the stars"),
    ]
    assert jobs.output(job.id).output == "You said: count the stars"
    assert '"type": "assistant"' in jobs.output(job.id, transcript=True).output


@pytest.mark.req("K-02", "N-02")
def test_progress_usage_and_cost_are_on_the_job_and_in_its_notice(jobs: Jobs, tmp_path: Path) -> None:
    body = """
say(type="usage", input_tokens=900, cache_read_input_tokens=50, output_tokens=40)
say(type="tool", name="Edit", input={"file": "a.py"})
say(type="cost", usd=0.25)
say(type="result", text="done")
"""
    job = jobs.start(Agent("edit it", command=program(tmp_path, body), description="Edit a file"))
    job = jobs.wait(job.id, timeout=30)

    progress: Any = job.facts["progress"]
    assert (progress["toolUseCount"], progress["tokenCount"]) == (1, 990)
    assert progress["lastActivity"] == {"toolName": "Edit", "input": {"file": "a.py"}}
    assert job.facts["costUsd"] == 0.25
    (notice,) = Outbox(jobs.home, None).waiting()
    assert notice.summary == 'Agent "Edit a file" finished'
    text = notice.as_user_message()["content"]
    assert "<result>done</result>" in text
    assert "<total_tokens>990</total_tokens><tool_uses>1</tool_uses>" in text
    assert "<transcript>" in text


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("sys.stderr.write('no key'); sys.exit(3)", "exit code 3: no key"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9"),
        ("say(type='result', error='out of credit')", "out of credit"),
    ],
)
def test_an_agent_that_fails_says_why(jobs: Jobs, tmp_path: Path, body: str, error: str) -> None:
    job = jobs.start(Agent("try", command=program(tmp_path, body), description="Try"))
    job = jobs.wait(job.id, timeout=30)
    assert job.status.value == "failed"
    assert job.end is not None
    assert error in job.end.error
    (notice,) = Outbox(jobs.home, None).waiting()
    assert notice.summary.startswith('Agent "Try" failed: ')


@pytest.mark.req("K-02")
@pytest.mark.parametrize(
    "body",
    [
        "sys.stdout.buffer.write(b'\\xff\\x00' * 1000 + b'\\n')",
        "print('{' * 5000)",
        "print('x' * 9_000_000)",
        'print(\'{"type": "tool"}\'); print(\'{"type": "usage", "input_tokens": "x"}\'); print(\'[1]\')',
        "pass",
    ],
    ids=["bytes", "broken JSON", "a huge line", "half events", "silence"],
)
def test_whatever_a_program_prints_the_transcript_is_json_and_the_job_completes(
    jobs: Jobs, tmp_path: Path, body: str
) -> None:
    job = jobs.run(Agent("go", command=program(tmp_path, body)), timeout=50)
    assert job.status.value == "completed"
    assert len(str(job.facts.get("result", ""))) <= 200_000
    assert all(isinstance(line, dict) for line in transcript(jobs, job.id))


@pytest.mark.req("O-08", "B-07")
def test_a_question_is_answered_from_anywhere(jobs: Jobs, tmp_path: Path) -> None:
    body = "say(type='question', text='Overwrite?'); print('answer:', sys.stdin.readline().strip())"
    job = jobs.start(Agent("go", command=program(tmp_path, body, "{prompt}")))
    until(lambda: jobs.get(job.id).needs_input)
    assert jobs.get(job.id).facts["question"] == "Overwrite?"

    assert jobs.send(job.id, "yes\n")

    job = jobs.wait(job.id, timeout=30)
    assert job.facts["result"] == "answer: yes"
    assert not job.needs_input


@pytest.mark.req("O-08", "B-08")
def test_an_agent_that_ends_before_anybody_answered_its_question_has_ended(jobs: Jobs, tmp_path: Path) -> None:
    body = "print('I go on without.', flush=True); say(type='question', text='Overwrite?')"
    job = jobs.wait(jobs.start(Agent("go", command=program(tmp_path, body, "{prompt}"))).id, timeout=30)
    assert (job.status.value, job.facts["result"], job.needs_input) == ("completed", "I go on without.", False)


@pytest.mark.req("B-08", "B-09")
@pytest.mark.parametrize("left", ["sleep 300", "while :; do echo on; sleep 0.05; done"], ids=["silent", "talking"])
def test_an_agent_ends_with_its_program_though_others_hold_its_pipes(jobs: Jobs, tmp_path: Path, left: str) -> None:
    body = f"import subprocess; print('done', flush=True); subprocess.Popen([{left!r}], shell=True)"
    job = jobs.wait(jobs.start(Agent("go", command=program(tmp_path, body))).id, timeout=40)
    assert job.end is not None
    assert (job.status.value, job.end.proof, str(job.facts["result"])[:4]) == ("completed", "proved", "done")


@pytest.mark.req("B-07")
def test_a_long_message_reaches_it_and_so_does_the_next(jobs: Jobs, tmp_path: Path) -> None:
    body = "print([len(sys.stdin.readline()) for _ in range(2)])"
    job = jobs.start(Agent("go", command=program(tmp_path, body, "{prompt}")))
    jobs.send(job.id, "x" * 300_000 + "\n")
    jobs.send(job.id, "and this\n")
    assert jobs.wait(job.id, timeout=30).facts["result"] == "[300001, 9]"


@pytest.mark.req("B-07", "O-08")
def test_what_a_program_cannot_hear_while_it_works_is_its_next_prompt(jobs: Jobs, tmp_path: Path) -> None:
    body = f"""
import os, time
say(type="question", text="Which?")  # nobody is asked: it could not be told
open({str(tmp_path / "on")!r}, "w").close()
while not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.01)
print("heard", prompt)
"""
    job = jobs.start(Agent("this", command=program(tmp_path, body)))
    until((tmp_path / "on").exists)
    assert jobs.send(job.id, "and that\n")
    (tmp_path / "go").touch()
    assert jobs.wait(job.id, timeout=30).facts["result"] == "heard and that"


@pytest.mark.req("N-03", "N-07")
def test_queued_messages_come_between_the_next_and_the_later_notices_of_its_own_jobs(tmp_path: Path) -> None:
    body = f"""
import os, subprocess, time
if not prompt.startswith("this"):
    print(prompt)
    sys.exit()
yard = [sys.executable, "-m", "taskyard"]
subprocess.run([*yard, "run", "-d", "true"], check=True)
subprocess.run([*yard, "monitor", "-d", "--name", "bell", "--command", "echo rings"], check=True)
while subprocess.run([*yard, "notices", "-q"], capture_output=True, text=True).stdout.count("\\n") < 3: pass
open({str(tmp_path / "on")!r}, "w").close()
while not os.path.exists({str(tmp_path / "go")!r}): time.sleep(0.01)
"""
    command = shlex.join(program(tmp_path, body))
    job_id = taskyard("agent", "-d", "--json", "--name", "scout", "--command", command, "this").data["id"]
    until((tmp_path / "on").exists)
    assert taskyard("send", job_id, "and that").code == 0
    (tmp_path / "go").touch()

    heard = str(ended(job_id)["facts"]["result"])

    assert heard.index("<event>rings</event>") < heard.index("and that") < heard.index('"true" completed'), heard
    assert taskyard("notices", "--by", "scout").out == "No notices for scout.\n"


@pytest.mark.req("K-02")
def test_what_it_did_last_is_seen_though_it_did_much_at_once_and_then_nothing(jobs: Jobs, tmp_path: Path) -> None:
    body = """
import time
for number in range(4):
    say(type="tool", name=f"Tool{number}")
    say(type="usage", input_tokens=100, output_tokens=10)
time.sleep(60)
"""
    job = jobs.start(Agent("go", command=program(tmp_path, body)))

    def last() -> object:
        progress: Any = jobs.get(job.id).facts.get("progress") or {}
        return progress.get("toolUseCount"), progress.get("tokenCount"), progress.get("lastActivity")

    until(lambda: last() == (4, 140, {"toolName": "Tool3", "input": {}}))


@pytest.mark.req("K-08", "B-09")
def test_a_stop_ends_the_agent_with_everything_it_started(jobs: Jobs, tmp_path: Path) -> None:
    body = "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True); print('on', flush=True); " + (
        "import time; time.sleep(60)"
    )
    job = jobs.start(Agent("go", command=program(tmp_path, body)))
    until(lambda: any(line["type"] == "assistant" for line in transcript(jobs, job.id)))

    (stopped,) = jobs.stop(job.id)

    assert (stopped.outcome, stopped.job.status.value) == ("stopped", "killed")
    (notice,) = Outbox(jobs.home, None).waiting()
    assert notice.summary == 'Agent "go" was stopped'


@pytest.mark.req("H-01")
def test_hooks_speak_before_it_starts_and_may_send_it_on(
    jobs: Jobs, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; echo 'Run the tests first.' >&2; exit 2; }}"
    settings = {
        "hooks": {
            "SubagentStart": [
                {"matcher": "explorer", "hooks": [{"type": "command", "command": "echo 'House rule: be kind.'"}]},
                {"matcher": "other", "hooks": [{"type": "command", "command": "echo 'not for you'"}]},
            ],
            "SubagentStop": [{"hooks": [{"type": "command", "command": stop}]}],
        }
    }
    (outside / ".claude").mkdir(exist_ok=True)
    (outside / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    command = program(tmp_path, "print('heard:', prompt)")
    job = jobs.run(Agent("look around", command=command, agent_type="explorer"), timeout=30)

    prompts = [line["text"] for line in transcript(jobs, job.id) if line["type"] == "prompt"]
    assert prompts == ["House rule: be kind.\n\nlook around", "Run the tests first."]
    assert job.facts["result"] == "heard: Run the tests first."


@pytest.mark.req("O-06", "O-07", "H-01")
@pytest.mark.parametrize(("size", "is_spilled"), [(20_000, False), (200_000, False), (9_000_000, True)])
def test_what_a_hook_prints_is_never_cut_without_a_word(
    jobs: Jobs, tmp_path: Path, outside: Path, size: int, is_spilled: bool
) -> None:
    hook = {"type": "command", "command": f"yes 0123456789abcde | head -c {size - 4}; echo end"}
    (outside / ".claude").mkdir(exist_ok=True)
    settings = json.dumps({"hooks": {"SubagentStart": [{"hooks": [hook]}]}})
    (outside / ".claude" / "settings.json").write_text(settings, encoding="utf-8")

    job = jobs.run(Agent("look", command=program(tmp_path, "print(len(prompt))")), timeout=30)

    (prompt,) = [str(line["text"]) for line in transcript(jobs, job.id) if line["type"] == "prompt"]
    whole = ("0123456789abcde\n" * (size // 16 + 1))[: size - 4] + "end"
    if is_spilled:
        notice, _, rest = prompt.partition("\n")
        assert notice.startswith(f"[Only the last 5 lines of {size:,} bytes. Full output: ")
        assert rest.removesuffix("\n\nlook").splitlines() == whole.splitlines()[-5:]
        path = notice.rpartition(" ")[2].removesuffix("]")
        assert Path(path).read_text(encoding="utf-8") == whole + "\n"
    elif size > 32_000:
        header, _, rest = prompt.partition("\n\n")
        path = header.removeprefix("[Truncated. Full output: ").removesuffix("]")
        assert Path(path).read_text(encoding="utf-8") == whole
        assert whole.endswith(rest.removesuffix("\n\nlook")) and len(prompt) > 31_000
    else:
        assert prompt == f"{whole}\n\nlook"


STREAM = """
assert sys.argv[1:] == ["-p", "--output-format", "stream-json", "--verbose"], sys.argv
prompt = sys.stdin.read()
usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}
say(type="system", subtype="init", session_id="s1")
used = {"type": "tool_use", "name": "Read", "input": {"file_path": "x"}}
say(type="assistant", message={"content": [used], "usage": usage})
say(type="user", message={"content": []})
say(type="assistant", message={"content": [{"type": "text", "text": "Hi"}], "usage": usage})
"""


@pytest.mark.req("K-02")
def test_a_command_line_that_streams_json_is_understood(jobs: Jobs, tmp_path: Path) -> None:
    body = STREAM + 'say(type="result", subtype="success", is_error=False, result="Hi " + prompt, total_cost_usd=0.5)'
    command = program(tmp_path, body.replace("prompt = sys.argv[1]", ""))
    job = jobs.run(Agent("there", engine="claude-stream", command=command), timeout=30)
    assert (job.facts["result"], job.facts["costUsd"]) == ("Hi there", 0.5)
    progress: Any = job.facts["progress"]
    assert (progress["toolUseCount"], progress["tokenCount"]) == (1, 110)


@pytest.mark.req("B-08", "K-02")
@pytest.mark.parametrize(
    ("last", "error", "retryable"),
    [
        ("", "its stream broke off without a result", True),
        ('say(type="result", subtype="error_during_execution", is_error=True, result="API Error: 529")', "529", True),
        ('say(type="result", subtype="error_max_turns", is_error=True)', "error_max_turns", False),
    ],
)
def test_a_stream_that_is_cut_or_reports_an_error_is_never_completed(
    jobs: Jobs, tmp_path: Path, last: str, error: str, retryable: bool
) -> None:
    command = program(tmp_path, STREAM + last)
    job = jobs.run(Agent("go", engine="claude-stream", command=command, on_rate_limit="stop"), timeout=30)
    assert job.status.value == "failed"
    assert job.end is not None
    assert error in job.end.error
    assert job.facts["isRetryable"] is retryable


@pytest.mark.req("Q-03", "B-08")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("say(type='refused', name='Write'); print('I could not write.')", "refused for want of permission: Write"),
        ("print('I tried.'); print('STATUS: failed: no such file')", "it reports a failure: no such file"),
        ("say(type='result', text='`STATUS: FAILED` - it does not build')", "it reports a failure: it does not build"),
    ],
)
def test_a_turn_with_refused_tools_or_a_reported_failure_is_not_completed(
    jobs: Jobs, tmp_path: Path, body: str, why: str
) -> None:
    job = jobs.wait(jobs.start(Agent("go", command=program(tmp_path, body))).id, timeout=30)
    assert job.status.value == "failed"
    assert job.end is not None and job.end.error == why
    [notice] = [one for one in Outbox(jobs.home, None).waiting() if one.task_id == job.id]
    assert notice.status == "failed" and why in notice.summary


@pytest.mark.req("B-01")
def test_the_main_conversation_in_the_background_has_a_letter_of_its_own(jobs: Jobs, tmp_path: Path) -> None:
    job = jobs.run(Agent("go", agent_type="main-session", command=program(tmp_path, "pass")), timeout=30)
    assert (job.id[0], job.type) == ("s", "local_agent")


@pytest.mark.req("K-02")
def test_it_acts_under_its_own_name(jobs: Jobs, tmp_path: Path) -> None:
    command = program(tmp_path, "import os; print(os.environ['TASKYARD_AGENT'])")
    assert jobs.run(Agent("go", command=command, name="ada"), timeout=30).facts["result"] == "ada"
    unnamed = jobs.run(Agent("go", command=command), timeout=30)
    assert unnamed.facts["result"] == unnamed.id


@pytest.mark.req("B-01")
def test_what_cannot_be_is_refused_before_anything_is_started(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="needs a program"):
        jobs.start(Agent("go"))
    with pytest.raises(EngineNotFound, match="claude-stream"):
        jobs.start(Agent("go", engine="claude-strem"))
    with pytest.raises(BadText):
        jobs.start(Agent("  ", command=["true"]))
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", "sh -c 'x")
    with pytest.raises(BadValue, match="agent_command"):
        jobs.start(Agent("go"))
    assert jobs.list(ended=True) == []


@pytest.mark.req("B-08")
def test_a_program_that_is_not_there_is_a_failure_that_names_it(jobs: Jobs) -> None:
    job = jobs.run(Agent("go", command=["no-such-agent"]), timeout=30)
    assert job.end is not None
    assert "no-such-agent cannot be started" in job.end.error


@pytest.mark.req("B-01", "K-08")
def test_it_keeps_the_promises_of_a_job(tmp_path: Path) -> None:
    quick, fails = program(tmp_path, "print('done')"), program(tmp_path, "sys.exit(1)")
    lasting = program(tmp_path, "import time; print('on', flush=True); time.sleep(600)")
    check_job_handler(
        quick=lambda: Agent("go", command=quick),
        failing=lambda: Agent("go", command=fails),
        endless=lambda: Agent("go", command=lasting),
    )
