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
    "124  `wait --timeout` was over before it ended",
    "125  it was lost, was refused its turn, or Taskyard itself failed",
    "126, 127  it cannot be executed, or is not found",
    "128+N  ended by signal N; 143 also where it was stopped, or reached its own time limit, and said 0",
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
    parser.add("id", metavar="JOB", help="The job's id, the beginning of it, its name, or `last`.")


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
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")
    parser.add("--name", metavar="TEXT", help="What people see, if not the command.")
    parser.add("--task", metavar="ID", help="Count it to this task of the list: its time, and in `task show`.")
    parser.add("--cwd", metavar="DIR", help="Where it runs, if not here.")
    parser.add("--env", type=assignment, action="append", default=[], metavar="X=Y", help="Add a variable; repeatable.")
    parser.add(
        "--timeout", type=_time_limit, metavar="TIME", help="End it after this long: 90s, 10m. Pauses do not count."
    )
    parser.add("--output-cap", type=size, metavar="SIZE", help="Most on disk, 32MB: its head and the newest are kept.")
    parser.add("--stdin", action="store_true", help="Input can be sent to it: taskyard send JOB TEXT.")
    parser.add("--pty", action="store_true", help="Give it a terminal of its own.")
    parser.add("--monitor", action="store_true", help="Count it as a monitor, not as a shell: it watches something.")
    parser.add("--after", action="append", default=[], metavar="JOB", help="Only if this job completes; repeatable.")
    parser.add(
        "--after-any", action="append", default=[], metavar="JOB", help="Once this job is over, however it ended."
    )
    parser.add("--retry", type=integer, default=0, metavar="N", help="Try again after a failure, at most this often.")
    parser.add(
        "--retry-delay", type=seconds_or_none, default=1.0, metavar="TIME", help="Before that: 1s, then 2s, 4s, … 60s."
    )
    parser.add("--grace", type=seconds_or_none, default=3.0, metavar="TIME", help="Between TERM and KILL: 3s.")
    parser.add("--on-parent-exit", choices=("kill", "keep"), help="When whoever started it ends.")
    parser.add(
        "--leave-children", action="store_true", help="Processes it leaves behind go on; the job ends with the last."
    )
    parser.add("command", nargs=argparse.REMAINDER, metavar="CMD", help="Its words, or one text for bash.")


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
    exits=(*JOB_EXIT_CODES, "130  Ctrl+C"),
)


def _monitor_arguments(parser: Parser) -> None:
    parser.add("--command", metavar="TEXT", dest="watched", help="Watch what this prints, in bash; a line is an event.")
    parser.add("--mcp-command", metavar="TEXT", help="Watch the MCP server that this starts, in bash.")
    parser.add("--mcp-url", metavar="URL", help="Watch the MCP server that listens there.")
    parser.add("--token-env", metavar="NAME", help="With --mcp-url: the variable that holds its token.")
    parser.add(
        "--resource",
        action="append",
        default=[],
        metavar="URI",
        dest="resources",
        help="Of an MCP server: changes of this resource are events; repeatable.",
    )
    parser.add("--logs", choices=LEVELS, help="Of an MCP server: log messages from this level on are events.")
    parser.add("--filter", metavar="RE", help="Tell only of lines in which this regular expression is found.")
    parser.add("--every", type=seconds, default=2.0, metavar="TIME", help="Between two notices at least: 2s.")
    parser.add("--silence", type=seconds, metavar="TIME", help="Tell if there is no event for this long: 10m.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="End it after this long: 1h. Pauses do not count.")
    parser.add("--reconnect", action="store_true", help="Try again if the source is lost, after 1s, 2s, 4s, … 60s.")
    parser.add("--no-notices", action="store_true", help="Tell nobody of events; they are in its output.")
    parser.add("--name", metavar="TEXT", help="What people see, if not the source.")
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")


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
    "Watch what a command prints, or an MCP server's resources and log messages, as a job. All of it is the job's\n"
    "output. With -d, whoever started it is told of events while it runs: at most one notice each two seconds and\n"
    "4 kB, with a count of the rest. Without -d it is watched from here, as `taskyard run` does.",
    examples=(
        "taskyard monitor -d --command 'tail -F app.log' --filter 'ERROR|panic' --silence 10m",
        "taskyard monitor -d --mcp-command 'my-server --stdio' --resource file:///build/status",
        "taskyard monitor -d --mcp-url http://127.0.0.1:8000/mcp --token-env API_TOKEN --logs warning --reconnect",
    ),
    exits=(*JOB_EXIT_CODES, "130  Ctrl+C"),
)


def _stop_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="JOB", help="Jobs: an id, the beginning of one, a name, or `last`.")
    parser.add("--all", action="store_true", help="Every job of this user.")
    parser.add("--hold", action="store_true", help="Let no notice wake an agent until `taskyard release`.")
    parser.add(
        "--grace", type=seconds_or_none, metavar="TIME", help="Between TERM and KILL, if not the job's own; 0: at once."
    )


