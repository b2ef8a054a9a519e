"""Job commands: `taskyard run`, `monitor`, `stop`, `wait`, `pause`, `resume`, `send` and others.

Also the helpers shared by all commands about jobs (lookup by id or name, exit codes), and the internal command
`__job_ended`, which runs the JobEnded hooks in a separate process. Watching a job is in `attach`, listing and
output are in `job_views`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from taskyard import config, yard
from taskyard.cli.main import Command
from taskyard.cli.output import announce_waits, answer, is_terminal, print_info, style
from taskyard.cli.parser import assignment, integer, seconds, seconds_or_none, size
from taskyard.core.text import Style, escape_control
from taskyard.core.values import check_name
from taskyard.errors import BadValue, Conflict, Damaged, JobNotBegun, TaskyardError, UsageError
from taskyard.jobs.control import encode_input
from taskyard.jobs.job_text import status_line
from taskyard.jobs.kind import MAX_TIMEOUT
from taskyard.jobs.kinds.monitor import LEVELS, Monitor
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.model import JobStatus, job_json
from taskyard.jobs.sinks import load_sinks
from taskyard.ui.jobs import JobScope
from taskyard.yard import hook_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.control import StopResult
    from taskyard.jobs.jobs import Jobs
    from taskyard.jobs.kind import Spec
    from taskyard.jobs.model import Job
    from taskyard.jobs.output import TaskOutput


#: The exit codes of `timeout` and shells.
NOT_FINISHED, OWN_FAILURE = 124, 125

JOB_EXIT_CODES = (
    "N  the job's own exit code; of several, the first that is not 0",
    "124  `wait --timeout` expired before the job ended",
    "125  the job was lost or refused, or Taskyard itself failed",
    "126, 127  the command cannot be executed, or was not found",
    "128+N  ended by signal N; 143 also if the job was stopped or timed out and exited with 0",
)


def open_user_jobs(args: Args) -> Jobs:
    """Return the jobs of this user, for the agent given by the command line or environment."""
    announce_waits(args)
    name = args.by or os.environ.get("TASKYARD_AGENT")
    agent = check_name("an agent", name) if name else None
    return yard.open_jobs(config.home(), config.load_settings(), agent=agent, hook_files=hook_files, alone=True)


def resolve_job_id(jobs: Jobs, text: str) -> str:
    """Return the id of a job given as id, prefix of one, name, or `last`."""
    from taskyard.jobs.query import resolve

    return resolve(text, lambda: jobs.list(ended=True), project=config.current_project())


def task_ref(args: Args) -> str | None:
    """Return the task given by `--task` as list and id."""
    if args.task is None:
        return None
    from taskyard.cli.parser import task_id

    return f"{config.list_name(args.list)}/{task_id(args.task)}"


def add_job_argument(parser: Parser) -> None:
    """Add an argument that names a job."""
    parser.add("id", metavar="JOB", help="Job id, id prefix, name, or `last`.")


def exit_code(jobs: Iterable[Job]) -> int:
    """Return the exit code of a command that waited for jobs: the first that is not 0."""
    return next((code for job in jobs if (code := _job_exit_code(job))), 0)


def _job_exit_code(job: Job) -> int:
    if job.end is None:
        return NOT_FINISHED
    if job.end.signal is not None:
        return 128 + job.end.signal
    if job.status is JobStatus.KILLED and not job.end.exit_code:
        return 128 + signal.SIGTERM  # it was ended before it was done, even if it exited with 0
    if job.end.exit_code is not None:
        return job.end.exit_code
    return OWN_FAILURE


def map_own_errors(run: Callable[[Args], int]) -> Callable[[Args], int]:
    """Wrap a command that exits like its job: our own failure must not look like the job's."""

    def told_apart(args: Args) -> int:
        try:
            return run(args)
        except TaskyardError as error:
            if error.exit_code != TaskyardError.exit_code:
                raise
            from taskyard.cli.output import report_error

            report_error(error, as_json=args.as_json)
            return OWN_FAILURE

    return told_apart


