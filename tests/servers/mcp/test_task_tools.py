"""The tools of the list, in the words models know."""

from __future__ import annotations

import json
from typing import Any

import pytest

import taskyard
from support.mcp_server import Model, talk


@pytest.mark.req("T-01", "T-04")
def test_the_answers_are_those_models_know() -> None:
    async def body(model: Model) -> None:
        assert (await model.call("TaskList")).text == "No tasks found"
        assert (await model.call("TaskCreate", subject="A", description="d")).text == "Task #1 created successfully: A"
        await model.call("TaskCreate", subject="B", blockedBy=["1"])
        await model.call("TaskCreate", subject="C")
        await model.call("TaskUpdate", taskId="1", addBlockedBy=["3"])

        listing = (await model.call("TaskList")).text
        assert listing == "#1 [pending] A [blocked by #3]\n#2 [pending] B [blocked by #1]\n#3 [pending] C"
        details = (await model.call("TaskGet", taskId="1")).text
        assert details == "Task #1: A\nStatus: pending\nDescription: d\nBlocked by: #3\nBlocks: #2"
        assert (await model.refused("TaskGet", taskId="9")).text == "Task not found"
        assert (await model.refused("TaskUpdate", taskId="9", subject="x")).text == "Task not found"
        started = await model.call("TaskUpdate", taskId="3", status="in_progress", owner="alice")
        assert started.text == "Updated task #3 owner, status"
        assert (await model.call("TaskList", status="in_progress")).text == "#3 [in_progress] C (alice)"
        assert (await model.call("TaskUpdate", taskId="2", status="deleted")).text == "Updated task #2 deleted"

    talk(body)


@pytest.mark.req("T-01", "L-21")
def test_every_field_of_a_task_can_be_given() -> None:
    given = {
        "subject": "Port the importer",
        "description": "All of it",
        "activeForm": "Porting the importer",
        "owner": "bob",
        "metadata": {"ticket": 7},
        "priority": 2,
        "labels": ["backend"],
        "due": "2031-01-31",
        "external": {"system": "jira", "id": "X-1"},
        "requires": ["gpu"],
        "paths": ["src/importer"],
        "acceptance": {"command": "true", "timeout": 5},
    }

    async def body(model: Model) -> None:
        task = (await model.call("TaskCreate", **given)).data["task"]
        assert (task["active_form"], task["owner"]) == ("Porting the importer", "bob")
        kept = task["metadata"]["taskyard"]
        assert (kept["priority"], kept["labels"], kept["external"]["id"]) == (2, ["backend"], "X-1")
        changed = await model.call("TaskUpdate", taskId="1", priority=1, clear=["due"], metadata={"ticket": None})
        assert changed.text == "Updated task #1 metadata"
        after = changed.data["task"]["metadata"]
        assert ("ticket" in after, after["taskyard"]["priority"], "due" in after["taskyard"]) == (False, 1, False)

    talk(body)


@pytest.mark.req("T-01", "L-06", "L-07")
def test_what_is_refused_changes_nothing_and_says_what_to_do() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        await model.call("TaskCreate", subject="B", blockedBy=["1"])
        before = (await model.call("TaskList")).data

        assert (await model.refused("TaskUpdate", taskId="2", status="completed")).code == "blocked"
        assert (await model.refused("TaskUpdate", taskId="1", addBlockedBy=["2"])).code == "cycle"
        assert (await model.refused("TaskUpdate", taskId="1", addBlocks=["77"])).code == "not_found"
        assert (await model.refused("TaskUpdate", taskId="2", status="deleted", subject="x")).code == "bad_value"
        assert (await model.refused("TaskCreate", subject="C", blockedBy=["99"])).code == "not_found"
        assert (await model.refused("TaskUpdate", taskId="../1", subject="x")).code == "bad_id"

        assert (await model.call("TaskList")).data == before

    talk(body)


@pytest.mark.req("T-01", "L-05")
def test_a_change_of_which_one_part_is_refused_leaves_no_part_of_it() -> None:
    async def body(model: Model) -> None:
        for subject in "ABC":
            await model.call("TaskCreate", subject=subject)
        await model.call("TaskUpdate", taskId="2", addBlockedBy=["1"])
        before = (await model.call("TaskList")).data

        refused = await model.refused(
            "TaskUpdate", taskId="2", removeBlockedBy=["1"], addBlockedBy=["3"], subject="x", status="completed"
        )

        assert refused.code == "blocked"
        assert (await model.call("TaskList")).data == before

    talk(body)


