"""Agents through the tools: in the foreground, in the background, told something, asked, stopped, read."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import anyio
import pytest
from mcp_types import CallToolResult, TextContent

from support.mcp_clients import run, stdio_client
from support.mcp_server import Model, talk
from support.mcp_tasks import Tasks
from support.wait import until
from taskyard.jobs.jobs import Jobs

#: An agent whose prompt is a program: it does what a test asks for.
DOES = f'{shlex.quote(sys.executable)} -u -c "import json, sys; exec(sys.argv[1])" {{prompt}}'

#: Its last word, after it is told to go on.
LISTENS = "print('ready'); print('heard: ' + sys.stdin.readline().strip())"


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", DOES)


async def ended(job_id: str) -> None:
    """Wait by the library, so that no answer of the server brings the end."""
    jobs = Jobs(os.environ["TASKYARD_HOME"])
    assert (await anyio.to_thread.run_sync(lambda: jobs.wait(job_id, timeout=30))).is_final


@pytest.mark.req("T-03", "K-02")
def test_an_agent_in_the_foreground_answers_with_its_final_text_and_what_it_took() -> None:
    work = (
        "print(json.dumps({'type': 'usage', 'input_tokens': 90, 'output_tokens': 10}))\n"
        "print(json.dumps({'type': 'tool', 'name': 'Edit', 'input': {}}))\n"
        "print(json.dumps({'type': 'cost', 'usd': 0.5}))\n"
        "print(json.dumps({'type': 'result', 'text': 'All is well.'}))"
    )

    async def body(model: Model) -> None:
        said = await model.call("Agent", prompt=work, description="Look around", subagent_type="explorer", name="scout")
        assert said.text == "All is well."
        assert f"agentId: {said.data['task_id']}" in said.texts[1]
        assert "total_tokens: 100\ntool_uses: 1\n" in said.texts[1]
        assert (said.data["result"], said.data["description"], said.data["name"]) == (
            "All is well.",
            "Look around",
            "scout",
        )
        assert (said.data["usage"]["total_tokens"], said.data["cost_usd"]) == (100, 0.5)
        assert (await model.call("TaskList")).notices == []  # whoever waited for it has its answer

        failed = await model.refused("Agent", prompt="print('half'); sys.exit(3)")
        assert failed.text == "half\nThe agent did not finish: it ended with exit code 3"
        assert (failed.data["status"], failed.data["result"]) == ("failed", "half")

    talk(body)


@pytest.mark.req("T-03", "T-04", "N-02")
def test_a_background_agent_is_told_something_by_name_and_its_answer_comes_with_the_notice() -> None:
    async def body(model: Model) -> None:
        said = await model.call("Agent", prompt=LISTENS, name="scout", run_in_background=True)
        job_id = said.data["task_id"]
        assert said.text.startswith(f"Agent running in background with ID: {job_id}. Do not do its work meanwhile.")
        assert "SendMessage to scout" in said.text
        looked = await model.call("TaskOutput", task_id=job_id, block=False)
        assert looked.data["retrieval_status"] == "not_ready"  # its output is what the transcript has by now

        assert (await model.call("SendMessage", to="scout", message="go on")).text == "Message sent to scout."

        await ended(job_id)
        rode = await model.call("TaskList")
        assert [(notice["task_id"], notice["status"]) for notice in rode.notices] == [(job_id, "completed")]
        assert "heard: Message from ada: go on</result>" in rode.texts[1]
        assert "<usage><total_tokens>0</total_tokens>" in rode.texts[1]
        late = await model.refused("SendMessage", to=job_id, message="and now?")
        assert late.code == "job_ended"
        nobody = await model.refused("SendMessage", to="assistant", message="a name that could be an id")
        assert nobody.code == "recipient_not_found"

    talk(body, agent="ada")


@pytest.mark.req("T-03", "K-02")
def test_what_an_agent_cannot_be_told_while_it_works_is_what_it_does_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Its prompt comes on stdin, to the end: it can hear nothing more.
    monkeypatch.setenv("TASKYARD_AGENT_COMMAND", "bash -c 'cat; touch begun; until [ -e go ]; do sleep 0.02; done'")

    async def body(model: Model) -> None:
        job_id = (await model.call("Agent", prompt="first", run_in_background=True)).data["task_id"]
        text = "one\ntwo " + "x" * 70_000
        assert (await model.call("SendMessage", to=job_id, message=text)).data["sent"] == [job_id]
        await anyio.Path("go").touch()
        found = await model.call("TaskOutput", task_id=job_id)
        assert found.data["output"].endswith(text[-1000:])
        whole = await model.call("TaskOutput", task_id=job_id, transcript=True)
        assert '"type": "prompt"' in whole.data["output"] or whole.data["was_truncated"]

    talk(body, agent="ada")


@pytest.mark.req("T-02")
def test_task_output_of_an_agent_is_its_answer_and_its_transcript_on_request() -> None:
    async def body(model: Model) -> None:
        job_id = (await model.call("Agent", prompt="print('So it is.')", run_in_background=True)).data["task_id"]
        found = await model.call("TaskOutput", task_id=job_id)
        assert (found.data["output"], found.data["result"]) == ("So it is.", "So it is.")
        assert found.data["prompt"] == "print('So it is.')"
        whole = await model.call("TaskOutput", task_id=job_id, transcript=True)
        assert '"type": "assistant", "text": "So it is."' in whole.data["output"]
        silent = await model.call("Agent", prompt="pass")
        assert silent.text == "(the agent gave no answer)"
        assert (await model.call("TaskOutput", task_id=silent.data["task_id"])).data["output"] == ""

    talk(body)


@pytest.mark.req("T-03", "O-08")
def test_an_agent_that_asks_goes_on_in_the_background_and_is_answered() -> None:
    asks = "print(json.dumps({'type': 'question', 'text': 'Overwrite?'})); print('so:', sys.stdin.readline().strip())"

    async def body(model: Model) -> None:
        said = await model.call("Agent", prompt=asks)
        assert said.text.startswith("It takes longer: the agent goes on in the background with ID: ")
        assert "It asks: Overwrite? SendInput answers it." in said.text
        await model.call("SendInput", task_id=said.data["task_id"], text="yes")
        assert (await model.call("TaskOutput", task_id=said.data["task_id"])).data["output"] == "so: yes"

    talk(body)


@pytest.mark.req("T-03", "K-08")
def test_an_agent_is_stopped_with_everything_it_started() -> None:
    async def body(model: Model) -> None:
        work = "import subprocess; print('on'); subprocess.run(['sleep', '4321.75'])"
        said = await model.call("Agent", prompt=work, description="Sleep")
        assert "goes on in the background" in said.text
        stopped = await model.call("TaskStop", task_id=said.data["task_id"])
        assert (stopped.data["outcome"], stopped.data["task_type"]) == ("stopped", "local_agent")

    talk(body, patience=0.3)


@pytest.mark.req("T-02", "T-05")
def test_a_client_that_can_wait_gets_a_task_and_in_the_end_the_agents_answer(tmp_path: Path) -> None:
    async def work() -> None:
        tasks = Tasks(lambda message: {"action": "accept", "content": {"answer": f"{'Sure?' in message}"}})
        soon = {"TASKYARD_MCP_DEFER_AFTER": "0.1", "TASKYARD_AGENT_COMMAND": DOES}
        async with stdio_client(tmp_path / "home", "--list", "demo", env=soon, extensions=[tasks]) as client:
            asks = "print(json.dumps({'type': 'question', 'text': 'Sure?'})); print(sys.stdin.readline().strip())"
            answer: CallToolResult = await client.call_tool("Agent", {"prompt": asks})
            first = answer.content[0]
            assert isinstance(first, TextContent)
            assert first.text == "True"
            assert len(tasks.created) == 1

    run(work)


@pytest.mark.req("B-11", "T-05")
def test_where_nothing_may_run_in_the_background_an_agent_cannot_be_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_DISABLE_BACKGROUND_TASKS", "1")

    async def body(model: Model) -> None:
        tools = {tool.name: tool for tool in (await model.client.list_tools()).tools}
        for name in ("Agent", "Workflow"):
            assert "run_in_background" not in tools[name].input_schema["properties"]
        assert (await model.call("Agent", prompt="print('here')")).text == "here"
        assert (await model.refused("Agent", prompt="pass", run_in_background=True)).code == "bad_arguments"

    talk(body)


@pytest.mark.req("T-04", "T-05")
def test_what_no_agent_can_be_is_refused_and_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(model: Model) -> None:
        assert (await model.refused("Agent", prompt="  ")).code == "bad_text"
        assert (await model.refused("Agent", prompt="go", isolation="cloud")).code == "bad_arguments"
        assert (await model.refused("Agent", prompt="go", name="a\nb")).code == "bad_name"
        monkeypatch.setenv("TASKYARD_AGENT_COMMAND", "")
        assert "needs a program" in (await model.refused("Agent", prompt="go")).text
        assert (await model.call("ListJobs", all=True)).text == "No jobs found"

    talk(body)


@pytest.mark.req("Q-01", "T-02")
def test_a_model_reads_what_a_rate_limited_agent_waits_for() -> None:
    work = "print(json.dumps({'type': 'limited', 'seconds': 3600, 'text': '429'})); sys.exit(1)"

    async def body(model: Model) -> None:
        started = await model.call("Agent", prompt=work, run_in_background=True)
        job_id = started.data["task_id"]
        jobs = Jobs(os.environ["TASKYARD_HOME"])
        await anyio.to_thread.run_sync(lambda: until(lambda: jobs.get(job_id).rate_limited is not None, timeout=30))
        looked = await model.call("TaskOutput", task_id=job_id, block=False)
        assert looked.data["status"] == "running"
        assert looked.data["waiting"].startswith("pending: rate-limited by python")
        assert f"waiting: {looked.data['waiting']}" in looked.text
        listed = await model.call("ListJobs")
        assert f"{job_id} [pending]" in listed.text
        await model.call("TaskStop", task_id=job_id)

    talk(body)


@pytest.mark.req("T-02", "T-03")
def test_the_output_of_an_agent_at_work_is_what_it_said_and_did_last() -> None:
    work = (
        "print('I look at the parser.')\n"
        "print(json.dumps({'type': 'tool', 'name': 'Read', 'input': {'file_path': 'src/parser.py'}}), flush=True)\n"
        "print('It has two bugs.')\n"
        "sys.stdin.readline(); print(json.dumps({'type': 'result', 'text': 'Both are fixed.'}))"
    )

    async def body(model: Model) -> None:
        job_id = (await model.call("Agent", prompt=work, run_in_background=True)).data["task_id"]
        output = Path(os.environ["TASKYARD_HOME"], "jobs", job_id, "output")
        await anyio.to_thread.run_sync(lambda: until(lambda: 'bugs."' in output.read_text(encoding="utf-8")))
        said = await model.call("TaskOutput", task_id=job_id, block=False)
        assert said.data["status"] == "running"
        shown = said.data["output"]
        assert shown.endswith("\nI look at the parser.\n[Read src/parser.py]\nIt has two bugs.")
        await model.call("SendMessage", to=job_id, message="go on")
        await ended(job_id)
        assert (await model.call("TaskOutput", task_id=job_id)).data["output"] == "Both are fixed."

    talk(body)
