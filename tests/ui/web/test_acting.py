"""What can be done from the page."""

from __future__ import annotations

from pathlib import Path

import anyio.to_thread
import pytest

from support.wait import until
from support.web import Web, with_web
from taskyard.config import tasks_dir
from taskyard.jobs.kinds.shell import Shell


@pytest.mark.req("U-04")
def test_a_task_goes_its_way_in_the_persons_name_and_the_log_says_through_which_door() -> None:
    async def body(web: Web) -> None:
        made = await web.post("/api/tasks", {"list": "plan", "subject": "First", "description": "At length"})
        assert (made.status, made.data["id"]) == (201, "1")
        await web.post("/api/tasks", {"subject": "Second", "blocked_by": ["1"]})
        await web.post("/api/tasks", {"subject": "Third"})
        assert (await web.post("/api/tasks/3/block", {"by_task": "1"})).data["blocked_by"] == ["1"]
        assert (await web.post("/api/tasks/1/claim", {})).data["owner"] == "me"
        assert (await web.post("/api/tasks/1/release", {})).data["owner"] is None
        assert (await web.post("/api/tasks/1/start", {"by": "ada"})).data["status"] == "in_progress"
        done = await web.post("/api/tasks/1/done", {"by": "ada"})
        assert (done.data["status"], done.data["ready"]) == ("completed", ["2", "3"])
        log = web.yard.tasks.log()
        assert {change.act.via for change in log} == {"web"}
        assert {change.act.by for change in log} == {"me", "ada"}

    with_web(body, allow_actions=True)


@pytest.mark.req("U-04")
def test_refusals_are_those_of_the_command_line_with_the_status_that_fits() -> None:
    async def body(web: Web) -> None:
        web.yard.tasks.create("First")
        web.yard.tasks.create("Second", blocked_by=["1"])
        web.yard.tasks.claim("1", agent="eve")
        for path, sent, status, code in (
            ("/api/tasks/2/claim", {}, 409, "blocked"),
            ("/api/tasks/1/claim", {"by": "ada"}, 409, "already_claimed"),
            ("/api/tasks/9/claim", {}, 404, "not_found"),
            ("/api/tasks/x/claim", {}, 400, "bad_id"),
            ("/api/tasks/1/block", {"by_task": "2"}, 409, "cycle"),
            ("/api/tasks", {"subject": ""}, 400, "bad_text"),
            ("/api/tasks", {"subject": "x", "list": "plam"}, 404, "not_found"),
            ("/api/jobs/b00000000/stop", {}, 404, "job_not_found"),
            ("/api/jobs/nonsense!/stop", {}, 400, "bad_job_id"),
            ("/api/mail", {"to": "ada", "text": ""}, 400, "bad_text"),
        ):
            got = await web.post(path, sent)
            assert (got.status, got.error["code"]) == (status, code), path

    with_web(body, allow_actions=True)


def test_a_task_that_is_locked_says_when_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKYARD_LOCK_TIMEOUT", "0.1")

    async def body(web: Web) -> None:
        web.yard.tasks.create("First")
        (Path(tasks_dir()) / "plan" / "1.json.lock").mkdir()  # as other programs lock a task
        got = await web.post("/api/tasks/1/claim", {})
        assert (got.status, got.error["code"]) == (503, "busy")
        assert int(got.headers["retry-after"]) > 0

    with_web(body, allow_actions=True)


@pytest.mark.req("U-04")
def test_a_job_is_answered_paused_resumed_sent_to_the_background_and_stopped(tmp_path: Path) -> None:
    said = tmp_path / "said"

    async def body(web: Web) -> None:
        jobs = web.yard.jobs
        spec = Shell(f"read line; echo $line > {said}; sleep 60", stdin=True)
        job = await anyio.to_thread.run_sync(lambda: jobs.start(spec, backgrounded=False))
        path = f"/api/jobs/{job.id}"
        assert (await web.post(f"{path}/answer", {"text": "yes, please", "close": True})).status == 200
        await anyio.to_thread.run_sync(lambda: until(lambda: said.exists() and said.read_text() == "yes, please\n"))
        assert (await web.post(f"{path}/answer", {"text": "again"})).status == 409
        assert (await web.post(f"{path}/background", {})).data["backgrounded"] is True
        paused = (await web.post(f"{path}/pause", {})).data
        assert (paused["paused"], paused["changed"]) == (True, True)
        assert (await web.post(f"{path}/resume", {})).data["changed"] is True
        stopped = (await web.post(f"{path}/stop", {})).data
        assert (stopped["outcome"], stopped["status"]) == ("stopped", "killed")
        assert (await web.post(f"{path}/pause", {})).error["code"] == "job_ended"

    with_web(body, allow_actions=True)


def test_mail_goes_out_in_the_persons_name() -> None:
    async def body(web: Web) -> None:
        web.yard.mail.open_box("ada")
        got = await web.post("/api/mail", {"list": "plan", "to": "ada", "text": "Hello"})
        assert (got.status, got.data["from"]) == (201, "eve")
        assert [message.text for message in web.yard.mail.take("ada")] == ["Hello"]

    with_web(body, agent="eve", allow_actions=True)


def test_no_address_starts_a_command() -> None:
    from taskyard.ui.web.routes import ROUTES

    acts = {route.path.rsplit("/", 1)[-1] for route in ROUTES if route.is_action}
    assert acts == {
        "tasks", "claim", "start", "done", "release", "block", "mail",
        "stop", "pause", "resume", "background", "answer", "dismiss",
    }  # fmt: skip
    for route in ROUTES:
        assert not {value.name for value in route.body} & {"command", "argv", "cwd", "env"}
