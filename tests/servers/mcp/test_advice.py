"""Refusals in the words of models: tools to call, and no commands of a shell."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import taskyard
from support.mcp_server import Model, Said, talk
from taskyard import errors
from taskyard.servers.mcp import answers

#: What only somebody at a command line can do.
SHELL = re.compile(r"--[a-z]|`taskyard (?!doctor|trust|task restore)")


def advised(said: Said) -> tuple[str, dict[str, Any]]:
    """The call that a refusal proposes."""
    found = re.search(r"(\w+) (\{.*?\})", " ".join(said.texts))
    assert found is not None, said.texts
    fields: dict[str, Any] = json.loads(found[2])
    return found[1], fields


@pytest.mark.req("T-04", "L-08")
def test_what_a_refusal_about_a_task_advises_can_be_done() -> None:
    async def body(model: Model) -> None:
        for subject in ("A", "B", "C"):
            await model.call("TaskCreate", subject=subject)
        asked: list[tuple[str, dict[str, Any]]] = [("TaskClaim", {}), ("TaskUpdate", {"status": "in_progress"})]
        for refused, fields in asked:
            await model.call("TaskUpdate", taskId="1", status="completed")
            tool, wanted = advised(await model.refused(refused, taskId="1", **fields))
            assert not (await model.call(tool, **wanted)).is_error
            assert (await model.call(refused, taskId="1", **fields)).data["task"]["status"] == "in_progress"

        tool, wanted = advised(await model.refused("TaskClaim", checkBusy=True))
        assert not (await model.call(tool, **wanted)).is_error
        assert (await model.call("TaskClaim", checkBusy=True)).data["task"]["id"] == "1"

    talk(body, agent="ada")


@pytest.mark.req("T-04", "L-08")
def test_refusals_name_tools() -> None:
    with taskyard.open(list="demo", agent="bob") as bob:
        bob.tasks.create("taken")
        bob.tasks.claim("1")
        bob.tasks.delete(bob.tasks.create("removed").id)

        async def body(model: Model) -> None:
            job = (await model.call("Bash", command="sleep 60", run_in_background=True)).data["task_id"]
            no_input = await model.refused("SendInput", task_id=job, text="y")
            await model.call("TaskStop", task_id=job)
            said = {
                "Bash with stdin": no_input,
                "SendMessage": await model.refused("TaskClaim", taskId="1"),
                "TaskList": await model.refused("TaskClaim"),
                "A person can": await model.refused("TaskGet", taskId="2"),
                "TaskList shows": await model.refused("TaskGet", taskId="77"),
                "start it again": await model.refused("SendInput", task_id=job, text="y"),
                "ListJobs": await model.refused("TaskOutput", task_id="bxxxxxxxx"),
                "TaskList shows who": await model.refused("SendMessage", to="zoe", message="hello"),
            }
            for expected, refused in said.items():
                assert expected in " ".join(refused.texts)
                assert expected in refused.data["error"]["message"]
                assert not SHELL.search(" ".join(refused.texts))
            alone = await model.refused("TaskUpdate", taskId="1", status="deleted", activeForm="x", owner="zoe")
            assert alone.text == "status is deleted: expected no other field with that, and there is activeForm, owner."

        talk(body, agent="ada")


@pytest.mark.req("T-04")
@pytest.mark.parametrize(
    "error",
    [
        errors.AlreadyClaimed("7", "bob"),
        errors.AlreadyClaimed("7", "bob", instance="x"),
        errors.AlreadyClaimed("7", "bob", forcible=True),
        errors.BadTransition("7", "pending", "lost"),
        errors.LeaseLost("7", "bob"),
        errors.LeaseLost("7", None),
        errors.TaskNotFound("7", list_name="plan", nearest=["6"]),
        errors.JobNotFound("b00000000", nearest=["b00000001"]),
        errors.ListNotFound("plan"),
        errors.RecipientNotFound("*", team="t"),
        errors.RecipientNotFound("bob", team="t", nearest=["rob"]),
        errors.NothingFree("ada", list_name="plan", open=0, taken=0),
        errors.NoInput("b12345678", "has closed its input", "See `taskyard logs b12345678`."),
        errors.BackgroundDisabled("TASKYARD_DISABLE_BACKGROUND_TASKS"),
        errors.Untrusted("A hook", "./h", "taskyard trust"),
        errors.Damaged("7.json", "it is empty"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_the_fact_stays_and_no_advice_is_for_a_shell(error: errors.TaskyardError) -> None:
    said = answers.error_text(error)
    assert said.startswith(error.fact)
    assert said.endswith(".")
    assert not SHELL.search(said)


def test_what_has_no_other_words_says_what_it_says_to_all() -> None:
    error = errors.Blocked("7", ["1", "2"])
    assert answers.error_text(error) == str(error) == error.fact