@pytest.mark.req("T-01")
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("TaskCreate", {}, "TaskCreate needs 'subject'."),
        ("TaskCreate", {"subject": "A", "colour": "red"}, "TaskCreate has no field 'colour'"),
        ("TaskCreate", {"subject": 7}, "'subject' does not fit"),
        ("TaskList", {"status": "open"}, "'status' does not fit"),
        ("TaskUpdate", {"taskId": "1", "addBlocks": "all"}, "'addBlocks' does not fit"),
        ("TaskOutput", {"task_id": "b12345678", "timeout": 600_001}, "'timeout' does not fit"),
        ("TaskOutput", {"task_id": "b12345678", "timeout": -1}, "'timeout' does not fit"),
        ("TaskStop", {"shell_id": "b12345678"}, "TaskStop needs 'task_id'."),
        ("Bash", {"command": "true", "timeout": 0}, "'timeout' does not fit"),
    ],
)
def test_arguments_that_do_not_fit_are_named(tool: str, arguments: dict[str, object], said: str) -> None:
    async def body(model: Model) -> None:
        refused = await model.refused(tool, **arguments)
        assert said in refused.text
        assert refused.text.endswith("Nothing was changed.")
        assert refused.code == "bad_arguments"
        assert (await model.call("TaskList")).text == "No tasks found"

    talk(body)


@pytest.mark.req("T-01", "T-05")
def test_every_schema_is_strict_and_every_field_described() -> None:
    async def body(model: Model) -> None:
        for tool in (await model.client.list_tools()).tools:
            assert tool.description
            assert tool.annotations is not None
            assert tool.input_schema["additionalProperties"] is False
            for name, field in tool.input_schema.get("properties", {}).items():
                described = field.get("description") or any("description" in one for one in field.get("anyOf", []))
                assert described, f"{tool.name}.{name}"
            assert tool.output_schema is not None

    talk(body)


@pytest.mark.req("L-08", "L-15")
def test_a_claim_takes_the_next_free_task_and_puts_it_in_progress() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A", priority=9)
        await model.call("TaskCreate", subject="B")
        await model.call("TaskCreate", subject="C", requires=["gpu"], priority=1)

        first = await model.call("TaskClaim")
        assert first.text.startswith("Claimed task #2 for ada.\nTask #2: B\nStatus: in_progress")
        assert (await model.refused("TaskClaim", taskId="1", checkBusy=True)).code == "agent_busy"
        assert (await model.refused("TaskClaim", checkBusy=True)).code == "agent_busy"
        for chosen in ({"labels": ["x"]}, {"capabilities": ["gpu"]}):
            assert "not both" in (await model.refused("TaskClaim", taskId="1", **chosen)).text
        assert (await model.call("TaskClaim", capabilities=["gpu"])).data["task"]["id"] == "3"
        kept = await model.call("TaskClaim", taskId="1", start=False)
        assert (kept.data["task"]["owner"], kept.data["task"]["status"]) == ("ada", "pending")
        nothing = await model.refused("TaskClaim")
        assert (nothing.code, nothing.data["error"]["taken"]) == ("nothing_free", 3)

    talk(body, agent="ada")


@pytest.mark.req("L-08")
def test_somebody_else_s_task_is_refused_by_name() -> None:
    with taskyard.open(list="demo", agent="bob") as yard:
        yard.tasks.create("A")
        yard.tasks.claim("1")

        async def body(model: Model) -> None:
            refused = await model.refused("TaskClaim", taskId="1")
            assert refused.code == "already_claimed"
            assert "bob" in refused.text
            assert (await model.refused("TaskUpdate", taskId="1", status="completed")).is_error
            for change in ({"owner": "ada"}, {"owner": "zoe"}, {"owner": ""}, {"status": "deleted"}):
                assert (await model.refused("TaskUpdate", taskId="1", **change)).code == "already_claimed"
            assert yard.tasks.get("1").owner == "bob"

        talk(body, agent="ada")


@pytest.mark.req("L-07", "L-17")
def test_a_completion_says_who_is_ready_now_and_that_a_verifier_should_look() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        await model.call("TaskCreate", subject="B", blockedBy=["1"])
        await model.call("TaskCreate", subject="C", blockedBy=["1", "2"])
        done = await model.call("TaskUpdate", taskId="1", status="completed")
        assert done.texts[1:] == ["Ready now: #2."]
        assert done.data["ready"] == ["2"]
        await model.call("TaskUpdate", taskId="2", status="completed")
        last = await model.call("TaskUpdate", taskId="3", status="completed")
        assert any("verif" in text for text in last.texts[1:])

    talk(body)


@pytest.mark.req("T-01")
def test_a_completed_task_is_shown_as_waiting_for_nothing() -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        await model.call("TaskUpdate", taskId="1", status="completed")
        await model.call("TaskCreate", subject="B")
        await model.call("TaskUpdate", taskId="1", addBlockedBy=["2"])
        listing = await model.call("TaskList")
        assert listing.text == "#1 [completed] A\n#2 [pending] B"
        assert "blocked_by" not in listing.data["tasks"][0]
        assert "Blocked by" not in (await model.call("TaskGet", taskId="1")).text

    talk(body)


@pytest.mark.req("T-01", "T-05")
@pytest.mark.parametrize(
    ("tool", "fields", "wrong"),
    [
        ("TaskGet", {"task_id": "1"}, "task_id"),
        ("TaskCreate", {"subject": "B", "active_form": "Doing B"}, "active_form"),
        ("TaskUpdate", {"taskId": "1", "add_blocks": ["1"]}, "add_blocks"),
        ("TaskClaim", {"check_busy": True}, "check_busy"),
    ],
)
def test_a_field_has_the_name_of_its_schema_and_no_other(tool: str, fields: dict[str, Any], wrong: str) -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        (schema,) = [found.input_schema for found in (await model.client.list_tools()).tools if found.name == tool]
        assert wrong not in schema["properties"]
        refused = await model.refused(tool, **fields)
        assert (refused.code, f"has no field '{wrong}'" in refused.text) == ("bad_arguments", True)
        assert (await model.call("TaskList")).text == "#1 [pending] A"

    talk(body)


