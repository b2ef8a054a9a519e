"""`taskyard wait`, `stop`, `pause`, `resume`, `send`: steering jobs that any process started."""

from __future__ import annotations

import sys

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, ended_line, exit_code, jobs_of
from taskyard.cli.output import answer
from taskyard.cli.values import seconds
from taskyard.errors import UsageError
from taskyard.runtime.records import job_to_json
from taskyard.runtime.steering import check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.model import Job
    from taskyard.runtime.steering import Stopped


def _id_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="ID", help="The job, or several.")


def _one_argument(parser: Parser) -> None:
    parser.add("id", metavar="ID", help="The job.")


def _wait_arguments(parser: Parser) -> None:
    _id_arguments(parser)
    parser.add("--timeout", type=seconds, metavar="TIME", help="At most this long: 90s, 10m. Exit code 124 then.")


def _wait(args: Args) -> int:
    found = jobs_of(args).wait_all(args.ids, timeout=args.timeout)
    answer(args, lambda: _shown(found), lambda: [ended_line(job) for job in found], ids=args.ids)
    return exit_code(found)


def _shown(jobs: Sequence[Job]) -> object:
    """One id, one job; several, a list."""
    shown = [{"exitCode": None, "signal": None, **job_to_json(job)} for job in jobs]
    for record in shown:
        record["exit_code"] = record["exitCode"]
        record["output_lost"] = record.get("outputLost")
    return shown[0] if len(shown) == 1 else shown


def _stop_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="ID", help="The job, or several.")
    parser.add("--all", action="store_true", help="Every job of this user.")
    parser.add("--hold", action="store_true", help="Let no notice wake an agent until `taskyard release`.")
    parser.add("--grace", type=seconds, metavar="TIME", help="Between TERM and KILL, if not the job's own 3s.")


def _stop(args: Args) -> int:
    if bool(args.ids) == args.all:
        raise UsageError("Which job? Give its id, or several, or --all. See `taskyard ps`.")
    jobs = jobs_of(args)
    if args.hold:
        from taskyard.runtime import holding

        holding.put_on(jobs.home)
    ids = [job.id for job in jobs.list()] if args.all else args.ids
    stopped = jobs.stop(*ids, grace=args.grace)
    answer(args, lambda: _stops(stopped), lambda: [_stop_line(each) for each in stopped], ids=ids)
    return 0 if all(each.is_done for each in stopped) else 1


def _stops(stopped: Sequence[Stopped]) -> object:
    shown = [{**job_to_json(each.job), "outcome": each.outcome} for each in stopped]
    return shown[0] if len(shown) == 1 else shown


def _stop_line(stopped: Stopped) -> str:
    end = stopped.job.end
    line = f"{stopped.outcome.replace('_', ' ')}: {ended_line(stopped.job)}"
    if end is not None and end.survivors:
        line += f"; still alive: {', '.join(map(str, end.survivors))}"
    if end is not None and end.kept:
        line += f"; kept: {', '.join(end.kept)}"
    return line


def _pause(args: Args) -> int:
    jobs = jobs_of(args)
    done = jobs.pause(args.id)
    is_paused = done or jobs.get(args.id).is_paused
    return _steered(args, done, "paused", "was paused already" if is_paused else "has not begun, or is about to end")


def _resume(args: Args) -> int:
    return _steered(args, jobs_of(args).resume(args.id), "goes on", "was not paused")


def _send_arguments(parser: Parser) -> None:
    _one_argument(parser)
    parser.add("text", nargs="?", metavar="TEXT", help="A line; from stdin if not given.")
    parser.add("-n", "--no-newline", action="store_true", help="Exactly this text, without a newline behind it.")
    parser.add("--eof", action="store_true", help="Then let it read to the end.")


def _send(args: Args) -> int:
    text = sys.stdin.read() if args.text is None else args.text + ("" if args.no_newline else "\n")
    check_text(text)
    done = jobs_of(args).send(args.id, text, close=args.eof)
    return _steered(args, done, "got it", "takes no input, or does not read: start it with --stdin or --pty")


def _steered(args: Args, done: bool, yes: str, no: str) -> int:
    answer(args, lambda: {"id": args.id, "done": done}, lambda: [f"{args.id} {yes if done else no}."], ids=[args.id])
    return 0 if done else 5


WAIT = Command(
    _wait,
    _wait_arguments,
    "Wait until jobs are over, and end as they did.",
    examples=("taskyard wait b1a2b3c4d --timeout 10m",),
    exits=EXITS,
)
STOP = Command(
    _stop,
    _stop_arguments,
    "End jobs with everything they started. `stopped` means that the kernel says nobody is left.",
    examples=("taskyard stop b1a2b3c4d", "taskyard stop --all --hold"),
)
PAUSE = Command(
    _pause, _one_argument, "Stop every process of a job, and its clock.", examples=("taskyard pause b1a2b3c4d",)
)
RESUME = Command(_resume, _one_argument, "Let a paused job go on.", examples=("taskyard resume b1a2b3c4d",))
SEND = Command(
    _send, _send_arguments, "Type into a job that was started with --stdin or --pty.", examples=("taskyard send ID y",)
)