def start_or_watch(args: Args, spec: Spec) -> int:
    """Start a job in the background and print its id, or watch it and exit like it."""
    jobs = open_user_jobs(args)
    if not args.detach:
        from taskyard.cli.attach import run_attached

        return map_own_errors(lambda args: run_attached(args, jobs, spec))(args)
    from taskyard.cli.output import answer
    from taskyard.jobs.model import job_json

    job = jobs.start(spec)
    return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id])


def one_or_all(shown: Sequence[object], *, asked_for_one: bool) -> object:
    """Return one result for one id, a list for several."""
    return shown[0] if asked_for_one else list(shown)


#: A single argument with one of these characters is run by a shell.
_SHELL_SIGNS = frozenset(" \t\n|&;<>()$`")


def _run_arguments(parser: Parser) -> None:
    parser.add("-d", "--detach", action="store_true", help="Run in the background and print the job id.")
    parser.add("--name", metavar="TEXT", help="Name shown for the job; default: the command.")
    parser.add("--task", metavar="ID", help="Link the job to this task: its time is added to the task's usage.")
    parser.add("--cwd", metavar="DIR", help="Working directory; default: the current one.")
    parser.add(
        "--env",
        type=assignment,
        action="append",
        default=[],
        metavar="X=Y",
        help="Set an environment variable; repeatable.",
    )
    parser.add(
        "--timeout",
        type=_time_limit,
        metavar="TIME",
        help="Stop the job after this time: 90s, 10m. Pauses do not count.",
    )
    parser.add(
        "--output-cap",
        type=size,
        metavar="SIZE",
        help="Maximum output on disk, 32MB; the beginning and the newest part are kept.",
    )
    parser.add("--stdin", action="store_true", help="Accept input sent with `taskyard send JOB TEXT`.")
    parser.add("--pty", action="store_true", help="Run in a pseudo-terminal.")
    parser.add("--monitor", action="store_true", help="Register the job as a monitor instead of a shell.")
    parser.add(
        "--after",
        action="append",
        default=[],
        metavar="JOB",
        help="Start after this job has completed successfully; repeatable.",
    )
    parser.add(
        "--after-any",
        action="append",
        default=[],
        metavar="JOB",
        help="Start after this job has ended, whatever its result.",
    )
    parser.add("--retry", type=integer, default=0, metavar="N", help="Retry a failed command at most this often.")
    parser.add(
        "--retry-delay",
        type=seconds_or_none,
        default=1.0,
        metavar="TIME",
        help="Delay before the first retry, doubled each time up to 60s; default: 1s.",
    )
    parser.add(
        "--grace",
        type=seconds_or_none,
        default=3.0,
        metavar="TIME",
        help="Time between SIGTERM and SIGKILL; default: 3s.",
    )
    parser.add(
        "--on-parent-exit",
        choices=("kill", "keep"),
        help="Kill or keep the job when the process, agent or job that started it ends.",
    )
    parser.add(
        "--leave-children",
        action="store_true",
        help="Do not stop remaining child processes; the job ends with the last of them.",
    )
    parser.add(
        "command", nargs=argparse.REMAINDER, metavar="CMD", help="Command and arguments, or one string for bash."
    )


def _time_limit(text: str) -> float:
    return seconds(text, most=MAX_TIMEOUT)


def _run_run(args: Args) -> int:
    spec = _spec(args)
    jobs = open_user_jobs(args)
    args.after, args.after_any = (
        [resolve_job_id(jobs, text) for text in texts] for texts in (args.after, args.after_any)
    )
    warnings = _sink_warnings()
    if not args.detach:
        from taskyard.cli.attach import run_attached

        how = {"after": args.after, "after_any": args.after_any}
        return map_own_errors(
            lambda args: run_attached(args, jobs, spec, warnings, pty=args.pty, reads=args.stdin, **how)
        )(args)
    job = jobs.start(spec, after=args.after, after_any=args.after_any)
    return answer(args, lambda: job_json(job), lambda: [job.id], ids=[job.id], warnings=warnings)


