"""`taskyard wait`, `pause`, `resume`, `send`: jobs that any process started, awaited and steered."""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, as_our_fault, exit_code, job_id, jobs_of, one_job, one_or_all
from taskyard.cli.output import answer, is_terminal, say, style
from taskyard.cli.values import seconds_or_none
from taskyard.errors import Conflict, JobNotBegun, UsageError
from taskyard.runtime.model import JobStatus
from taskyard.runtime.steering import check_text
from taskyard.view.job_records import job_json
from taskyard.view.job_text import ended_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.model import Job
    from taskyard.runtime.task_output import TaskOutput
    from taskyard.view.glyphs import Style


def _wait_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="JOB", help="Jobs: an id, the beginning of one, a name, or `last`.")
    parser.add(
        "--timeout", type=seconds_or_none, metavar="TIME", help="At most this long: 90s, 10m; 0: only look. Then 124."
    )
    parser.add(
        "--output", action="store_true", help="With what it printed, as a model gets it; its notice counts as read."
    )


def _wait(args: Args) -> int:
    jobs = jobs_of(args)
    ids = [job_id(jobs, text) for text in args.ids]
    _warn_of_stopped(args, jobs.home, ids)
    found = jobs.wait_all(ids, timeout=args.timeout)
    printed = [jobs.output(job.id) for job in found] if args.output else []
    answer(
        args,
        lambda: one_or_all(_waited(found, printed), asked_for_one=len(ids) == 1),
        lambda: _wait_lines(found, printed, style(args)),
        ids=ids,
    )
    return exit_code(found)


def _warn_of_stopped(args: Args, home: str, ids: Sequence[str]) -> None:
    """Say which of the jobs cannot end by themselves, since their supervisors are stopped."""
    from taskyard.runtime.looking import stopped_supervisors

    for name, pid in stopped_supervisors(home):
        if name in ids:
            say(
                args,
                f"The supervisor of {name} (process {pid}) is stopped by a signal: its end is not noticed, and "
                "no limit is enforced. Resume it: taskyard doctor --fix",
            )


def _waited(found: Sequence[Job], printed: Sequence[TaskOutput]) -> list[dict[str, object]]:
    if not printed:
        return [job_json(job) for job in found]
    return [{**job_json(each.job), "text": each.output, "was_truncated": each.was_truncated} for each in printed]


def _wait_lines(found: Sequence[Job], printed: Sequence[TaskOutput], look: Style) -> Iterator[str]:
    for number, job in enumerate(found):
        yield ended_line(job, look)
        if printed and printed[number].output:
            yield printed[number].output.rstrip("\n")


def _pause(args: Args) -> int:
    jobs = jobs_of(args)
    found = job_id(jobs, args.id)
    changed = jobs.pause(found)
    job = jobs.get(found)
    if not changed and not job.is_paused:
        raise _cannot(job, "paused")
    return _steered(args, job, changed, "is paused, and its clock with it" if changed else "was paused already")


def _resume(args: Args) -> int:
    jobs = jobs_of(args)
    found = job_id(jobs, args.id)
    changed = jobs.resume(found)
    job = jobs.get(found)
    if not changed and job.status is JobStatus.PENDING:
        raise _cannot(job, "resumed")
    return _steered(args, job, changed, "goes on" if changed else "was not paused")


def _cannot(job: Job, what: str) -> Conflict:
    if job.status is JobStatus.PENDING:
        return JobNotBegun(job.id, job.waits_for)
    return Conflict(f"Job {job.id} is about to end and cannot be {what}. See `taskyard wait {job.id}`.")


def _steered(args: Args, job: Job, changed: bool, words: str) -> int:
    return answer(
        args,
        lambda: {**job_json(job), "changed": changed},
        lambda: [f"{job.id} {words}."],
        ids=[job.id],
    )


def _send_arguments(parser: Parser) -> None:
    one_job(parser)
    parser.add("text", nargs="?", metavar="TEXT", help="A line. Everything on standard input if not given.")
    parser.add("-n", "--no-newline", action="store_true", help="Exactly this text, without a newline behind it.")
    parser.add("--eof", action="store_true", help="Then let it read to the end; alone, only that.")


def _send(args: Args) -> int:
    text = _typed(args)
    check_text(text)
    jobs = jobs_of(args)
    job = jobs.answer(job_id(jobs, args.id), text, close=args.eof)
    count = len(text.encode("utf-8", "surrogateescape"))
    return answer(
        args,
        lambda: {**job_json(job), "sent": count, "eof": args.eof},
        lambda: [f"{job.id} got {count:,} {'byte' if count == 1 else 'bytes'}{' and the end' if args.eof else ''}."],
        ids=[job.id],
    )


def _typed(args: Args) -> str:
    """What is to be sent: an argument is a line, standard input is taken as it is."""
    if args.text is not None:
        return str(args.text) + ("" if args.no_newline else "\n")
    if is_terminal(sys.stdin):
        if args.eof:
            return ""
        raise UsageError("What shall be sent? Give TEXT, or pipe it in: printf 'y\\n' | taskyard send JOB")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


WAIT = Command(
    as_our_fault(_wait),
    _wait_arguments,
    "Wait until jobs are over, and end as they did. Interrupting it (Ctrl+C) leaves the jobs alone.",
    examples=("taskyard wait b3k9x0q2m", "taskyard wait b3k9x0q2m b7k2m3x0q --timeout 10m --json"),
    exits=EXITS,
)
PAUSE = Command(
    _pause,
    one_job,
    "Stop every process of a job where it is, and its clock: a time limit does not go on meanwhile.",
    examples=("taskyard pause b3k9x0q2m",),
    exits=("5  it is over, or has not begun",),
)
RESUME = Command(
    _resume,
    one_job,
    "Let a paused job go on.",
    examples=("taskyard resume b3k9x0q2m",),
    exits=("5  it is over, or has not begun",),
)
SEND = Command(
    _send,
    _send_arguments,
    "Type into a job that was started with --stdin or --pty, whoever started it. TEXT is sent as a line;\n"
    "without it, everything on standard input is sent as it is. At most 1,000,000 bytes at once: of more\n"
    "nothing is sent, and with --eof the input is not ended either.",
    examples=(
        "taskyard send b3k9x0q2m y",
        "taskyard send b3k9x0q2m --eof < answers.txt",
        "taskyard send b3k9x0q2m -n $'\\x03'        (Ctrl+C, to a job with --pty)",
    ),
    exits=("5  it takes no input, does not read, is over, or has not begun",),
)
