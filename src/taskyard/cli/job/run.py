"""`taskyard run`: a command as a job, watched from here or left in the background."""

from __future__ import annotations

import argparse

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, as_our_fault, job_id, jobs_of, task_of
from taskyard.cli.output import answer
from taskyard.cli.values import assignment, seconds, seconds_or_none, size, whole
from taskyard.errors import BadValue, Damaged, UsageError
from taskyard.kinds.checks import LONGEST_TIME
from taskyard.kinds.shell import Shell
from taskyard.runtime.sinks import load_sinks
from taskyard.view.job_records import job_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser

#: In a single word that has one of these, a shell is meant.
_SHELL_SIGNS = frozenset(" \t\n|&;<>()$`")


def _arguments(parser: Parser) -> None:
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")
    parser.add("--name", metavar="TEXT", help="What people see, if not the command.")
    parser.add("--task", metavar="ID", help="Count it to this task of the list: its time, and in `task show`.")
    parser.add("--cwd", metavar="DIR", help="Where it runs, if not here.")
    parser.add("--env", type=assignment, action="append", default=[], metavar="X=Y", help="Add a variable; repeatable.")
    parser.add("--timeout", type=_limit, metavar="TIME", help="End it after this long: 90s, 10m. Pauses do not count.")
    parser.add("--output-cap", type=size, metavar="SIZE", help="Most on disk, 32MB: its head and the newest are kept.")
    parser.add("--stdin", action="store_true", help="Input can be sent to it: taskyard send JOB TEXT.")
    parser.add("--pty", action="store_true", help="Give it a terminal of its own.")
    parser.add("--monitor", action="store_true", help="Count it as a monitor, not as a shell: it watches something.")
    parser.add("--after", action="append", default=[], metavar="JOB", help="Only if this job completes; repeatable.")
    parser.add(
        "--after-any", action="append", default=[], metavar="JOB", help="Once this job is over, however it ended."
    )
    parser.add("--retry", type=whole, default=0, metavar="N", help="Try again after a failure, at most this often.")
    parser.add(
        "--retry-delay", type=seconds_or_none, default=1.0, metavar="TIME", help="Before that: 1s, then 2s, 4s, … 60s."
    )
    parser.add("--grace", type=seconds_or_none, default=3.0, metavar="TIME", help="Between TERM and KILL: 3s.")
    parser.add("--on-parent-exit", choices=("kill", "keep"), help="When whoever started it ends.")
    parser.add(
        "--leave-children", action="store_true", help="Processes it leaves behind go on; the job ends with the last."
    )
    parser.add("command", nargs=argparse.REMAINDER, metavar="CMD", help="Its words, or one text for bash.")


def _limit(text: str) -> float:
    return seconds(text, most=LONGEST_TIME)


def _run(args: Args) -> int:
    spec = _spec(args)
    jobs = jobs_of(args)
    args.after, args.after_any = ([job_id(jobs, text) for text in texts] for texts in (args.after, args.after_any))
    warnings = _sinks_that_fail()
    if not args.detach:
        from taskyard.cli.job.foreground import run

        how = {"after": args.after, "after_any": args.after_any}
        return as_our_fault(lambda args: run(args, jobs, spec, warnings, pty=args.pty, reads=args.stdin, **how))(args)
    job = jobs.start(spec, after=args.after, after_any=args.after_any)
    return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id], warnings=warnings)


def _sinks_that_fail() -> list[str]:
    """What keeps the end of the job from being told by any sink: no reason not to run it."""
    try:
        load_sinks()
    except (BadValue, Damaged) as error:
        return [f"{error} No sink is told of its end."]
    return []


def _spec(args: Args) -> Shell:
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not words:
        raise UsageError("What shall run? taskyard run [-d] -- COMMAND…")
    return Shell(
        words[0] if len(words) == 1 and not _SHELL_SIGNS.isdisjoint(words[0].strip()) else words,
        cwd=args.cwd,
        env=_environment(args.env),
        name=args.name,
        task=task_of(args),
        timeout=args.timeout,
        output_cap=args.output_cap,
        on_parent_exit=args.on_parent_exit,
        stdin=args.stdin,
        pty=args.pty,
        grace=args.grace,
        leave_children=args.leave_children,
        retries=args.retry,
        retry_delay=args.retry_delay,
        kind="monitor" if args.monitor else "bash",
    )


def _environment(given: list[tuple[str, str]]) -> dict[str, str] | None:
    import os

    return {**os.environ, **dict(given)} if given else None


RUN = Command(
    _run,
    _arguments,
    "Run a command as a job. With -d it is left in the background. Else its output is shown: Ctrl+B (in tmux Ctrl+],\n"
    "or the setting background_key) moves it to the background as it is, Ctrl+C stops it with everything it started.\n"
    "Several words run as they are, one text with spaces or shell signs runs in bash. With --pty, keys go to the\n"
    "command, Ctrl+C too; with --stdin, what comes from standard input.",
    examples=(
        "taskyard run -d -- npm test",
        "taskyard run -- 'make && make install'",
        "taskyard run -d --after b3k9x0q2m --retry 2 --timeout 10m -- ./deploy.sh",
        "taskyard run --pty -- top",
    ),
    exits=(*EXITS, "130  Ctrl+C"),
)
