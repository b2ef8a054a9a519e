"""`taskyard dream`, `dream status`, `history` and `undo`: an agent tidies a memory folder, as a job."""

from __future__ import annotations

import os
import sys
import time

from taskyard import config
from taskyard.agents.dream import schedule, staging
from taskyard.agents.dream.kind import Dream
from taskyard.agents.dream.staging import DreamDir
from taskyard.cli.job import JOB_EXIT_CODES, exit_code, map_own_errors, open_user_jobs
from taskyard.cli.main import Command
from taskyard.cli.output import answer, print_info, print_line, report_error
from taskyard.cli.parser import seconds, word_list
from taskyard.core import files
from taskyard.core.text import escape_control
from taskyard.core.values import as_text
from taskyard.errors import DreamHeld, TaskyardError, UsageError
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.agents.dream.staging import Copy, Readiness
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.model import Job


#: Seconds between two progress checks.
_POLL_INTERVAL = 0.5


def add_memory_options(parser: Parser) -> None:
    """Add the options for the memory folder and the sessions."""
    parser.add("--memory", default="", metavar="DIR", help="Memory folder, or `claude` or `taskyard` for theirs.")
    parser.add(
        "--source",
        type=word_list,
        default=[],
        metavar="NAMES",
        dest="sources",
        help="Session sources: claude,taskyard; default: the setting.",
    )


def _arguments(parser: Parser) -> None:
    add_memory_options(parser)
    parser.add("--engine", default="", metavar="ENGINE", help="Engine to run on; see `taskyard engines`.")
    parser.add("--command", default="", metavar="CMD", help="Program and arguments, for engines that run a program.")
    parser.add("--model", metavar="MODEL", help="Model, if the engine supports a choice.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="Stop the dream after this time: 30m.")
    parser.add("-d", "--detach", action="store_true", help="Run in the background and print the job id.")
    parser.add("--force", action="store_true", help="Run even if no dream is due.")
    parser.add(
        "--auto", action="store_true", help="For hooks: run in the background, print nothing if no dream is due."
    )
    parser.add("--dry-run", action="store_true", help="Show what would change without changing it.")


def _run(args: Args) -> int:
    if args.auto and (args.force or args.dry_run):
        raise UsageError("--auto cannot be combined with --force or --dry-run: it runs unattended.")
    if args.auto:
        return _auto(args)
    spec, jobs = _spec(args), open_user_jobs(args)
    if args.detach:
        job = jobs.start(spec)
        return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id])
    return map_own_errors(lambda args: _run_attached(args, jobs, spec))(args)


def _auto(args: Args) -> int:
    """Start a dream if one is due. A failure must not stop the program whose hook this is: exit code 2 would."""
    if "TASKYARD_DREAM_STAGE" in os.environ:
        return 0  # called by the hooks of a dream's own engine
    try:
        job = open_user_jobs(args).start(_spec(args)._replace(on_parent_exit="keep"))
    except DreamHeld:
        return 0
    except TaskyardError as error:
        report_error(error, as_json=args.as_json)
        return 1
    return answer(args, lambda: job_json(job), list)


def _spec(args: Args) -> Dream:
    import shlex

    try:
        command = tuple(shlex.split(args.command))
    except ValueError as error:
        raise UsageError(f"--command cannot be parsed: {error}.") from error
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


def _run_attached(args: Args, jobs: Jobs, spec: Dream) -> int:
    """Wait for the dream and print its progress; Ctrl+C stops it, and then nothing is changed."""
    job = jobs.start(spec, backgrounded=False)
    print_info(args, f"{job.id} consolidates {as_text(job.facts.get('memory'))}. Ctrl+C stops it without changes.")
    seen = ""
    try:
        while not job.is_final:
            job = jobs.wait(job.id, timeout=_POLL_INTERVAL)
            if not job.is_final and (now := _progress(job)) != seen:
                seen = now
                print_info(args, now)
    except KeyboardInterrupt:
        (stopped,) = jobs.stop(job.id)
        print_info(args, f"{job.id}: {stopped.outcome}")
        return 130
    return _print_result(args, jobs, job)


def _progress(job: Job) -> str:
    count = job.facts.get("touchedCount")
    files_ = f", {count} files so far" if isinstance(count, int) and count else ""
    return f"  {as_text(job.facts.get('stage')) or '…'}: {as_text(job.facts.get('phase'))}{files_}"


def _print_result(args: Args, jobs: Jobs, job: Job) -> int:
    """Print the result of the dream."""
    code = exit_code([job])
    diff = ""
    if not code:
        from taskyard.agents.dream.run import DIFF

        data = files.read(f"{JobPaths(jobs.home, job.id).path}/{DIFF}", most=8_000_000) or b""
        diff = data.decode("utf-8", "replace")
    if args.as_json:
        return answer(args, lambda: {**job_json(job), "diff": diff}, list) or code
    if args.dry_run and diff:
        print_line(escape_control(diff, lines=True).rstrip("\n"))
    if job.end is not None and job.end.error:
        sys.stderr.write(f"Error: {escape_control(job.end.error, lines=True)}\n")
    elif not code:
        print_info(args, as_text(job.facts.get("note")))
    return code


