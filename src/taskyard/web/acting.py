"""
What can be done from the page, where its server was started with `--allow-actions`: what the command line does, by the
same ways, in the name of the person who started it. A command can not be started from here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from taskyard.app import Yard
from taskyard.errors import Conflict, JobNotBegun
from taskyard.runtime.model import Job, JobStatus
from taskyard.tasklist.model import Task
from taskyard.view.job_records import job_json
from taskyard.view.records import task_json
from taskyard.web.answers import data
from taskyard.web.site import Site
from taskyard.web.values import Given

Handler = Callable[[Site, Given, Request], Awaitable[Response]]

#: Seconds between TERM and KILL are a job's own; the page waits for the proof.
TaskVerb = Callable[[Yard, str, str], Task]


async def create(site: Site, given: Given, request: Request) -> Response:
    """Put a task on a list."""

    def act(yard: Yard) -> Task:
        return yard.tasks.create(
            given.text("subject"),
            description=given.word("description"),
            blocked_by=given.ids("blocked_by"),
            agent=given.word("by") or site.person,
        )

    return await _on_list(site, given, act, status=201)


def on_task(verb: TaskVerb) -> Handler:
    """A verb for one task, by its id, in somebody's name."""

    async def handler(site: Site, given: Given, request: Request) -> Response:
        who = given.word("by") or site.person
        return await _on_list(site, given, lambda yard: verb(yard, given.text("id"), who))

    return handler


def _claim(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.claim(task_id, agent=who)


def _start(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.start(task_id, agent=who)


def _done(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.complete(task_id, agent=who)


def _release(yard: Yard, task_id: str, who: str) -> Task:
    return yard.tasks.release(task_id, agent=who)


claim, start, done, release = on_task(_claim), on_task(_start), on_task(_done), on_task(_release)


async def block(site: Site, given: Given, request: Request) -> Response:
    """Have a task wait for another."""

    def act(yard: Yard) -> Task:
        return yard.tasks.block(given.text("id"), by=given.text("by_task"), agent=given.word("by") or site.person)

    return await _on_list(site, given, act)


async def _on_list(site: Site, given: Given, act: Callable[[Yard], Task], *, status: int = 200) -> Response:
    async with site.lists.shown(given.word("list")) as shown:
        task = await site.threads.act(shown.view.yard, act)
        shown.view.look()
    return data(task_json(task), status)


async def mail(site: Site, given: Given, request: Request) -> Response:
    """Send a message to an agent."""
    sender = site.person

    def act(yard: Yard) -> dict[str, object]:
        receipt = yard.mail.send(sender, given.text("to"), given.text("text"))
        return {"id": receipt.id, "state": receipt.state, "from": sender, "to": given.text("to")}

    async with site.lists.shown(given.word("list")) as shown:
        return data(await site.threads.act(shown.view.yard, act), 201)


def on_job(verb: Callable[[Yard, Given], dict[str, object]]) -> Handler:
    """A verb for one job."""

    async def handler(site: Site, given: Given, request: Request) -> Response:
        answer = await site.threads.act(site.yard, lambda yard: verb(yard, given))
        return data(answer)

    return handler


def _stop(yard: Yard, given: Given) -> dict[str, object]:
    stopped = yard.jobs.stop(given.text("id"))[0]
    return {**job_json(stopped.job), "outcome": stopped.outcome}


def _pause(yard: Yard, given: Given) -> dict[str, object]:
    changed = yard.jobs.pause(given.text("id"))
    job = yard.jobs.get(given.text("id"))
    if not changed and not job.is_paused:
        raise _cannot(job, "paused")
    return {**job_json(job), "changed": changed}


def _resume(yard: Yard, given: Given) -> dict[str, object]:
    changed = yard.jobs.resume(given.text("id"))
    job = yard.jobs.get(given.text("id"))
    if not changed and job.status is JobStatus.PENDING:
        raise _cannot(job, "resumed")
    return {**job_json(job), "changed": changed}


def _dismiss(yard: Yard, given: Given) -> dict[str, object]:
    (job,) = yard.jobs.dismiss(given.text("id"))
    return job_json(job)


def _cannot(job: Job, what: str) -> Conflict:
    if job.status is JobStatus.PENDING:
        return JobNotBegun(job.id, job.waits_for)
    return Conflict(f"Job {job.id} is about to end and cannot be {what}.")


def _background(yard: Yard, given: Given) -> dict[str, object]:
    changed = yard.jobs.to_background(given.text("id"))
    return {**job_json(yard.jobs.get(given.text("id"))), "changed": changed}


def _answer(yard: Yard, given: Given) -> dict[str, object]:
    text = given.text("text")
    line = text if text.endswith("\n") or not text else f"{text}\n"
    return job_json(yard.jobs.answer(given.text("id"), line, close=bool(given.get("close"))))


stop, pause, resume = on_job(_stop), on_job(_pause), on_job(_resume)
background, answer, dismiss = on_job(_background), on_job(_answer), on_job(_dismiss)