def _sink_warnings() -> list[str]:
    """Return why no sink will report the job's exit; the job runs anyway."""
    try:
        load_sinks()
    except (BadValue, Damaged) as error:
        return [f"{error} No sink is notified of its end."]
    return []


def _spec(args: Args) -> Shell:
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not words:
        raise UsageError("No command given. Usage: taskyard run [-d] -- COMMAND…")
    return Shell(
        words[0] if len(words) == 1 and not _SHELL_SIGNS.isdisjoint(words[0].strip()) else words,
        cwd=args.cwd,
        env=_environment(args.env),
        name=args.name,
        task=task_ref(args),
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
    _run_run,
    _run_arguments,
    "Run a command as a job. With -d the job runs in the background. Otherwise its output is shown: Ctrl+B "
    "(in tmux\n"
    "Ctrl+], or the setting background_key) moves the job to the background, Ctrl+C stops it and all its "
    "processes.\n"
    "Several words are run as they are; one string with spaces or shell characters is run by bash. With "
    "--pty, keys\n"
    "including Ctrl+C go to the command; with --stdin, the command reads standard input.",
    examples=(
        "taskyard run -d -- npm test",
        "taskyard run -- 'make && make install'",
        "taskyard run -d --after b3k9x0q2m --retry 2 --timeout 10m -- ./deploy.sh",
        "taskyard run --pty -- top",
    ),
    exits=(*JOB_EXIT_CODES, "130  Ctrl+C"),
)


def _monitor_arguments(parser: Parser) -> None:
    parser.add(
        "--command",
        metavar="TEXT",
        dest="watched",
        help="Run this in bash and monitor its output; each line is an event.",
    )
    parser.add("--mcp-command", metavar="TEXT", help="Start an MCP server with this bash command and monitor it.")
    parser.add("--mcp-url", metavar="URL", help="Monitor the MCP server at this URL.")
    parser.add("--token-env", metavar="NAME", help="With --mcp-url: environment variable that contains its token.")
    parser.add(
        "--resource",
        action="append",
        default=[],
        metavar="URI",
        dest="resources",
        help="MCP server: report changes of this resource as events; repeatable.",
    )
    parser.add("--logs", choices=LEVELS, help="MCP server: report log messages of this level or higher as events.")
    parser.add("--filter", metavar="RE", help="Report only lines that match this regular expression.")
    parser.add(
        "--every", type=seconds, default=2.0, metavar="TIME", help="Minimum time between two notices; default: 2s."
    )
    parser.add("--silence", type=seconds, metavar="TIME", help="Send a notice if there is no event for this long: 10m.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="Stop the job after this time: 1h. Pauses do not count.")
    parser.add("--reconnect", action="store_true", help="Reconnect if the source is lost, after 1s, 2s, 4s, … 60s.")
    parser.add(
        "--no-notices", action="store_true", help="Send no notices for events; they are only written to the output."
    )
    parser.add("--name", metavar="TEXT", help="Name shown for the job; default: the source.")
    parser.add("-d", "--detach", action="store_true", help="Run in the background and print the job id.")


def _run_monitor(args: Args) -> int:
    spec = Monitor(
        args.watched,
        args.mcp_command,
        args.mcp_url,
        args.token_env,
        args.resources,
        args.logs,
        args.filter,
        args.every,
        args.silence,
        args.timeout,
        args.reconnect,
        not args.no_notices,
        args.name,
    )
    return start_or_watch(args, spec)


MONITOR = Command(
    _run_monitor,
    _monitor_arguments,
    "Monitor the output of a command, or resources and log messages of an MCP server, as a job. Everything is "
    "written\n"
    "to the job's output. With -d, the agent that started the job gets notices of events while it runs: at "
    "most one\n"
    "every two seconds, at most 4 kB, with a count of the omitted events. Without -d the output is shown "
    "here, as with\n"
    "`taskyard run`.",
    examples=(
        "taskyard monitor -d --command 'tail -F app.log' --filter 'ERROR|panic' --silence 10m",
        "taskyard monitor -d --mcp-command 'my-server --stdio' --resource file:///build/status",
        "taskyard monitor -d --mcp-url http://127.0.0.1:8000/mcp --token-env API_TOKEN --logs warning --reconnect",
    ),
    exits=(*JOB_EXIT_CODES, "130  Ctrl+C"),
)


def _stop_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="JOB", help="Job ids, id prefixes, names, or `last`.")
    parser.add("--all", action="store_true", help="Stop all jobs of this user.")
    parser.add("--hold", action="store_true", help="Hold back all notices to agents until `taskyard release`.")
    parser.add(
        "--grace",
        type=seconds_or_none,
        metavar="TIME",
        help="Time between SIGTERM and SIGKILL; default: the job's own; 0: SIGKILL immediately.",
    )


