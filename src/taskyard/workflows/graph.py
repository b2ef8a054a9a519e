"""A picture of a workflow: an arrow runs from a step to those that need it. Written, never read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.workflows.model import Definition, Step, StepState

_DOT_LOOK = {
    "waiting": 'style="rounded"',
    "running": 'style="rounded,bold", color="blue"',
    "completed": 'style="rounded,filled", fillcolor="lightgrey"',
    "failed": 'style="rounded,bold", color="red"',
    "skipped": 'style="rounded,dashed"',
}
_MERMAID_LOOK = {
    "running": "stroke:#06c,stroke-width:3px",
    "completed": "fill:#ddd,color:#555",
    "failed": "stroke:#c00,stroke-width:3px",
    "skipped": "stroke-dasharray: 4",
}


def drawn(workflow: Definition, states: Mapping[str, StepState], how: str) -> str:
    """The workflow as `mermaid` or `dot`, with how each step stands."""
    return _mermaid(workflow, states) if how == "mermaid" else _dot(workflow, states)


def _mermaid(workflow: Definition, states: Mapping[str, StepState]) -> str:
    names = {step.id: f"s{at}" for at, step in enumerate(workflow.steps)}
    lines = ["flowchart LR"]
    # Ids are letters, digits, _ and - alone: nothing in them can end a label.
    lines += [f'  {names[step.id]}["{_label(step)}"]:::{states[step.id].status}' for step in workflow.steps]
    lines += [f"  {names[need]} --> {names[step.id]}" for step in workflow.steps for need in step.needs]
    lines += [f"  classDef {status} {look}" for status, look in _MERMAID_LOOK.items()]
    return "\n".join(lines) + "\n"


def _dot(workflow: Definition, states: Mapping[str, StepState]) -> str:
    name = workflow.name.replace("\\", "\\\\").replace('"', '\\"')
    lines = [f'digraph "{name}" {{', "  rankdir=LR;", "  node [shape=box];"]
    lines += [
        f'  "{step.id}" [label="{_label(step)}", {_DOT_LOOK[states[step.id].status]}];' for step in workflow.steps
    ]
    lines += [f'  "{need}" -> "{step.id}";' for step in workflow.steps for need in step.needs]
    return "\n".join([*lines, "}"]) + "\n"


def _label(step: Step) -> str:
    return step.id if step.kind == "run" else f"{step.id} ({step.kind})"
