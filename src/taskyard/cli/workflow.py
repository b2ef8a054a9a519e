"""`taskyard workflow run | resume | list | show`: steps that run as jobs, resumable after a crash.

The internal command `__workflow_tasks FILE` is the program of a step that creates tasks
(`taskyard.jobs.kinds.workflow`): it adds them to the list and waits until all are completed. A task that exists
from a killed attempt is found by its `external` id and not added again.
"""

from __future__ import annotations

import json
import os

from taskyard import config
from taskyard.cli.job import JOB_EXIT_CODES, start_or_watch
from taskyard.cli.main import Command
from taskyard.cli.output import answer, open_yard, print_info, print_line, style, warn
from taskyard.cli.parser import assignment, seconds
from taskyard.core.system import now_ms
from taskyard.core.text import colorize, duration, escape_control, padded, width
from taskyard.core.values import as_list, as_object, as_text
from taskyard.errors import Damaged, TaskyardError, UsageError
from taskyard.jobs.exit_record import read_json
from taskyard.jobs.kinds.workflow import Workflow
from taskyard.jobs.model import is_job_id
from taskyard.jobs.workflow.journal import active_job, list_runs, reconcile_states, step_states
from taskyard.jobs.workflow.model import COMPLETED, FAILED, StepState
from taskyard.jobs.workflow.parse import draw_graph

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.core.text import Style
    from taskyard.jobs.workflow.journal import Run
    from taskyard.jobs.workflow.model import Definition, Step
    from taskyard.tasks.model import Task
    from taskyard.yard import Yard


#: Runs shown by default: one screen.
_MAX_RUNS = 20


def _list_arguments(parser: Parser) -> None:
    parser.add("--all", action="store_true", help=f"Show all runs, not only the last {_MAX_RUNS}.")


def _run_list(args: Args) -> int:
    home = config.home()
    runs = list_runs(home)
    shown = [_run_summary(home, run) for run in (runs if args.all else runs[:_MAX_RUNS])]
    hidden = len(runs) - len(shown)
    return answer(args, lambda: shown, lambda: _list_lines(shown, hidden), ids=[str(one["run"]) for one in shown])


def _run_summary(home: str, run: Run) -> dict[str, object]:
    """Return the facts and progress of one run."""
    began = next((at for entry in run.entries() if isinstance(at := entry.get("at"), int)), 0)
    about: dict[str, object] = {"run": run.id, "name": None, "status": "damaged", "job": None, "began": began}
    about |= {"steps": 0, "completed": 0, "failed": 0, "file": None}
    try:
        spec = Workflow.from_json(run.wanted())
        workflow = spec.checked()
    except (Damaged, TaskyardError):
        return about
    finally:
        run.close()
    worker = active_job(home, run, run.id)
    states = step_states(run, workflow)
    if worker is None:
        states = reconcile_states(home, states)
    run.close()
    completed = sum(state.status == COMPLETED for state in states.values())
    failed = sum(state.status == FAILED for state in states.values())
    if worker is not None:
        status = "running"
    elif all(state.is_over for state in states.values()):
        status = "failed" if failed else "completed"
    else:
        status = "unfinished"
    about |= {"name": workflow.name, "status": status, "job": worker.id if worker is not None else None}
    return about | {"steps": len(states), "completed": completed, "failed": failed, "file": spec.source}


def _list_lines(shown: Sequence[dict[str, object]], hidden: int) -> Iterator[str]:
    if not shown:
        yield "No workflow runs."
    for one in shown:
        began = one["began"]
        age = f"{duration((now_ms() - began) / 1000)} ago" if isinstance(began, int) and began else ""
        steps = f"{one['completed']} of {one['steps']} steps"
        file = escape_control(str(one["file"])) if one["file"] else ""
        words = (str(one["run"]), str(one["status"]), escape_control(str(one["name"] or "?")), steps, age, file)
        yield "  ".join(filter(None, words))
    if hidden:
        yield f"{hidden} more: --all"


LIST = Command(
    _run_list,
    _list_arguments,
    "List workflow runs, last changed first. Unfinished runs can be resumed.",
    examples=("taskyard workflow list", "taskyard workflow list --all --json"),
)


def _run_arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="Workflow file, YAML or JSON.")
    parser.add("--env", type=assignment, action="append", default=[], metavar="X=Y", help="Set a variable; repeatable.")
    parser.add("--cwd", metavar="DIR", help="Working directory; default: the current one.")
    _add_start_options(parser)