def _run_stop(args: Args) -> int:
    if bool(args.ids) == args.all:
        raise UsageError("No job given. Give one or more job ids, or --all alone. See `taskyard ps`.")
    jobs = open_user_jobs(args)
    if args.hold:
        from taskyard import config, yard

        yard.pause_delivery(jobs.home, config.load_settings())
    ids = [job.id for job in jobs.list()] if args.all else [resolve_job_id(jobs, text) for text in args.ids]
    stopped = jobs.stop(*ids, grace=args.grace)
    if not stopped:
        print_info(args, "No job is running.")
    answer(
        args,
        lambda: one_or_all(
            [{**job_json(each.job), "outcome": each.outcome} for each in stopped], asked_for_one=len(args.ids) == 1
        ),
        lambda: [format_stop(each, style(args)) for each in stopped],
        ids=[each.job.id for each in stopped],
    )
    if args.hold:
        print_info(args, "Notices are on hold: no agent gets any until `taskyard release`.")
    return 0 if all(each.is_done for each in stopped) else 1


def format_stop(stopped: StopResult, style: Style = Style()) -> str:  # noqa: B008  (immutable)
    """Return the outcome of a stop in a line, with what is left, if anything."""
    job, end = stopped.job, stopped.job.end
    line = status_line(job, style)
    if stopped.outcome == "already_ended":
        return f"{line}; it had already ended"
    if stopped.outcome == "host_away":
        return f"{line}; not stopped: {escape_control(job.host_name)} does not respond"
    if end is None:
        return f"{line}; stop requested, but it has not ended yet. See `taskyard wait {job.id}`"
    if end.leftovers:
        many = f"{end.leftovers} processes" if end.leftovers > 1 else "a process"
        line += f"; {many} that its command had left running {'were' if end.leftovers > 1 else 'was'} stopped"
    if end.survivors:
        line += f"; partial, still alive: process {', '.join(map(str, end.survivors))}"
    elif stopped.outcome == "stopped":
        line += "; no process is left"
    else:
        why = escape_control(end.error) if end.cause == "stopped" else ""
        why = why or "the kernel cannot tell whether a process is left"
        line += f"; {stopped.outcome.replace('_', ' ')}: {why}"
    return f"{line}; kept: {', '.join(end.kept)}" if end.kept else line


def _release(args: Args) -> int:
    from taskyard import config, yard

    was = yard.resume_delivery(config.home(), config.load_settings())
    return answer(
        args, lambda: {"released": was}, lambda: ["Notice delivery resumed." if was else "No notices were held back."]
    )


STOP = Command(
    _run_stop,
    _stop_arguments,
    "Stop jobs and all their processes. `stopped` means that the kernel confirmed that no process is left; "
    "`partial`\n"
    "lists the processes that are; `best_effort` means that the supervisor had been killed, so it cannot be "
    "proved.\n"
    "Child jobs are stopped too, unless they were started with --on-parent-exit keep.",
    examples=("taskyard stop b3k9x0q2m", "taskyard stop b3k9x0q2m --grace 10s", "taskyard stop --all --hold"),
    exits=("1  a process is left, or a job has not ended yet",),
)
RELEASE = Command(
    _release,
    None,
    "Resume the delivery of notices to agents after `taskyard stop --all --hold`.",
    examples=("taskyard release",),
)


