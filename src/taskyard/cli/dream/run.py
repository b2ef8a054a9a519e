"""`taskyard dream`: a dream as a job, watched from here or left in the background."""

from __future__ import annotations

import os
import sys

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, as_our_fault, exit_code, jobs_of
from taskyard.cli.output import answer, print_line, report, say
from taskyard.cli.values import seconds, word_list
from taskyard.disk import files
from taskyard.errors import DreamHeld, TaskyardError, UsageError
from taskyard.kinds.dream import Dream
from taskyard.runtime.folder import JobFolder
from taskyard.shapes import as_text
from taskyard.view.job_records import job_json
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.model import Job

#: How often whoever waits sees how far it is, in seconds.
_LOOK = 0.5


def where(parser: Parser) -> None:
    """Which memory, and whose sessions."""
    parser.add("--memory", default="", metavar="DIR", help="The folder, or `claude` or `taskyard` for theirs.")
    parser.add(
        "--source",
        type=word_list,
        default=[],
        metavar="NAMES",
        dest="sources",
        help="Of sessions, if not the setting: claude,taskyard.",
    )


def _arguments(parser: Parser) -> None:
    where(parser)
    parser.add("--engine", default="", metavar="ENGINE", help="What it runs on: see `taskyard engines`.")
    parser.add("--command", default="", metavar="CMD", help="The program of an engine that is one, with its words.")
    parser.add("--model", metavar="MODEL", help="The model, where the engine lets one choose.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="End it after this long: 30m.")
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")
    parser.add("--force", action="store_true", help="Also if it is not the time.")
    parser.add("--auto", action="store_true", help="For hooks: in the background, silent if it is not time.")
    parser.add("--dry-run", action="store_true", help="Show what would change; nothing does.")


def _run(args: Args) -> int:
    if args.auto and (args.force or args.dry_run):
        raise UsageError("--auto goes with neither --force nor --dry-run: nobody is there to see or to decide.")
    if args.auto:
        return _auto(args)
    spec, jobs = _spec(args), jobs_of(args)
    if args.detach:
        job = jobs.start(spec)
        return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id])
    return as_our_fault(lambda args: _watched(args, jobs, spec))(args)


def _auto(args: Args) -> int:
    """Begin one if it is time. Whatever is wrong must not stop the program whose hook this is: exit code 2 would."""
    if "TASKYARD_DREAM_STAGE" in os.environ:
        return 0  # the hooks of a dream's own engine
    try:
        job = jobs_of(args).start(_spec(args)._replace(on_parent_exit="keep"))
    except DreamHeld:
        return 0
    except TaskyardError as error:
        report(error, as_json=args.as_json)
        return 1
    return answer(args, lambda: job_json(job), list)


def _spec(args: Args) -> Dream:
    import shlex

    try:
        command = tuple(shlex.split(args.command))
    except ValueError as error:
        raise UsageError(f"--command cannot be read: {error}.") from error
    return Dream(
        args.memory,
        args.sources,
        engine=args.engine,
        command=command,
        model=args.model,
        force=args.force,
        dry_run=args.dry_run,
        timeout=args.timeout,
    )


def _watched(args: Args, jobs: Jobs, spec: Dream) -> int:
    """Wait for it, and say how far it is; Ctrl+C stops it, and then nothing is changed."""
    job = jobs.start(spec, backgrounded=False)
    say(args, f"{job.id} dreams of {as_text(job.facts.get('memory'))}. Ctrl+C stops it; nothing is changed then.")
    seen = ""
    try:
        while not job.is_final:
            job = jobs.wait(job.id, timeout=_LOOK)
            if not job.is_final and (now := _progress(job)) != seen:
                seen = now
                say(args, now)
    except KeyboardInterrupt:
        (stopped,) = jobs.stop(job.id)
        say(args, f"{job.id}: {stopped.outcome}")
        return 130
    return _told(args, jobs, job)


def _progress(job: Job) -> str:
    count = job.facts.get("touchedCount")
    files_ = f", {count} files so far" if isinstance(count, int) and count else ""
    return f"  {as_text(job.facts.get('stage')) or '…'}: {as_text(job.facts.get('phase'))}{files_}"


def _told(args: Args, jobs: Jobs, job: Job) -> int:
    """What came of it."""
    code = exit_code([job])
    diff = ""
    if not code:
        from taskyard.dreaming.sitting import DIFF

        data = files.read(f"{JobFolder(jobs.home, job.id).path}/{DIFF}", most=8_000_000) or b""
        diff = data.decode("utf-8", "replace")
    if args.as_json:
        return answer(args, lambda: {**job_json(job), "diff": diff}, list) or code
    if args.dry_run and diff:
        print_line(safe(diff, lines=True).rstrip("\n"))
    if job.end is not None and job.end.error:
        sys.stderr.write(f"Error: {safe(job.end.error, lines=True)}\n")
    elif not code:
        say(args, as_text(job.facts.get("note")))
    return code


DREAM = Command(
    _run,
    _arguments,
    "Have an agent go through past sessions and bring a memory folder in order, on a copy that takes the folder's\n"
    "place in one step or not at all; what was there before is kept (`taskyard dream undo`). It begins if the last\n"
    "one is a day ago and five sessions came since (settings dream_hours, dream_sessions), and says so if not.",
    examples=(
        "taskyard dream --engine claude",
        "taskyard dream --dry-run --command my-agent",
        "taskyard dream --auto --engine claude      as a hook at the end of a session",
        "taskyard dream status                      also: history, undo",
    ),
    exits=(*EXITS, "5  it is not the time, or another is at work", "130  Ctrl+C"),
)