def _add_start_options(parser: Parser) -> None:
    parser.add("-d", "--detach", action="store_true", help="Run in the background and print the job id.")
    parser.add(
        "--timeout", type=seconds, metavar="TIME", help="Stop the run after this time: 90s, 10m; it can be resumed."
    )
    parser.add(
        "--on-parent-exit",
        choices=("kill", "keep"),
        help="Kill or keep the run when the process, agent or job that started it ends.",
    )


def _resume_arguments(parser: Parser) -> None:
    parser.add("id", metavar="RUN", help="The run, or any job that executed it.")
    parser.add("--failed", action="store_true", help="Also rerun failed steps and the steps skipped because of them.")
    parser.add(
        "--new", action="store_true", help="Use the current version of the run's file. Completed steps stay completed."
    )
    parser.add("--file", metavar="FILE", help="Like --new, with another file.")
    _add_start_options(parser)


def _run_run(args: Args) -> int:
    spec = Workflow.read(args.file, env=dict(args.env))
    place = {"cwd": args.cwd, "task_list": args.list, "tasks_dir": args.tasks_dir}
    return _start(args, spec._replace(**place))


def _resume(args: Args) -> int:
    if args.new and args.file:
        raise UsageError("Give either --new (the run's file) or --file (another file).")
    file = args.file or (_file_of(args.id) if args.new else None)
    spec = Workflow.resume(args.id, failed=args.failed, file=file)
    name = escape_control(spec.source or "a definition without a file")
    if file is None and spec.has_changed():
        warn(f"{name} has changed since the run started. The run uses the old definition; --new uses the file.")
    print_info(args, f"Run {spec.resumes} continues with {name}, sha256 {spec.sha256[:12]}.")
    return _start(args, spec)


def _file_of(run: str) -> str:
    from taskyard import config
    from taskyard.core.values import as_text
    from taskyard.jobs.workflow.journal import find_run

    found, wanted = find_run(config.home(), run)
    found.close()
    if not (source := as_text(wanted.get("source"))):
        raise UsageError(f"The run {run} was not started from a file: give one with --file.")
    return source


def _start(args: Args, spec: Workflow) -> int:
    return start_or_watch(args, spec._replace(on_parent_exit=args.on_parent_exit, timeout=args.timeout))


RUN = Command(
    _run_run,
    _run_arguments,
    "Run the steps of a workflow, each as its own job, in parallel where their dependencies allow. Progress "
    "is shown and\n"
    "recorded: after a crash `taskyard workflow resume` continues the run. Ctrl+B and Ctrl+C work as in "
    "`taskyard run`.",
    examples=("taskyard workflow run ci.yaml", "taskyard workflow run -d release.yaml --env VERSION=1.4"),
    exits=(*JOB_EXIT_CODES, "1  a step failed", "130  Ctrl+C"),
)
RESUME = Command(
    _resume,
    _resume_arguments,
    "Resume a run that was stopped, killed or lost with its machine. Finished steps are not run again, "
    "including those\n"
    "that finished after the run was lost. The run keeps its directory, variables and definition; --new reads "
    "the\n"
    "current definition from the file.",
    examples=(
        "taskyard workflow resume w3k9x0q2m",
        "taskyard workflow resume --failed w3k9x0q2m",
        "taskyard workflow resume --failed --new w3k9x0q2m",
    ),
    exits=(
        *JOB_EXIT_CODES,
        "1  a step failed",
        "5  another job executes the run, or no step is left to run",
        "130  Ctrl+C",
    ),
)


_TOKENS = {"completed": "pass", "failed": "fail", "running": "default", "waiting": "muted", "skipped": "muted"}


def _show_arguments(parser: Parser) -> None:
    parser.add("what", metavar="RUN", help="A run, any job that executed it, or a file.")
    parser.add("--graph", choices=("mermaid", "dot"), help="Print the steps as a graph.")


def _run_show(args: Args) -> int:
    about: dict[str, object] = {"run": None, "job": None, "file": None, "sha256": None, "changed": None}
    if is_job_id(args.what) and not os.path.lexists(args.what):
        from taskyard.jobs.workflow.journal import active_job, find_run, reconcile_states, step_states

        home = config.home()
        run, wanted = find_run(home, args.what)
        spec = Workflow.from_json(wanted)
        workflow = spec.checked()
        worker = active_job(home, run, args.what)
        states = step_states(run, workflow)
        if worker is None:
            states = reconcile_states(home, states)
        about |= {"run": run.id, "job": None if worker is None else worker.id}
        about |= {"file": spec.source, "sha256": spec.sha256, "changed": spec.has_changed()}
        run.close()
    else:
        spec = Workflow.read(args.what)
        workflow = spec.checked()
        about |= {"file": spec.source, "sha256": spec.sha256, "changed": False}
        states = {step.id: StepState() for step in workflow.steps}
    steps = [_step_json(step, states[step.id]) for step in workflow.steps]
    graph = draw_graph(workflow, states, args.graph) if args.graph else None
    return answer(
        args,
        lambda: {"name": workflow.name, **about, "steps": steps, "graph": graph},
        lambda: [graph.rstrip("\n")] if graph else _show_lines(workflow, states, about, style(args)),
        ids=[step.id for step in workflow.steps],
    )