def _wait_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="JOB", help="Job ids, id prefixes, names, or `last`.")
    parser.add(
        "--timeout",
        type=seconds_or_none,
        metavar="TIME",
        help="Wait at most this long: 90s, 10m; 0 only checks. Exits with 124 on timeout.",
    )
    parser.add(
        "--output",
        action="store_true",
        help="Include the output as an agent gets it, and mark the job's notice as read.",
    )


def _wait(args: Args) -> int:
    jobs = open_user_jobs(args)
    ids = [resolve_job_id(jobs, text) for text in args.ids]
    _warn_of_stopped(args, jobs.home, ids)
    found = jobs.wait_all(ids, timeout=args.timeout)
    printed = [jobs.output(job.id) for job in found] if args.output else []
    answer(
        args,
        lambda: one_or_all(_wait_json(found, printed), asked_for_one=len(ids) == 1),
        lambda: _wait_lines(found, printed, style(args)),
        ids=ids,
    )
    return exit_code(found)


def _warn_of_stopped(args: Args, home: str, ids: Sequence[str]) -> None:
    """Print which jobs cannot end because their supervisors are stopped by a signal."""
    from taskyard.jobs.query import stopped_supervisors

    for name, pid in stopped_supervisors(home):
        if name in ids:
            print_info(
                args,
                f"The supervisor of {name} (process {pid}) is stopped by a signal: "
                "the end of the job is not detected and limits are not enforced. Resume it: taskyard doctor --fix",
            )


def _wait_json(found: Sequence[Job], printed: Sequence[TaskOutput]) -> list[dict[str, object]]:
    if not printed:
        return [job_json(job) for job in found]
    return [{**job_json(each.job), "text": each.output, "was_truncated": each.was_truncated} for each in printed]


def _wait_lines(found: Sequence[Job], printed: Sequence[TaskOutput], look: Style) -> Iterator[str]:
    for number, job in enumerate(found):
        yield status_line(job, look)
        if printed and printed[number].output:
            yield printed[number].output.rstrip("\n")


def _pause(args: Args) -> int:
    jobs = open_user_jobs(args)
    found = resolve_job_id(jobs, args.id)
    changed = jobs.pause(found)
    job = jobs.get(found)
    if not changed and not job.is_paused:
        raise _control_error(job, "paused")
    return _answer_control(
        args, job, changed, "is paused; its time limit is paused too" if changed else "was already paused"
    )


def _resume(args: Args) -> int:
    jobs = open_user_jobs(args)
    found = resolve_job_id(jobs, args.id)
    changed = jobs.resume(found)
    job = jobs.get(found)
    if not changed and job.status is JobStatus.PENDING:
        raise _control_error(job, "resumed")
    return _answer_control(args, job, changed, "is resumed" if changed else "was not paused")


def _control_error(job: Job, what: str) -> Conflict:
    if job.status is JobStatus.PENDING:
        return JobNotBegun(job.id, job.waits_for)
    return Conflict(f"Job {job.id} is about to end and cannot be {what}. See `taskyard wait {job.id}`.")


def _answer_control(args: Args, job: Job, changed: bool, words: str) -> int:
    return answer(
        args,
        lambda: {**job_json(job), "changed": changed},
        lambda: [f"{job.id} {words}."],
        ids=[job.id],
    )


def _send_arguments(parser: Parser) -> None:
    add_job_argument(parser)
    parser.add("text", nargs="?", metavar="TEXT", help="Line to send; default: all of standard input.")
    parser.add("-n", "--no-newline", action="store_true", help="Send the text without a trailing newline.")
    parser.add("--eof", action="store_true", help="Close the job's input afterwards; without TEXT, only close it.")


def _send(args: Args) -> int:
    text = _input_text(args)
    encode_input(text)
    jobs = open_user_jobs(args)
    job = jobs.answer(resolve_job_id(jobs, args.id), text, close=args.eof)
    count = len(text.encode("utf-8", "surrogateescape"))
    return answer(
        args,
        lambda: {**job_json(job), "sent": count, "eof": args.eof},
        lambda: [f"{job.id} got {count:,} {'byte' if count == 1 else 'bytes'}{' and the end' if args.eof else ''}."],
        ids=[job.id],
    )


