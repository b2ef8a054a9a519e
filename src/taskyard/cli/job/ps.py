"""`taskyard ps`: the jobs of this user, those inside others below them; `taskyard release`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.job.shared import jobs_of
from taskyard.cli.output import answer, columns
from taskyard.clock import now_ms
from taskyard.runtime.records import job_to_json
from taskyard.view.text import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.model import Job


def _arguments(parser: Parser) -> None:
    parser.add("-a", "--all", action="store_true", help="Also those that are over.")


def _run(args: Args) -> int:
    jobs = jobs_of(args).list(ended=args.all)
    return answer(args, lambda: [job_to_json(job) for job in jobs], lambda: _lines(jobs), ids=(job.id for job in jobs))


def _lines(jobs: list[Job]) -> Iterator[str]:
    if not jobs:
        yield "No job is running. Start one: taskyard run -d -- COMMAND"
        return
    now, room = now_ms(), columns()
    for depth, job in tree(jobs):
        age = duration(((job.end_time or now) - job.start_time) / 1000)
        line = f"{job.id}  {_state(job):11} {age:>7}  {'  ' * depth}{safe(job.description)}"
        yield line[:room]


def tree(jobs: Iterable[Job]) -> Iterator[tuple[int, Job]]:
    """Jobs in their order, each followed by those that were started inside it, with how deep they are."""
    jobs = list(jobs)
    known = {job.id for job in jobs}
    inside: dict[str | None, list[Job]] = {}
    for job in jobs:
        inside.setdefault(job.parent if job.parent in known else None, []).append(job)
    waiting = [(0, job) for job in reversed(inside.get(None, []))]
    while waiting:
        depth, job = waiting.pop()
        yield depth, job
        waiting += [(depth + 1, child) for child in reversed(inside.get(job.id, []))]


def _state(job: Job) -> str:
    if job.is_paused:
        return "paused"
    if job.needs_input:
        return "needs input"
    return job.status.value


def _release(args: Args) -> int:
    from taskyard.runtime import holding

    jobs = jobs_of(args)
    was = holding.release(jobs.home)
    return answer(args, lambda: {"released": was}, lambda: ["Notices flow again." if was else "Nothing was held back."])


PS = Command(_run, _arguments, "The jobs of this user, whoever started them.", examples=("taskyard ps --all --json",))
RELEASE = Command(
    _release,
    None,
    "Let notices reach agents again, after `taskyard stop --all --hold`.",
    examples=("taskyard release",),
)