def _run_stop(args: Args) -> int:
    if bool(args.ids) == args.all:
        raise UsageError("Which job? Give its id, or several, or --all alone. See `taskyard ps`.")
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
        return f"{line}; it had ended already"
    if stopped.outcome == "host_away":
        return f"{line}; nothing was done, as {escape_control(job.host_name)} says nothing"
    if end is None:
        return f"{line}; asked to end, but it has not yet. See `taskyard wait {job.id}`"
    if end.leftovers:
        many = f"{end.leftovers} processes" if end.leftovers > 1 else "a process"
        line += f"; {many} that its command had left running {'were' if end.leftovers > 1 else 'was'} stopped"
    if end.survivors:
        line += f"; partial, still alive: process {', '.join(map(str, end.survivors))}"
    elif stopped.outcome == "stopped":
        line += "; nothing of it is left"
    else:
        why = escape_control(end.error) if end.cause == "stopped" else ""
        why = why or "the kernel cannot say whether anything is left"
        line += f"; {stopped.outcome.replace('_', ' ')}: {why}"
    return f"{line}; kept: {', '.join(end.kept)}" if end.kept else line


def _release(args: Args) -> int:
    from taskyard import config, yard

    was = yard.resume_delivery(config.home(), config.load_settings())
    return answer(args, lambda: {"released": was}, lambda: ["Notices flow again." if was else "Nothing was held back."])


STOP = Command(
    _run_stop,
    _stop_arguments,
    "End jobs with everything they started. `stopped` means that the kernel says nobody is left; `partial` names\n"
    "who is; `best_effort`, where a keeper had been killed, that nobody can say. Jobs inside a job end with it,\n"
    "unless they were started with --on-parent-exit keep.",
    examples=("taskyard stop b3k9x0q2m", "taskyard stop b3k9x0q2m --grace 10s", "taskyard stop --all --hold"),
    exits=("1  something of a job is left, or it has not ended yet",),
)
RELEASE = Command(
    _release,
    None,
    "Let notices reach agents again, after `taskyard stop --all --hold`.",
    examples=("taskyard release",),
)


def _wait_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="JOB", help="Jobs: an id, the beginning of one, a name, or `last`.")
    parser.add(
        "--timeout", type=seconds_or_none, metavar="TIME", help="At most this long: 90s, 10m; 0: only look. Then 124."
    )
    parser.add(
        "--output", action="store_true", help="With what it printed, as a model gets it; its notice counts as read."
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
                f"The supervisor of {name} (process {pid}) is stopped by a signal: its end is not noticed, and "
                "no limit is enforced. Resume it: taskyard doctor --fix",
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
    return _answer_control(args, job, changed, "is paused, and its clock with it" if changed else "was paused already")


def _resume(args: Args) -> int:
    jobs = open_user_jobs(args)
    found = resolve_job_id(jobs, args.id)
    changed = jobs.resume(found)
    job = jobs.get(found)
    if not changed and job.status is JobStatus.PENDING:
        raise _control_error(job, "resumed")
    return _answer_control(args, job, changed, "goes on" if changed else "was not paused")


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
    parser.add("text", nargs="?", metavar="TEXT", help="A line. Everything on standard input if not given.")
    parser.add("-n", "--no-newline", action="store_true", help="Exactly this text, without a newline behind it.")
    parser.add("--eof", action="store_true", help="Then let it read to the end; alone, only that.")


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
        raise UsageError("What shall be sent? Give TEXT, or pipe it in: printf 'y\\n' | taskyard send JOB")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


WAIT = Command(
    map_own_errors(_wait),
    _wait_arguments,
    "Wait until jobs are over, and end as they did. Interrupting it (Ctrl+C) leaves the jobs alone.",
    examples=("taskyard wait b3k9x0q2m", "taskyard wait b3k9x0q2m b7k2m3x0q --timeout 10m --json"),
    exits=JOB_EXIT_CODES,
)
PAUSE = Command(
    _pause,
    add_job_argument,
    "Stop every process of a job where it is, and its clock: a time limit does not go on meanwhile.",
    examples=("taskyard pause b3k9x0q2m",),
    exits=("5  it is over, or has not begun",),
)
RESUME = Command(
    _resume,
    add_job_argument,
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


def _dismiss_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="JOB", help="Ended jobs: an id, the beginning of one, a name, or `last`.")
    parser.add("--ended", action="store_true", help="Every ended job of this project.")
    parser.add("--everywhere", action="store_true", help="With --ended: of every project.")


def _run_dismiss(args: Args) -> int:
    if bool(args.ids) == args.ended:
        raise UsageError("Name jobs to dismiss, or use --ended alone. See `taskyard ps --all`.")
    if args.everywhere and not args.ended:
        raise UsageError("--everywhere goes with --ended.")
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
    parser.add("id", metavar="ID", help="The job.")


def _run_ended(args: Args) -> int:
    from taskyard import config
    from taskyard.integrations.hooks import run_hooks

    runs = run_hooks(config.home(), args.id, timeout=config.load_settings().hook_timeout)
    answer(args, lambda: [run._asdict() for run in runs], lambda: [run.text for run in runs if run.text])
    return 0


ENDED = Command(_run_ended, _ended_arguments, "Run the hooks of a job's end.")