def _input_text(args: Args) -> str:
    """Return the text to send: an argument is a line, standard input is sent unchanged."""
    if args.text is not None:
        return str(args.text) + ("" if args.no_newline else "\n")
    if is_terminal(sys.stdin):
        if args.eof:
            return ""
        raise UsageError("No text given. Give TEXT, or pipe it in: printf 'y\\n' | taskyard send JOB")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


WAIT = Command(
    map_own_errors(_wait),
    _wait_arguments,
    (
        "Wait until jobs have ended, and exit with their exit code. Interrupting the wait (Ctrl+C) does not "
        "affect the jobs."
    ),
    examples=("taskyard wait b3k9x0q2m", "taskyard wait b3k9x0q2m b7k2m3x0q --timeout 10m --json"),
    exits=JOB_EXIT_CODES,
)
PAUSE = Command(
    _pause,
    add_job_argument,
    "Suspend all processes of a job and pause its time limit.",
    examples=("taskyard pause b3k9x0q2m",),
    exits=("5  the job has ended or has not started",),
)
RESUME = Command(
    _resume,
    add_job_argument,
    "Resume a paused job.",
    examples=("taskyard resume b3k9x0q2m",),
    exits=("5  the job has ended or has not started",),
)
SEND = Command(
    _send,
    _send_arguments,
    "Send input to a job that was started with --stdin or --pty, by any agent. TEXT is sent as a line;\n"
    "without TEXT, standard input is sent unchanged. At most 1,000,000 bytes per call: if there is more,\n"
    "nothing is sent, and --eof does not close the input.",
    examples=(
        "taskyard send b3k9x0q2m y",
        "taskyard send b3k9x0q2m --eof < answers.txt",
        "taskyard send b3k9x0q2m -n $'\\x03'        (Ctrl+C, to a job with --pty)",
    ),
    exits=("5  the job accepts no input, does not read, has ended or has not started",),
)


def _dismiss_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="JOB", help="Ended jobs: ids, id prefixes, names, or `last`.")
    parser.add("--ended", action="store_true", help="Dismiss all ended jobs of this project.")
    parser.add("--everywhere", action="store_true", help="With --ended: of all projects.")


def _run_dismiss(args: Args) -> int:
    if bool(args.ids) == args.ended:
        raise UsageError("Name jobs to dismiss, or use --ended alone. See `taskyard ps --all`.")
    if args.everywhere and not args.ended:
        raise UsageError("--everywhere requires --ended.")
    jobs = open_user_jobs(args)
    if args.ended:
        scope = JobScope("" if args.everywhere else config.current_project())
        ids = [job.id for job in scope.of(jobs.list(ended=True)).jobs if job.is_final and not job.is_on_other_host]
    else:
        ids = list(dict.fromkeys(resolve_job_id(jobs, text) for text in args.ids))
    done = jobs.dismiss(*ids)
    if not done:
        print_info(args, "No ended job to dismiss.")
    return answer(
        args,
        lambda: [job_json(job) for job in done],
        lambda: [f"{status_line(job, style(args))}; dismissed" for job in done],
        ids=[job.id for job in done],
    )


DISMISS = Command(
    _run_dismiss,
    _dismiss_arguments,
    "Leave ended jobs out of `ps --all`, the terminal UI and the web page, and mark their notices as read. Their\n"
    "records and output stay until `taskyard gc` collects them; `taskyard ps --all --dismissed` lists them.",
    examples=("taskyard dismiss last", "taskyard dismiss --ended"),
    exits=("4  no such job", "5  it has not ended"),
)


def _ended_arguments(parser: Parser) -> None:
    parser.add("id", metavar="ID", help="Job id.")


def _run_ended(args: Args) -> int:
    from taskyard import config
    from taskyard.integrations.hooks import run_hooks

    runs = run_hooks(config.home(), args.id, timeout=config.load_settings().hook_timeout)
    answer(args, lambda: [run._asdict() for run in runs], lambda: [run.text for run in runs if run.text])
    return 0


ENDED = Command(_run_ended, _ended_arguments, "Run the job-ended hooks of a job.")
