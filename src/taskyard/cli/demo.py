"""`taskyard demo`: watch a team work through a plan, one of them killed on the way."""

from __future__ import annotations

import sys
import time
from collections import Counter

from taskyard.cli.command import Command
from taskyard.cli.output import answer, columns, print_line, style
from taskyard.view.job_records import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.demo.director import Outcome


def _run(args: Args) -> int:
    from taskyard.cli.team.signals import ended_by_signals
    from taskyard.demo.director import perform
    from taskyard.demo.scratch import scratch

    tell = _teller(args)
    with ended_by_signals(), scratch() as folder:
        outcome = perform(folder, tell)
    answer(args, lambda: _json(outcome), lambda: _summary(args, outcome), ids=(task.id for task in outcome.tasks))
    return 1 if outcome.faults else 0


def _teller(args: Args) -> Callable[[str], None]:
    """Says what happens, as it happens, with the seconds since the beginning."""
    if args.as_json or args.quiet:
        return lambda _: None
    print_line("A plan of twelve tasks with dependencies. Three teammates write, check, build and tag a small program.")
    print_line("One check will fail, one job will ask something, and one teammate will be killed (kill -9).")
    print_line("")
    began = time.monotonic()

    def tell(text: str) -> None:
        print_line(f"{time.monotonic() - began:5.2f}  {text}")
        sys.stdout.flush()

    return tell


def _summary(args: Args, outcome: Outcome) -> Iterator[str]:
    from taskyard.clock import now_ms
    from taskyard.view.ordering import arranged
    from taskyard.view.text import task_rows

    yield ""
    rows = sorted(arranged(outcome.tasks, now=now_ms()), key=lambda row: int(row.task.id))
    yield from task_rows(rows, now=now_ms(), columns=columns(), style=style(args))
    yield ""
    names = sorted(set(outcome.done_by.values()))
    shares = ", ".join(f"{name} {sum(who == name for who in outcome.done_by.values())}" for name in names)
    done = sum(task.is_done for task in outcome.tasks)
    yield f"{done} of {len(outcome.tasks)} tasks done in {outcome.seconds:.1f} s: {shares}."
    refused = ", ".join(f"#{task}" for task in outcome.refused)
    yield f"Refused by its check, mended, then let through: {refused}."
    yield f"Jobs that asked something, and were answered: {outcome.answered}."
    yield _jobs_line(outcome)
    if outcome.faults:
        yield from (f"Fault: {fault}." for fault in outcome.faults)
    else:
        yield "By the log: each task was completed exactly once, and none was begun before what it waited for."


def _jobs_line(outcome: Outcome) -> str:
    ends = Counter(job.status.value for job in outcome.jobs)
    told = ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))
    return f"{len(outcome.jobs)} background jobs: {told}. Each end was told once, and nothing of them is left."


def _json(outcome: Outcome) -> dict[str, object]:
    return {
        "tasks": [
            {
                "id": task.id,
                "subject": task.subject,
                "status": task.status.value,
                "done_by": outcome.done_by.get(task.id),
            }
            for task in outcome.tasks
        ],
        "members": [job_json(job) for job in outcome.members],
        "jobs": [job_json(job) for job in outcome.jobs],
        "refused": list(outcome.refused),
        "answered": outcome.answered,
        "seconds": round(outcome.seconds, 2),
        "faults": list(outcome.faults),
    }


def _no_arguments(_: Parser) -> None:
    pass


DEMO = Command(
    _run,
    _no_arguments,
    "Twelve tasks of a release, with dependencies, worked through by a team of three in a git repository of its own:\n"
    "they write a small program, test it, build it and tag it. The agents are programs, so no key and no network is\n"
    "needed; the work is real. One check fails, and is seen to. One job asks something, and is answered. One of the\n"
    "three is killed (kill -9): its job ends with it, its task comes back by itself, another takes its place.\n"
    "Everything happens in a temporary folder, which is removed afterwards.",
    examples=("taskyard demo", "taskyard demo --json"),
    exits=("0  done: every task once, and in order", "1  it went otherwise"),
)
