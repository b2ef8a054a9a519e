"""Handlers that change something; available only with `taskyard web --allow-actions`.

They do what the command line does, by the same code, in the name of the user who started the server. A command
cannot be started from here. Stopping a job waits for proof of its end; the time between TERM and KILL is the job's
own setting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from taskyard.errors import Conflict, JobNotBegun
from taskyard.jobs.model import Job, JobStatus, job_json
from taskyard.tasks.model import Task
from taskyard.tasks.text import task_json
from taskyard.ui.web.site import Site
from taskyard.ui.web.values import Params, data_response
from taskyard.yard import Yard

Handler = Callable[[Site, Params, Request], Awaitable[Response]]

#: A change of one task: the yard, the task's id, the agent's name.
TaskVerb = Callable[[Yard, str, str], Task]


async def create(site: Site, given: Params, request: Request) -> Response:
    """Create a task on a list."""

    def act(yard: Yard) -> Task:
        return yard.tasks.create(
            given.text("subject"),
            description=given.word("description"),
            blocked_by=given.ids("blocked_by"),
            agent=given.word("by") or site.person,
        )

    return await _act_on_list(site, given, act, status=201)


def task_handler(verb: TaskVerb) -> Handler:
    """Return a handler that applies `verb` to one task, in the name of an agent."""

    async def handler(site: Site, given: Params, request: Request) -> Response:
        who = given.word("by") or site.person
        return await _act_on_list(site, given, lambda yard: verb(yard, given.text("id"), who))

    return handler


def _claim(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.claim(task_id, agent=who)


def _start(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.start(task_id, agent=who)


def _done(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.complete(task_id, agent=who)


def _release(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.release(task_id, agent=who)


claim, start, done, release = task_handler(_claim), task_handler(_start), task_handler(_done), task_handler(_release)


async def block(site: Site, given: Params, request: Request) -> Response:
    """Make a task wait for another."""

    def act(yard: Yard) -> Task:
        return yard.tasks.block(given.text("id"), by=given.text("by_task"), agent=given.word("by") or site.person)

    return await _act_on_list(site, given, act)


async def _act_on_list(site: Site, given: Params, act: Callable[[Yard], Task], *, status: int = 200) -> Response:
    async with site.lists.shown(given.word("list")) as shown:
        task = await site.threads.act(shown.view.yard, act)
        shown.view.look()
    return data_response(task_json(task), status)


async def mail(site: Site, given: Params, request: Request) -> Response:
    """Send a message to an agent."""
    sender = site.person

    def act(yard: Yard) -> dict[str, object]:
        receipt = yard.mail.send(sender, given.text("to"), given.text("text"))
        return {"id": receipt.id, "state": receipt.state, "from": sender, "to": given.text("to")}

    async with site.lists.shown(given.word("list")) as shown:
        return data_response(await site.threads.act(shown.view.yard, act), 201)


def job_handler(verb: Callable[[Yard, Params], dict[str, object]]) -> Handler:
    """Return a handler that applies `verb` to one job."""

    async def handler(site: Site, given: Params, request: Request) -> Response:
        answer = await site.threads.act(site.yard, lambda yard: verb(yard, given))
        return data_response(answer)

    return handler


def _stop(yard: Yard, given: Params) -> dict[str, object]:
    stopped = yard.jobs.stop(given.text("id"))[0]
    return {**job_json(stopped.job), "outcome": stopped.outcome}


def _pause(yard: Yard, given: Params) -> dict[str, object]:
    changed = yard.jobs.pause(given.text("id"))
    job = yard.jobs.get(given.text("id"))
    if not changed and not job.is_paused:
        raise _conflict(job, "paused")
    return {**job_json(job), "changed": changed}


def _resume(yard: Yard, given: Params) -> dict[str, object]:
    changed = yard.jobs.resume(given.text("id"))
    job = yard.jobs.get(given.text("id"))
    if not changed and job.status is JobStatus.PENDING:
        raise _conflict(job, "resumed")
    return {**job_json(job), "changed": changed}


def _dismiss(yard: Yard, given: Params) -> dict[str, object]:
    (job,) = yard.jobs.dismiss(given.text("id"))
    return job_json(job)


def _conflict(job: Job, what: str) -> Conflict:
    if job.status is JobStatus.PENDING:
        return JobNotBegun(job.id, job.waits_for)
    return Conflict(f"Job {job.id} is about to end and cannot be {what}.")


def _background(yard: Yard, given: Params) -> dict[str, object]:
    changed = yard.jobs.to_background(given.text("id"))
    return {**job_json(yard.jobs.get(given.text("id"))), "changed": changed}


def _answer(yard: Yard, given: Params) -> dict[str, object]:
    text = given.text("text")
    line = text if text.endswith("\n") or not text else f"{text}\n"
    return job_json(yard.jobs.answer(given.text("id"), line, close=bool(given.get("close"))))


stop, pause, resume = job_handler(_stop), job_handler(_pause), job_handler(_resume)
background, answer, dismiss = job_handler(_background), job_handler(_answer), job_handler(_dismiss)
