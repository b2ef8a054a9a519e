"""`taskyard dismiss`: leave ended jobs out of every view."""

from __future__ import annotations

from taskyard import paths
from taskyard.cli.command import Command
from taskyard.cli.job.shared import job_id, jobs_of
from taskyard.cli.output import answer, say, style
from taskyard.errors import UsageError
from taskyard.view.job_records import job_json
from taskyard.view.job_scope import Scope
from taskyard.view.job_text import ended_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("ids", nargs="*", metavar="JOB", help="Ended jobs: an id, the beginning of one, a name, or `last`.")
    parser.add("--ended", action="store_true", help="Every ended job of this project.")
    parser.add("--everywhere", action="store_true", help="With --ended: of every project.")


def _run(args: Args) -> int:
    if bool(args.ids) == args.ended:
        raise UsageError("Name jobs to dismiss, or use --ended alone. See `taskyard ps --all`.")
    if args.everywhere and not args.ended:
        raise UsageError("--everywhere goes with --ended.")
    jobs = jobs_of(args)
    if args.ended:
        scope = Scope("" if args.everywhere else paths.current_project())
        ids = [job.id for job in scope.of(jobs.list(ended=True)).jobs if job.is_final and not job.is_far]
    else:
        ids = list(dict.fromkeys(job_id(jobs, text) for text in args.ids))
    done = jobs.dismiss(*ids)
    if not done:
        say(args, "No ended job to dismiss.")
    return answer(
        args,
        lambda: [job_json(job) for job in done],
        lambda: [f"{ended_line(job, style(args))}; dismissed" for job in done],
        ids=[job.id for job in done],
    )


DISMISS = Command(
    _run,
    _arguments,
    "Leave ended jobs out of `ps --all`, the terminal UI and the web page, and mark their notices as read. Their\n"
    "records and output stay until `taskyard gc` collects them; `taskyard ps --all --dismissed` lists them.",
    examples=("taskyard dismiss last", "taskyard dismiss --ended"),
    exits=("4  no such job", "5  it has not ended"),
)