DREAM = Command(
    _run,
    _arguments,
    "Have an agent review past sessions and consolidate a memory folder. It works on a copy that replaces the "
    "folder in\n"
    "one step or not at all; the previous version is kept (`taskyard dream undo`). A dream is due if the last "
    "one was\n"
    "a day ago and five sessions followed (settings dream_hours, dream_sessions); otherwise the command says "
    "why not.",
    examples=(
        "taskyard dream --engine claude",
        "taskyard dream --dry-run --command my-agent",
        "taskyard dream --auto --engine claude      as a hook at the end of a session",
        "taskyard dream status                      also: history, undo",
    ),
    exits=(*JOB_EXIT_CODES, "5  no dream is due, or another one is running", "130  Ctrl+C"),
)


def _status(args: Args) -> int:
    settings = config.load_settings()
    dream = Dream(args.memory, args.sources)
    memory = dream.place(settings)
    side = DreamDir(memory)
    found = schedule.check_schedule(memory, dream.names(settings), dream.project(), settings)
    claim = staging.read_claim(side) if staging.is_running(side) else None
    job = as_text((claim or {}).get("job")) or None
    copies = staging.copies(side)
    return answer(
        args,
        lambda: {
            "memory": memory,
            "last_done": round(found.last_done * 1000) or None,
            "sessions": found.sessions,
            "sessions_needed": found.sessions_needed,
            "gate": "open" if found.is_open else "shut",
            "held_by": list(found.held_by),
            "opens_at": None if found.opens_at is None else round(found.opens_at * 1000),
            "job": job,
            "copies": len(copies),
        },
        lambda: _status_lines(memory, found, job, len(copies)),
        ids=["open" if found.is_open else "shut"],
    )


def _status_lines(memory: str, found: Readiness, job: str | None, copies: int) -> Iterator[str]:
    yield f"memory     {escape_control(memory)}"
    yield f"last done  {_format_time(found.last_done) if found.last_done else 'never'}"
    yield f"sessions   {found.sessions} since then ({found.sessions_needed} are needed)"
    why = staging.format_reasons(found, now=time.time())
    yield f"gate       {'open: `taskyard dream` starts one' if found.is_open else 'shut: ' + why}"
    if job:
        yield f"at work    {escape_control(job)}"
    yield f"history    {copies} earlier state{'' if copies == 1 else 's'}"


def _history(args: Args) -> int:
    side = DreamDir(Dream(args.memory).place(config.load_settings()))
    copies = staging.copies(side)
    return answer(
        args,
        lambda: [{"name": copy.name, "until": copy.at * 1000, "by": copy.job, "path": copy.path} for copy in copies],
        lambda: [_format_copy(copy) for copy in copies] or [f"No earlier versions of {escape_control(side.memory)}."],
        ids=[copy.name for copy in copies],
    )


def _format_copy(copy: Copy) -> str:
    return (
        f"{escape_control(copy.name)}  as it was until {_format_time(copy.at)}, replaced by {escape_control(copy.job)}"
    )


def _undo_arguments(parser: Parser) -> None:
    parser.add("copy", nargs="?", metavar="COPY", help="Version as listed by `history`; default: the last.")
    parser.add("--memory", default="", metavar="DIR", help="Memory folder, or `claude` or `taskyard` for theirs.")


def _undo(args: Args) -> int:
    side = DreamDir(Dream(args.memory).place(config.load_settings()))
    back = staging.undo(side, args.copy)
    staging.prune(side, config.load_settings().dream_copies)
    print_info(args, f"{side.memory} is restored as of {_format_time(back.at)}. `taskyard dream undo` reverts this.")
    return answer(args, lambda: {"memory": side.memory, "name": back.name, "until": back.at * 1000}, list)


def _history_arguments(parser: Parser) -> None:
    parser.add("--memory", default="", metavar="DIR", help="Memory folder, or `claude` or `taskyard` for theirs.")


def _format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


STATUS = Command(
    _status,
    add_memory_options,
    "Show the memory folder, the time of the last dream, the number of sessions since, and what the next "
    "dream\n"
    "waits for.",
    examples=("taskyard dream status", "taskyard dream status --memory claude --json"),
)
HISTORY = Command(
    _history,
    _history_arguments,
    ("List the versions of the memory folder before each dream, newest first. The setting dream_copies limits them."),
    examples=("taskyard dream history",),
)
UNDO = Command(
    _undo,
    _undo_arguments,
    "Restore the memory folder to its version before the last dream, or to any version listed by `history`. "
    "The current\n"
    "content becomes an earlier version itself.",
    examples=("taskyard dream undo", "taskyard dream undo --memory claude"),
    exits=("4  no such version", "5  a dream is running"),
)
