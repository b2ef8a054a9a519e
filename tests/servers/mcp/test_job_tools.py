"""Commands through the tools: in the foreground, in the background, stopped, answered, read."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import anyio
import pytest

from support.dreams import PRIOR, Memory
from support.jobs import wait_until_told
from support.mcp_server import Model, Said, talk
from support.wait import until
from taskyard.agents.dream.kind import Dream
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.jobs import Jobs


def home() -> str:
    return os.environ["TASKYARD_HOME"]


@pytest.mark.req("T-03", "B-08")
def test_a_command_in_the_foreground_answers_with_its_output_and_exit_code() -> None:
    async def body(model: Model) -> None:
        said = await model.call("Bash", command="echo out; echo err >&2", description="Say two things")
        assert (said.text, said.data["exitCode"], said.data["status"]) == ("out\nerr\n", 0, "completed")
        assert said.data["description"] == "Say two things"
        failed = await model.refused("Bash", command="echo no; exit 3")
        assert (failed.text, failed.data["exitCode"]) == ("no\n\nExit code 3", 3)
        assert (await model.call("Bash", command="true")).text == "(no output)"
        ended = await model.refused("Bash", command="sleep 60", timeout=50)
        assert ended.text == "It was ended after reaching its time limit."
        assert (await model.refused("Bash", command="kill -9 $$")).text == "Killed by signal 9"
        assert (await model.call("TaskList")).notices == []  # whoever watched it has seen its end

    talk(body)


@pytest.mark.req("T-03", "T-04", "N-01")
def test_a_background_start_answers_id_output_and_that_a_notice_will_come(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)

    async def body(model: Model) -> None:
        said = await model.call("Bash", command=f"read line < {go}; echo hello", run_in_background=True)
        job_id = said.data["task_id"]
        assert re.fullmatch(r"b[0-9a-z]{8}", job_id)
        assert said.text == (
            f"Command running in background with ID: {job_id}. Output is being written to:"
            f" {said.data['output_file']}. Its end is reported in the answer"
            " to a later Taskyard call; do not poll."
        )
        await anyio.Path(go).write_text("now\n", encoding="utf-8")
        await Waiting(model).for_end(job_id)
        rode = await model.call("TaskList")
        assert rode.text == "No tasks found"
        assert "<task-notification>" in rode.texts[1]
        assert f"<task-id>{job_id}</task-id>" in rode.texts[1]
        assert "No person wrote it" in rode.texts[1]
        assert [(notice["task_id"], notice["status"]) for notice in rode.notices] == [(job_id, "completed")]
        assert await anyio.Path(said.data["output_file"]).read_text(encoding="utf-8") == "hello\n"

    talk(body)


class Waiting:
    """Waits for jobs by the library, so that no answer of the server brings their end."""

    def __init__(self, model: Model) -> None:
        self._jobs = Jobs(home())

    async def for_end(self, job_id: str) -> None:
        job = await anyio.to_thread.run_sync(lambda: self._jobs.wait(job_id, timeout=20))
        assert job.is_final
        living = JobPaths(home(), job_id).living
        await anyio.to_thread.run_sync(lambda: until(lambda: not os.path.lexists(living)))  # the news is on its way


@pytest.mark.req("T-03", "B-11")
def test_a_command_that_outlasts_the_client_s_patience_goes_on_in_the_background() -> None:
    async def body(model: Model) -> None:
        said = await model.call("Bash", command="echo early; read line; echo $line", stdin=True)
        assert said.text.startswith("It takes longer: it goes on in the background with ID: ")
        job_id = said.data["task_id"]
        assert not said.is_error
        assert (await model.call("SendInput", task_id=job_id, text="late")).text == f"Typed into {job_id}."
        found = await model.call("TaskOutput", task_id=job_id)
        assert (found.data["status"], found.data["output"]) == ("completed", "early\nlate\n")
        assert (await model.call("ListJobs")).notices == []  # reading the end was hearing of it

    talk(body, patience=0.3)


@pytest.mark.req("T-02", "O-07")
def test_output_of_any_size_costs_what_a_model_is_given() -> None:
    async def body(model: Model) -> None:
        started = await model.call("Bash", command="yes line | head -c 10000000", run_in_background=True)
        said = await model.call("TaskOutput", task_id=started.data["task_id"])
        assert said.data["was_truncated"] is True
        assert len(said.data["output"]) <= 32_000
        assert said.data["output"].startswith("[Truncated. Full output: ")
        assert said.data["output"].endswith("line\n")
        assert len(said.text) < 33_000

    talk(body)


@pytest.mark.req("T-02")
def test_a_job_that_runs_is_told_as_it_stands() -> None:
    async def body(model: Model) -> None:
        started = await model.call("Bash", command="echo so far; sleep 60", run_in_background=True)
        job_id = started.data["task_id"]
        waited = await model.call("TaskOutput", task_id=job_id, timeout=300)
        assert (waited.data["retrieval_status"], waited.data["status"]) == ("timeout", "running")
        assert waited.data["exitCode"] is None
        looked = await model.call("TaskOutput", task_id=job_id, block=False)
        assert looked.data["retrieval_status"] == "not_ready"
        assert looked.text.splitlines() == [
            "retrieval_status: not_ready",
            f"task_id: {job_id}",
            "task_type: local_bash",
            "status: running",
            "description: echo so far; sleep 60",
            "exitCode: null",
            "output:",
            "so far",
        ]
        assert f"{job_id} [" in (await model.call("ListJobs")).text
        await model.call("TaskStop", task_id=job_id)

    talk(body)


@pytest.mark.req("T-03", "T-04", "B-09")
@pytest.mark.parametrize("tool", ["TaskStop", "KillShell"])
def test_a_stop_answers_as_models_know_it_and_with_proof(tool: str) -> None:
    field = "task_id" if tool == "TaskStop" else "shell_id"

    async def body(model: Model) -> None:
        started = await model.call("Bash", command="sleep 60", run_in_background=True)
        job_id = started.data["task_id"]
        said = await model.call(tool, **{field: job_id})
        assert json.loads(said.text) == {
            "message": f"Successfully stopped task: {job_id} (sleep 60)",
            "task_id": job_id,
            "task_type": "local_bash",
            "command": "sleep 60",
        }
        assert (said.data["outcome"], said.data["survivors"]) == ("stopped", [])
        assert said.notices == []  # the answer said it
        again = await model.call(tool, **{field: job_id})
        assert (again.is_error, again.data["outcome"]) == (False, "already_ended")
        near = job_id[:-1] + ("0" if job_id[-1] != "0" else "1")
        unknown = await model.refused(tool, **{field: near})
        assert (unknown.code, unknown.data["error"]["nearest"]) == ("job_not_found", [job_id])
        assert (await model.refused(tool, **{field: "../../etc"})).code == "bad_job_id"

    talk(body)


@pytest.mark.req("B-11")
@pytest.mark.parametrize("name", ["TASKYARD_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"])
def test_where_nothing_may_run_in_the_background_the_parameter_is_not_there(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")

    async def body(model: Model) -> None:
        (bash,) = [tool for tool in (await model.client.list_tools()).tools if tool.name == "Bash"]
        assert "run_in_background" not in bash.input_schema["properties"]
        assert "run_in_background" not in f"{bash.description}{model.client.instructions}"
        assert (await model.refused("Bash", command="true", run_in_background=True)).code == "bad_arguments"
        assert (await model.call("Bash", command="echo here")).text == "here\n"

    talk(body)


@pytest.mark.req("O-08", "B-07")
def test_one_who_takes_no_input_says_so() -> None:
    async def body(model: Model) -> None:
        started = await model.call("Bash", command="sleep 60", run_in_background=True)
        job_id = started.data["task_id"]
        assert (await model.refused("SendInput", task_id=job_id, text="y")).code == "no_input"
        await model.call("TaskStop", task_id=job_id)
        assert (await model.refused("SendInput", task_id=job_id, text="y")).code == "job_ended"

    talk(body)


@pytest.mark.req("N-03", "B-08")
def test_notices_ride_also_on_the_answer_that_a_command_goes_on_in_the_background(tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = f"until [ -e {go} ]; do sleep 0.02; done"  # it must not end before its own start is answered

    async def body(model: Model) -> None:
        first = (await model.call("Bash", command=waits, run_in_background=True)).data["task_id"]
        go.touch()
        await anyio.to_thread.run_sync(lambda: wait_until_told(Jobs(home()), first))
        goes_on = await model.call("Bash", command="sleep 60")
        assert "goes on in the background" in goes_on.text
        assert [notice["task_id"] for notice in goes_on.notices] == [first]
        assert "<task-notification>" in goes_on.texts[-1]
        await model.call("TaskStop", task_id=goes_on.data["task_id"])

    talk(body, patience=0.2)


@pytest.mark.req("B-10")
def test_jobs_come_in_pages() -> None:
    async def body(model: Model) -> None:
        for number in range(40):
            await model.call("Bash", command=f": {'x' * 190}{number}")
        first = await model.call("ListJobs", all=True)
        assert len(first.data["jobs"]) < 40
        tool, _, fields = first.texts[1].partition(": ")[2].partition(" ")
        assert json.loads(fields) == {"all": True, "after": first.data["after"]}
        rest: Said = await model.call(tool, **json.loads(fields))
        ids = [job["task_id"] for job in first.data["jobs"] + rest.data["jobs"]]
        assert len(set(ids)) == 40
        assert (await model.call("ListJobs")).text == "No jobs found"
        behind = await model.call("ListJobs", after=ids[0])
        assert behind.text == "No jobs found", "it is over, and nothing that lives is behind it"
        assert (await model.refused("ListJobs", after="b00000000")).code == "job_not_found"
        assert (await model.refused("ListJobs", after="page 2")).code == "bad_job_id"

    talk(body)


@pytest.mark.req("K-07", "K-08", "T-03")
def test_a_dream_has_no_output_for_a_model_and_can_be_stopped_by_one(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    dreams = Jobs(home())
    spec = Dream(str(memory.path), command=["sleep", "600"], cwd=str(memory.project))
    try:
        job_id = dreams.start(spec).id

        async def body(model: Model) -> None:
            found = await model.call("TaskOutput", task_id=job_id, block=False)
            assert (found.data["task_type"], found.data["status"], found.data["output"]) == ("dream", "running", "")
            assert (await model.call("TaskStop", task_id=job_id)).data["outcome"] == "stopped"
            ended = await model.call("TaskOutput", task_id=job_id, transcript=True)
            assert (ended.data["status"], ended.data["output"]) == ("killed", "")
            assert ended.notices == []

        talk(body)
    finally:
        dreams.close()
    assert memory.last_done == PRIOR
