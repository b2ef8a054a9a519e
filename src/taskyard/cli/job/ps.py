"""`taskyard ps`: the jobs of this user, those inside others below them, each with what it printed last."""

from __future__ import annotations

import sys

from taskyard import paths
from taskyard.cli.command import Command
from taskyard.cli.job.shared import jobs_of
from taskyard.cli.output import answer, columns, is_terminal, say, style
from taskyard.clock import now_ms
from taskyard.live.last_line import last_line
from taskyard.runtime.families import with_all_inside
from taskyard.view.agent_text import agent_line
from taskyard.view.figures import up_the_tree
from taskyard.view.glyphs import painted
from taskyard.view.job_records import job_json
from taskyard.view.job_scope import Scope, Scoped
from taskyard.view.job_text import JobRow, job_rows, tree
from taskyard.view.pill import pill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.jobs import Jobs
    from taskyard.runtime.looking import Report
    from taskyard.runtime.model import Job

_NONE = "No job is running. Start one: taskyard run -d -- COMMAND; --all shows those that are over."


def _arguments(parser: Parser) -> None:
    parser.add("-a", "--all", action="store_true", help="Also jobs that have ended.")
    parser.add("-e", "--everywhere", action="store_true", help="Jobs of every project, not only of this one.")
    parser.add("--dismissed", action="store_true", help="With --all: also ended jobs that were dismissed.")
    parser.add("--host", metavar="HOST", help="Only those on this machine, where several share a database.")
    parser.add("--watch", action="store_true", help="Stay, and show every change as it happens.")


def _run(args: Args) -> int:
    jobs = jobs_of(args)
    if args.watch:
        from taskyard.cli.job.watching import watch

        return watch(args, jobs)
    wrong: list[str] = []
    return show(args, jobs, listed(args, jobs, report=lambda error: wrong.append(str(error))), wrong)


def listed(args: Args, jobs: Jobs, *, report: Report | None = None) -> Scoped:
    """The jobs that are asked for."""
    found = [job for job in jobs.list(ended=args.all, report=report) if args.host in (None, job.host_name)]
    is_everywhere = args.everywhere or args.host is not None
    return Scope("" if is_everywhere else paths.current_project(), dismissed=args.dismissed).of(found)


def show(args: Args, jobs: Jobs, scoped: Scoped, wrong: Sequence[str] = ()) -> int:
    """Print jobs, once. What each printed last is read only if it will be seen; `wrong` names unreadable ones."""
    found = scoped.jobs
    if not found and not wrong:
        say(args, _NONE if not args.all else "No job was started in this project.")
    if scoped.elsewhere:
        say(args, others(scoped.elsewhere))
    return answer(
        args,
        lambda: [
            {**job_json(row.job), "last_line": row.last_line, "total": row.total.to_json()}
            for row in rows_of(jobs, found)
        ],
        lambda: [*lines_of(args, rows_of(jobs, found)), *footer(args, found)],
        ids=(job.id for _, job in tree(found)),
        warnings=wrong,
    )


def others(count: int) -> str:
    """What is said of jobs of other projects that a view leaves out."""
    return f"{count} more in other projects: `taskyard ps --everywhere`."


def lines_of(args: Args, rows: Sequence[JobRow]) -> list[str]:
    """Jobs as a person sees them here."""
    return job_rows(rows, now=now_ms(), columns=columns(), style=style(args))


def footer(args: Args, found: Sequence[Job]) -> list[str]:
    """What runs in the background, in the words of every screen; programs that read rows get no other lines."""
    words = pill(found, now=now_ms()).in_words() if is_terminal(sys.stdout) else ""
    return [painted(words, "muted", style(args))] if words else []


def rows_of(jobs: Jobs, found: Sequence[Job], *, most: int | None = None) -> list[JobRow]:
    """Jobs as a tree, the first `most` of them, with what each printed last and took, all inside it among that."""
    rows = list(tree(found))[:most]
    totals = up_the_tree(with_all_inside(jobs.home, found), now_ms())
    return [JobRow(job, depth, _last_line(jobs.home, job), totals[job.id]) for depth, job in rows]


def _last_line(home: str, job: Job) -> str:
    if (line := agent_line(job)) is not None:
        return line
    return "" if job.is_far else last_line(home, job.id)  # what it printed is on its machine: `taskyard logs` asks


PS = Command(
    _run,
    _arguments,
    "The jobs of this project: state, how long each has run, what it has cost with all inside it,\n"
    "what it is, what it printed last. Jobs that were started inside another stand below it. Where machines share a\n"
    "database, those of every machine: one that was not heard of for too long has `disconnected` jobs.",
    examples=(
        "taskyard ps",
        "taskyard ps --watch",
        "taskyard ps --host forge",
        "taskyard ps --all --json | jq -r '.data[] | [.id, .status] | @tsv'",
    ),
)
