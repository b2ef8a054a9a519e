"""`taskyard run`: a command as a job, watched from here or left in the background."""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, exit_code, jobs_of
from taskyard.cli.output import answer, say
from taskyard.cli.values import seconds, size
from taskyard.errors import UsageError
from taskyard.kinds.shell import Shell
from taskyard.runtime.records import job_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")
    parser.add("--name", metavar="NAME", help="What people see, if not the command.")
    parser.add("--cwd", metavar="DIR", help="Where it runs, if not here.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="End it after this long: 90s, 10m.")
    parser.add("--output-cap", type=size, metavar="SIZE", help="Keep at most this much output on disk: 32MB.")
    parser.add("--stdin", action="store_true", help="Input can be sent to it: taskyard send ID TEXT.")
    parser.add("--pty", action="store_true", help="Give it a terminal of its own.")
    parser.add("--on-parent-exit", choices=("kill", "keep"), help="When whoever started it ends.")
    parser.add("--leave-children", action="store_true", help="Let processes it leaves behind go on.")
    parser.add("--after", action="append", default=[], metavar="JOB", help="Only when this job has ended; repeatable.")
    parser.add("--retry", type=int, default=0, metavar="N", help="Try again after a failure, at most this often.")
    parser.add("--grace", type=seconds, default=3.0, metavar="TIME", help="Between TERM and KILL: 3s.")
    parser.add("command", nargs="*", metavar="CMD", help="After --: words, or one text for bash.")


def _run(args: Args) -> int:
    if not args.command:
        raise UsageError("What shall run? taskyard run [-d] -- COMMAND…")
    command = args.command[0] if len(args.command) == 1 and " " in args.command[0].strip() else args.command
    spec = Shell(
        command,
        cwd=args.cwd,
        name=args.name,
        timeout=args.timeout,
        output_cap=args.output_cap,
        on_parent_exit=args.on_parent_exit,
        stdin=args.stdin,
        pty=args.pty,
        grace=args.grace,
        leave_children=args.leave_children,
        retries=args.retry,
    )
    jobs = jobs_of(args)
    job = jobs.start(spec, backgrounded=args.detach, after=args.after)
    if args.detach:
        shown = {**job_to_json(job), "output": job.output_file}
        return answer(args, lambda: shown, lambda: [f"{job.id}"], ids=[job.id])
    from taskyard.cli.job.attached import watch

    job = watch(jobs, job, quiet=args.quiet or args.as_json)
    if args.as_json:
        answer(args, lambda: {**job_to_json(job), "backgroundTaskId": None if job.is_final else job.id}, list)
    if not job.is_final:
        say(args, f"It goes on in the background: {job.id}. See `taskyard logs -f {job.id}`.")
        return 0
    sys.stdout.flush()
    return exit_code([job])


RUN = Command(
    _run,
    _arguments,
    "Run a command as a job. Attached: its output is shown, Ctrl+B moves it to the background, Ctrl+C stops it.",
    examples=("taskyard run -d -- npm test", "taskyard run -- 'make && make install'", "taskyard run --pty -- top"),
    exits=EXITS,
)
