"""`taskyard workflow run` and `resume`: a workflow as a job, watched from here or left in the background."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.job.shared import EXITS, start_or_watch
from taskyard.cli.output import say, warn
from taskyard.cli.values import assignment, seconds
from taskyard.errors import UsageError
from taskyard.kinds.workflow import Workflow
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="YAML or JSON.")
    parser.add("--env", type=assignment, action="append", default=[], metavar="X=Y", help="Set a variable; repeatable.")
    parser.add("--cwd", metavar="DIR", help="Where it runs, if not here.")
    _how(parser)


def _how(parser: Parser) -> None:
    parser.add("-d", "--detach", action="store_true", help="Leave it in the background, and print its id.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="End it after this long: 90s, 10m; resume goes on.")
    parser.add("--on-parent-exit", choices=("kill", "keep"), help="When whoever started it ends.")


def _resume_arguments(parser: Parser) -> None:
    parser.add("id", metavar="RUN", help="The run, or any job that worked on it.")
    parser.add("--failed", action="store_true", help="Also run again what failed, and what was skipped for it.")
    parser.add("--new", action="store_true", help="Use the run's file as it is now. Completed steps stay completed.")
    parser.add("--file", metavar="FILE", help="The same with another file.")
    _how(parser)


def _run(args: Args) -> int:
    spec = Workflow.read(args.file, env=dict(args.env))
    place = {"cwd": args.cwd, "task_list": args.list, "tasks_dir": args.tasks_dir}
    return _started(args, spec._replace(**place))


def _resume(args: Args) -> int:
    if args.new and args.file:
        raise UsageError("--new is the file of the run, --file another one: not both.")
    file = args.file or (_file_of(args.id) if args.new else None)
    spec = Workflow.resume(args.id, failed=args.failed, file=file)
    name = safe(spec.source or "a definition that came from no file")
    if file is None and spec.has_changed():
        warn(f"{name} has changed since the run began. The run uses the old definition; --new uses the file.")
    say(args, f"Run {spec.resumes} goes on with {name}, sha256 {spec.sha256[:12]}.")
    return _started(args, spec)


def _file_of(run: str) -> str:
    from taskyard import paths
    from taskyard.shapes import as_text
    from taskyard.workflows.finding import find

    found, wanted = find(paths.home(), run)
    found.close()
    if not (source := as_text(wanted.get("source"))):
        raise UsageError(f"The run {run} was started from no file: give one with --file.")
    return source


def _started(args: Args, spec: Workflow) -> int:
    return start_or_watch(args, spec._replace(on_parent_exit=args.on_parent_exit, timeout=args.timeout))


RUN = Command(
    _run,
    _arguments,
    "Run the steps of a workflow, each as a job of its own, side by side where their needs allow. What happens is\n"
    "shown, and written down: after a crash `taskyard workflow resume` goes on with it. Ctrl+B and Ctrl+C work as in\n"
    "`taskyard run`.",
    examples=("taskyard workflow run ci.yaml", "taskyard workflow run -d release.yaml --env VERSION=1.4"),
    exits=(*EXITS, "1  a step failed", "130  Ctrl+C"),
)
RESUME = Command(
    _resume,
    _resume_arguments,
    "Go on with a run that was stopped, killed or lost with its machine: steps that are finished are not run again,\n"
    "also those that ended unnoticed. It runs in the folder, and with the variables and the definition, that it was\n"
    "started with; --new takes the definition from the file as it is now.",
    examples=(
        "taskyard workflow resume w3k9x0q2m",
        "taskyard workflow resume --failed w3k9x0q2m",
        "taskyard workflow resume --failed --new w3k9x0q2m",
    ),
    exits=(*EXITS, "1  a step failed", "5  somebody works on it, or nothing is left to do", "130  Ctrl+C"),
)
