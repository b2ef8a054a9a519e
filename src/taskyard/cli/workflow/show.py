"""`taskyard workflow show`: what a workflow is, and how each step stands."""

from __future__ import annotations

import os

from taskyard import paths
from taskyard.cli.command import Command
from taskyard.cli.output import answer, style
from taskyard.kinds.workflow import Workflow
from taskyard.runtime.ids import is_job_id
from taskyard.view.glyphs import painted
from taskyard.view.text import padded, safe, width
from taskyard.workflows.graph import drawn
from taskyard.workflows.model import StepState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.view.glyphs import Style
    from taskyard.workflows.model import Definition, Step

_TOKENS = {"completed": "pass", "failed": "fail", "running": "default", "waiting": "muted", "skipped": "muted"}


def _arguments(parser: Parser) -> None:
    parser.add("what", metavar="RUN", help="A run, any job that worked on it, or a file.")
    parser.add("--graph", choices=("mermaid", "dot"), help="As a picture instead.")


def _run(args: Args) -> int:
    about: dict[str, object] = {"run": None, "job": None, "file": None, "sha256": None, "changed": None}
    if is_job_id(args.what) and not os.path.lexists(args.what):
        from taskyard.workflows.finding import as_left, find, standing, worker_of

        home = paths.home()
        run, wanted = find(home, args.what)
        spec = Workflow.from_json(wanted)
        workflow = spec.checked()
        worker = worker_of(home, run, args.what)
        states = standing(run, workflow)
        if worker is None:
            states = as_left(home, states)
        about |= {"run": run.id, "job": None if worker is None else worker.id}
        about |= {"file": spec.source, "sha256": spec.sha256, "changed": spec.has_changed()}
        run.close()
    else:
        spec = Workflow.read(args.what)
        workflow = spec.checked()
        about |= {"file": spec.source, "sha256": spec.sha256, "changed": False}
        states = {step.id: StepState() for step in workflow.steps}
    steps = [_step_json(step, states[step.id]) for step in workflow.steps]
    graph = drawn(workflow, states, args.graph) if args.graph else None
    return answer(
        args,
        lambda: {"name": workflow.name, **about, "steps": steps, "graph": graph},
        lambda: [graph.rstrip("\n")] if graph else _lines(workflow, states, about, style(args)),
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


def _lines(
    workflow: Definition, states: Mapping[str, StepState], about: Mapping[str, object], look: Style
) -> Iterator[str]:
    run = f", run {about['run']}" if about["run"] else ""
    worker = f" (job {about['job']} works on it)" if about["job"] else ""
    yield f"{safe(workflow.name)}{run}{worker}"
    if about["run"] and about["file"]:
        changed = ", which has changed since" if about["changed"] else ""
        yield f"  from {safe(str(about['file']))}{changed}"
    widest = max(width(step.id) for step in workflow.steps)
    for step in workflow.steps:
        state = states[step.id]
        facts = [painted(padded(state.status, 9), _TOKENS[state.status], look)]
        facts += [state.job] if state.job else []
        facts += [safe(state.why)] if state.why else []
        facts += [f"needs {', '.join(step.needs)}"] if step.needs else []
        yield f"  {padded(step.id, widest)}  {'  '.join(facts)}"


SHOW = Command(
    _run,
    _arguments,
    "The steps of a workflow: of a run with how each of them stands, of a file as they are written; checked before.",
    examples=("taskyard workflow show w3k9x0q2m", "taskyard workflow show ci.yaml --graph mermaid"),
)