def _step_json(step: Step, state: StepState) -> dict[str, object]:
    return {
        "id": step.id,
        "kind": step.kind,
        "needs": list(step.needs),
        "if": step.condition or None,
        "status": state.status,
        "job": state.job,
        "exit_code": state.exit_code,
        "why": state.why or None,
    }


def _show_lines(
    workflow: Definition, states: Mapping[str, StepState], about: Mapping[str, object], look: Style
) -> Iterator[str]:
    run = f", run {about['run']}" if about["run"] else ""
    worker = f" (job {about['job']} works on it)" if about["job"] else ""
    yield f"{escape_control(workflow.name)}{run}{worker}"
    if about["run"] and about["file"]:
        changed = ", which has changed since" if about["changed"] else ""
        yield f"  from {escape_control(str(about['file']))}{changed}"
    widest = max(width(step.id) for step in workflow.steps)
    for step in workflow.steps:
        state = states[step.id]
        facts = [colorize(padded(state.status, 9), _TOKENS[state.status], look)]
        facts += [state.job] if state.job else []
        facts += [escape_control(state.why)] if state.why else []
        facts += [f"needs {', '.join(step.needs)}"] if step.needs else []
        yield f"  {padded(step.id, widest)}  {'  '.join(facts)}"


SHOW = Command(
    _run_show,
    _show_arguments,
    "Show the steps of a run with their status, or validate a file and show its steps.",
    examples=("taskyard workflow show w3k9x0q2m", "taskyard workflow show ci.yaml --graph mermaid"),
)


_SYSTEM = "taskyard-workflow"


def _tasks_arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="As `taskyard.jobs.kinds.workflow` wrote it.")


def _run_tasks(args: Args) -> int:
    wanted = read_json(args.file) or {}
    tasks = [as_object(each) or {} for each in as_list(wanted.get("tasks")) or []]
    key = as_text(wanted.get("key"))
    if not tasks or not key:
        raise Damaged(args.file, "it names no tasks")
    keys = [f"{key}/{at + 1}" for at in range(len(tasks))]
    with open_yard(args) as yard:
        yard.tasks.import_(json.dumps([_import_entry(task, at, keys) for at, task in enumerate(tasks)]), "json")
        ids = {theirs: task.id for theirs, task in _workflow_tasks(yard).items() if theirs in keys}
        if not args.as_json:
            for task_id in ids.values():
                print_line(f"#{task_id} {escape_control(yard.tasks.get(task_id).subject)}")
        gone = _wait_for_tasks(args, yard, keys)
    answer(args, lambda: {"tasks": list(ids.values()), "removed": gone}, list)
    return 1 if gone else 0


def _import_entry(task: dict[str, object], at: int, keys: list[str]) -> dict[str, object]:
    needs = [str(need) for need in as_list(task.get("needs")) or []]
    return {
        "id": str(at),
        "subject": task.get("subject"),
        "description": task.get("description") or None,
        "owner": task.get("owner"),
        "blockedBy": needs,
        "metadata": {"taskyard": {"external": {"system": _SYSTEM, "id": keys[at]}}},
    }


def _workflow_tasks(yard: Yard) -> dict[str, Task]:
    """Return the tasks that workflows added to the list, by key."""
    from taskyard.tasks.model import external_of

    found: dict[str, Task] = {}
    for task in yard.tasks.list():
        external = external_of(task)
        if external is not None and external.system == _SYSTEM:
            found[external.id] = task
    return found


def _wait_for_tasks(args: Args, yard: Yard, keys: list[str]) -> list[str]:
    """Wait until every task is completed; return the keys of those that were removed instead."""
    left = dict.fromkeys(keys)
    gone: list[str] = []
    while left:
        there = _workflow_tasks(yard)
        for key in list(left):
            task = there.get(key)
            if task is not None and not task.is_done:
                continue
            del left[key]
            if task is None:
                gone.append(key)
            if not args.as_json:
                print_line(f"Task {key.rpartition('/')[2]} was removed." if task is None else f"#{task.id} is done.")
        if left:
            yard.tasks.store.wait(yard.settings.poll_interval)
    return gone


TASKS = Command(_run_tasks, _tasks_arguments, "Create a step's tasks on the list, and wait until they are completed.")
