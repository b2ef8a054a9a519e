"""`taskyard workflow list`: the runs that are known."""

from __future__ import annotations

from taskyard import paths
from taskyard.cli.command import Command
from taskyard.cli.output import answer
from taskyard.clock import now_ms
from taskyard.errors import Damaged, TaskyardError
from taskyard.kinds.workflow import Workflow
from taskyard.view.text import duration, safe
from taskyard.workflows.finding import all_runs, as_left, standing, worker_of
from taskyard.workflows.model import COMPLETED, FAILED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.workflows.journal import Run

#: Runs that are shown unless all are asked for: a screen full.
_MOST = 20


def _arguments(parser: Parser) -> None:
    parser.add("--all", action="store_true", help=f"All of them, not only the last {_MOST}.")


def _run(args: Args) -> int:
    home = paths.home()
    runs = all_runs(home)
    shown = [_about(home, run) for run in (runs if args.all else runs[:_MOST])]
    hidden = len(runs) - len(shown)
    return answer(args, lambda: shown, lambda: _lines(shown, hidden), ids=[str(one["run"]) for one in shown])


def _about(home: str, run: Run) -> dict[str, object]:
    """One run: what it is, and how far."""
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
    worker = worker_of(home, run, run.id)
    states = standing(run, workflow)
    if worker is None:
        states = as_left(home, states)
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


def _lines(shown: Sequence[dict[str, object]], hidden: int) -> Iterator[str]:
    if not shown:
        yield "No runs of workflows."
    for one in shown:
        began = one["began"]
        age = f"{duration((now_ms() - began) / 1000)} ago" if isinstance(began, int) and began else ""
        steps = f"{one['completed']} of {one['steps']} steps"
        file = safe(str(one["file"])) if one["file"] else ""
        words = (str(one["run"]), str(one["status"]), safe(str(one["name"] or "?")), steps, age, file)
        yield "  ".join(filter(None, words))
    if hidden:
        yield f"{hidden} more: --all"


LIST = Command(
    _run,
    _arguments,
    "The runs of workflows that are known, the one touched last first. An unfinished one can be resumed.",
    examples=("taskyard workflow list", "taskyard workflow list --all --json"),
)
