"""`taskyard demo`: watch agents work through a plan, one of them killed on the way."""

from __future__ import annotations

import sys
from contextlib import contextmanager

from taskyard.cli.command import Command
from taskyard.cli.output import answer, columns, is_terminal, print_line, style
from taskyard.view.job_records import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import NoReturn

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.demo.director import Outcome
    from taskyard.demo.stage import Stage


def _arguments(parser: Parser) -> None:
    parser.add("--speed", type=_speed, default=1.0, metavar="X", help="So many times as fast: 0.5 to 20.")


def _speed(text: str) -> float:
    from taskyard.errors import BadValue

    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0.5 <= found <= 20:
        raise BadValue("--speed", text, "a number from 0.5 to 20")
    return found


def _run(args: Args) -> int:
    from taskyard.demo.director import perform
    from taskyard.demo.scratch import scratch

    stage = _stage(args)
    with _ended_by_signals(), scratch() as folder:
        outcome = perform(folder, stage, speed=args.speed)
    if not args.as_json and not args.quiet:
        stage.end(outcome.tasks)
    answer(args, lambda: _json(outcome), lambda: _summary(outcome), ids=(task.id for task in outcome.tasks))
    return 1 if outcome.faults else 0


def _stage(args: Args) -> Stage:
    from taskyard.demo.plan import PLAN
    from taskyard.demo.stage import Screen, Stage, fits

    look = style(args)
    if args.as_json or args.quiet:
        return Stage(lambda _: None, look)
    print_line(f"A plan of {len(PLAN)} tasks on one list. Four worker processes have them done by background jobs.")
    print_line("One job will fail, and one worker will be killed.")
    if is_terminal(sys.stdout) and look.colour and fits(len(PLAN) + 11):
        return Screen(look, columns())
    return Stage(print_line, look)


@contextmanager
def _ended_by_signals() -> Generator[None]:
    """Let a polite end, or a closed terminal, clean up as Ctrl+C does."""
    import signal

    def end(number: int, _: object) -> NoReturn:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _summary(outcome: Outcome) -> Iterator[str]:
    yield ""
    names = sorted(set(outcome.done_by.values()))
    shares = ", ".join(f"{name} {sum(who == name for who in outcome.done_by.values())}" for name in names)
    done = sum(task.is_done for task in outcome.tasks)
    yield f"{done} of {len(outcome.tasks)} tasks done in {outcome.seconds:.1f} s: {shares}."
    if outcome.killed is not None and outcome.rescued is not None:
        yield (
            f"{outcome.killed} was killed with #{outcome.rescued} in hand; it came back to the pool, "
            f"and {outcome.done_by.get(outcome.rescued, 'nobody')} did it."
        )
    yield _jobs_line(outcome)
    for notice in outcome.unread:
        meant = notice.orphaned_from or notice.recipient
        yield f"Waits for you, since {meant} is gone: {notice.summary}. (as `taskyard notices` shows)"
    if outcome.faults:
        yield from (f"Fault: {fault}." for fault in outcome.faults)
    else:
        yield "By the event log: each was completed exactly once, and none was started before what it waited for."


def _jobs_line(outcome: Outcome) -> str:
    counts = _counts(outcome)
    return (
        f"{len(outcome.jobs)} background jobs: {counts['completed']} completed, {counts['failed']} failed and was "
        f"tried again, {counts['killed']} ended with its worker. Each end was told once."
    )


def _counts(outcome: Outcome) -> dict[str, int]:
    ends = [job.status.value for job in outcome.jobs]
    return {status: ends.count(status) for status in ("completed", "failed", "killed")}


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
        "jobs": [job_json(job) for job in outcome.jobs],
        "seconds": round(outcome.seconds, 2),
        "killed": outcome.killed,
        "rescued": outcome.rescued,
        "faults": list(outcome.faults),
    }


DEMO = Command(
    _run,
    _arguments,
    "Twelve tasks of a release, with dependencies, drained by four worker processes that know nothing of each\n"
    "other but the list, and do the work by background jobs. One job fails: its worker is told, and tries again.\n"
    "One hangs, and its worker is killed (kill -9): the job ends with it, the task comes back by itself and is done\n"
    "by another. Everything happens in a temporary folder, which is removed afterwards.",
    examples=("taskyard demo", "taskyard demo --speed 4 --json"),
    exits=("0  done: every task once, and in order", "1  it went otherwise"),
)
