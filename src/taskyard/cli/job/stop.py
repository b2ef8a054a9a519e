"""`taskyard stop`: end jobs, with proof; `taskyard release` after an emergency stop."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.job.shared import job_id, jobs_of, one_or_all
from taskyard.cli.output import answer, say, style
from taskyard.cli.values import seconds_or_none
from taskyard.errors import UsageError
from taskyard.view.glyphs import Style
from taskyard.view.job_records import job_json
from taskyard.view.job_text import ended_line
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.steering import Stopped


def _arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="JOB", help="Jobs: an id, the beginning of one, a name, or `last`.")
    parser.add("--all", action="store_true", help="Every job of this user.")
    parser.add("--hold", action="store_true", help="Let no notice wake an agent until `taskyard release`.")
    parser.add(
        "--grace", type=seconds_or_none, metavar="TIME", help="Between TERM and KILL, if not the job's own; 0: at once."
    )


def _run(args: Args) -> int:
    if bool(args.ids) == args.all:
        raise UsageError("Which job? Give its id, or several, or --all alone. See `taskyard ps`.")
    jobs = jobs_of(args)
    if args.hold:
        from taskyard import config
        from taskyard.relay import door

        door.hold(jobs.home, config.load())
    ids = [job.id for job in jobs.list()] if args.all else [job_id(jobs, text) for text in args.ids]
    stopped = jobs.stop(*ids, grace=args.grace)
    if not stopped:
        say(args, "No job is running.")
    answer(
        args,
        lambda: one_or_all(
            [{**job_json(each.job), "outcome": each.outcome} for each in stopped], asked_for_one=len(args.ids) == 1
        ),
        lambda: [stop_line(each, style(args)) for each in stopped],
        ids=[each.job.id for each in stopped],
    )
    if args.hold:
        say(args, "Notices are on hold: no agent gets any until `taskyard release`.")
    return 0 if all(each.is_done for each in stopped) else 1


def stop_line(stopped: Stopped, style: Style = Style()) -> str:  # noqa: B008  (immutable)
    """What came of a stop, in a line; where something is left, what."""
    job, end = stopped.job, stopped.job.end
    line = ended_line(job, style)
    if stopped.outcome == "already_ended":
        return f"{line}; it had ended already"
    if stopped.outcome == "host_away":
        return f"{line}; nothing was done, as {safe(job.host_name)} says nothing"
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
        why = safe(end.error) if end.cause == "stopped" else ""
        why = why or "the kernel cannot say whether anything is left"
        line += f"; {stopped.outcome.replace('_', ' ')}: {why}"
    return f"{line}; kept: {', '.join(end.kept)}" if end.kept else line


def _release(args: Args) -> int:
    from taskyard import config, paths
    from taskyard.relay import door

    was = door.release(paths.home(), config.load())
    return answer(args, lambda: {"released": was}, lambda: ["Notices flow again." if was else "Nothing was held back."])


STOP = Command(
    _run,
    _arguments,
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
