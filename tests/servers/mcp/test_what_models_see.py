"""Answers as clients pass them on to models: the text alone, or the data alone; nothing may be missing in either."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

import pytest

import taskyard
from support.mcp_server import Mode, Model, talk
from support.wait import until
from taskyard import config
from taskyard.jobs.job_dir import JobPaths


def _by_text(result_texts: list[str]) -> str:
    return "\n".join(result_texts)


async def _busy_list_answer(model: Model) -> tuple[str, str, dict[str, Any]]:
    """TaskList with a notice and a message waiting: its text, its data as a client shows it, its `_meta`."""
    gate = os.path.join(
        config.home(), "gate"
    )  # until it is there: the answer to a start has the notice of what ended before it
    command = f"until test -e {shlex.quote(gate)}; do sleep 0.01; done; exit 3"
    job = await model.client.call_tool("Bash", {"command": command, "run_in_background": True, "description": "Fail"})
    job_id = str(job.content[0].text).split("ID: ")[1].split(".")[0]  # type: ignore[union-attr]
    with taskyard.open(list="demo", agent="bob") as yard:
        os.close(os.open(gate, os.O_CREAT | os.O_WRONLY))
        until(lambda: yard.jobs.get(job_id).is_final)
        until(lambda: not os.path.lexists(JobPaths(config.home(), job_id).notice))  # its notice is in the outbox
        yard.mail.send("bob", "ada", "Look at #1.")
    said = await model.client.call_tool("TaskList", {})
    texts = [block.text for block in said.content if block.type == "text"]
    return _by_text(texts), json.dumps(said.structured_content), dict(said.meta or {})


@pytest.mark.req("T-04", "N-01", "N-07")
def test_a_model_reads_the_answer_notices_and_waiting_mail_as_text_and_no_client_hides_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKYARD_MCP_STRUCTURED", "0")

    async def body(model: Model) -> None:
        assert all(tool.output_schema is None for tool in (await model.client.list_tools()).tools)
        created = await model.client.call_tool("TaskCreate", {"subject": "A"})
        assert created.structured_content is None
        text, data, meta = await _busy_list_answer(model)
        assert data == "null"
        assert text.startswith("#1 [pending] A\n")
        assert text.count("<task-notification>") == 1
        assert "1 message waits for you" in text
        assert "check" not in text
        (record,) = meta["taskyard/notices"]
        assert record["status"] == "failed" and record["check"]

    talk(body, agent="ada")


@pytest.mark.req("N-01")
def test_data_says_all_that_the_text_does_and_no_record_of_a_notice() -> None:
    async def body(model: Model) -> None:
        await model.client.call_tool("TaskCreate", {"subject": "A"})
        _, data, meta = await _busy_list_answer(model)
        found = json.loads(data)
        assert [task["subject"] for task in found["tasks"]] == ["A"]
        mail, notice = found["notes"]  # the end of a command comes after what waits already
        assert notice.count("<task-notification>") == 1 and "<status>failed</status>" in notice
        assert mail.startswith("[1 message waits for you")
        assert "notices" not in found
        assert len(meta["taskyard/notices"]) == 1

    talk(body, agent="ada")


def test_an_error_is_text_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_MCP_STRUCTURED", "0")

    async def body(model: Model) -> None:
        said = await model.client.call_tool("TaskGet", {"taskId": "99"})
        assert said.is_error and said.structured_content is None
        assert next(block.text for block in said.content if block.type == "text") == "Task not found"

    talk(body, agent="ada")


#: What a command may print: JSON that is no object.
BARE_JSON = ["1", "[1]", '"x"', "null", "true", "1e999", "1" * 5_000]


@pytest.mark.req("T-04")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_gemini_cli_finds_an_object_beside_every_text_and_makes_none_of_it(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKYARD_MCP_STRUCTURED", "0")

    async def body(model: Model) -> None:
        for printed in BARE_JSON:
            said = await model.client.call_tool("Bash", {"command": f"printf %s {shlex.quote(printed)}"})
            assert [block.text for block in said.content if block.type == "text"] == [printed]
            assert said.structured_content is not None and said.structured_content["output"] == printed

    talk(body, agent="ada", mode=mode, program="gemini-cli-mcp-client")


def test_other_clients_get_bare_json_as_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_MCP_STRUCTURED", "0")

    async def body(model: Model) -> None:
        for printed in BARE_JSON:
            said = await model.client.call_tool("Bash", {"command": f"printf %s {shlex.quote(printed)}"})
            assert [block.text for block in said.content if block.type == "text"] == [printed]
            assert said.structured_content is None

    talk(body, agent="ada", program="claude-code")