@pytest.mark.req("T-01", "T-05")
def test_a_list_of_a_thousand_comes_in_pages_a_model_can_read() -> None:
    with taskyard.open(list="demo") as yard:
        for number in range(1000):
            yard.tasks.create(f"Migrate module number {number} to the new interface", description="x" * 500)
        yard.tasks.complete("3")
        yard.tasks.complete("990")

    async def body(model: Model) -> None:
        seen: list[str] = []
        after: dict[str, str] = {}
        for _ in range(60):
            page = await model.call("TaskList", **after)
            assert len("\n".join(page.texts)) < 12_000  # 4,000 tokens of three characters
            assert len(json.dumps(page.data)) < 12_000
            assert page.data["total"] - page.data["left_out"] == len(page.data["tasks"])
            seen += [task["id"] for task in page.data["tasks"]]
            if page.data["after"] is None:
                break
            assert f'"after": "{page.data["after"]}"' in page.texts[1]
            after = {"after": page.data["after"]}
        assert seen == [*(str(number) for number in range(1, 1001) if number not in (3, 990)), "3", "990"]
        assert (await model.call("TaskList", status="completed")).data["tasks"][0]["id"] == "3"

    talk(body)


@pytest.mark.req("T-01", "T-05")
@pytest.mark.parametrize(
    "asked", [{"status": "completed"}, {"owner": "bob"}, {"owner": "bob", "status": "pending"}, {}]
)
def test_whoever_follows_what_a_page_says_sees_everything_that_was_asked_for_once(asked: dict[str, str]) -> None:
    with taskyard.open(list="demo") as yard:
        for number in range(1, 601):
            yard.tasks.create(f"Migrate module {number} to the new interface", owner="bob" if number % 2 else None)
        for number in range(1, 601, 3):
            yard.tasks.complete(str(number), force=True)
        every = [task.id for task in yard.tasks.list() if all(getattr(task, key) == asked[key] for key in asked)]

    async def body(model: Model) -> None:
        seen: list[str] = []
        page = await model.call("TaskList", **asked)
        seen += [task["id"] for task in page.data["tasks"]]
        while page.data["after"] is not None:
            tool, _, fields = page.texts[1].partition(": ")[2].partition(" ")
            assert tool == "TaskList"
            assert json.loads(fields) == {**asked, "after": page.data["after"]}
            page = await model.call(tool, **json.loads(fields))
            seen += [task["id"] for task in page.data["tasks"]]
        assert page.data["left_out"] == 0
        assert sorted(seen, key=int) == every

    talk(body)


@pytest.mark.req("T-05")
def test_a_page_turns_also_if_its_last_task_was_completed_or_deleted_meanwhile() -> None:
    with taskyard.open(list="demo") as yard:
        for number in range(300):
            yard.tasks.create(f"Migrate module number {number} to the new interface")

        async def body(model: Model) -> None:
            first = (await model.call("TaskList")).data
            yard.tasks.complete(first["after"])
            second = (await model.call("TaskList", after=first["after"])).data
            assert int(second["tasks"][0]["id"]) == int(first["after"]) + 1
            yard.tasks.delete(second["after"])
            third = (await model.call("TaskList", after=second["after"])).data
            assert int(third["tasks"][0]["id"]) == int(second["after"]) + 1

        talk(body)


@pytest.mark.req("T-05")
@pytest.mark.parametrize("after", ["page 2", "-1", "0", "completed:", "completed:x", "pending:3", "٣"])
def test_a_page_behind_nothing_that_can_be_is_refused(after: str) -> None:
    async def body(model: Model) -> None:
        await model.call("TaskCreate", subject="A")
        refused = await model.refused("TaskList", after=after)
        assert refused.code == "bad_value"
        assert "the page before" in refused.text

    talk(body)


@pytest.mark.req("L-17")
def test_a_client_with_a_name_is_a_main_agent_unless_it_is_a_member_of_the_team() -> None:
    async def finish(model: Model) -> bool:
        for subject in ("A", "B", "C"):
            said = await model.call("TaskCreate", subject=subject)
            await model.call("TaskUpdate", taskId=said.data["task"]["id"], status="in_progress")
            last = await model.call("TaskUpdate", taskId=said.data["task"]["id"], status="completed")
        return any("verif" in text for text in last.texts[1:])

    async def main(model: Model) -> None:
        assert await finish(model)

    async def member(model: Model) -> None:
        assert not await finish(model)

    talk(main, agent="ada")
    with taskyard.open(list="demo") as yard:
        yard.teams.create("demo", lead="ada")
        yard.teams.join("demo", "bob")
    talk(member, agent="bob")
    talk(main, agent="ada")
