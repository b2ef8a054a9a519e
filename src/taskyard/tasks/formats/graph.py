"""Dependency graphs for export: DOT for Graphviz, Mermaid for Markdown pages. Written, never read.

An arrow leads from a task to the one that waits for it; a dotted line from a task to its parts. Labels are
escaped: nothing in a subject can end its quotes or become markup.
"""

from __future__ import annotations

from taskyard.tasks.model import TaskStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.tasks.formats.exchange import ExportedTask

#: Characters; longer subjects make boxes that no page can hold.
LONGEST_LABEL = 80

_DOT_STYLE = {
    TaskStatus.PENDING: 'style="rounded"',
    TaskStatus.IN_PROGRESS: 'style="rounded,bold", color="blue"',
    TaskStatus.COMPLETED: 'style="rounded,filled", fillcolor="lightgrey"',
}
_PLAIN_IN_MERMAID = frozenset(" .,:!?/()'+-=@_")


def to_dot(tasks: Sequence[ExportedTask], *, list_name: str = "") -> str:
    """Return a directed graph for Graphviz."""
    lines = [f"digraph {_dot_text(list_name or 'tasks')} {{", "  rankdir=LR;", "  node [shape=box];"]
    for item in tasks:
        task = item.task
        lines.append(f"  {_dot_text(task.id)} [label={_dot_text(_label(item))}, {_DOT_STYLE[task.status]}];")
    for item in tasks:
        here = _dot_text(item.task.id)
        lines += [f"  {_dot_text(blocker)} -> {here};" for blocker in item.blocked_by]
        if item.parent:
            lines.append(f"  {_dot_text(item.parent)} -> {here} [style=dotted, arrowhead=none];")
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(tasks: Sequence[ExportedTask]) -> str:
    """Return a flowchart for Mermaid."""
    lines = ["flowchart LR"]
    for item in tasks:
        lines.append(f'  t{item.task.id}["{_mermaid_text(_label(item))}"]:::{item.task.status.value}')
    for item in tasks:
        lines += [f"  t{blocker} --> t{item.task.id}" for blocker in item.blocked_by]
        if item.parent:
            lines.append(f"  t{item.parent} -.- t{item.task.id}")
    lines.append("  classDef pending stroke-dasharray: 4")
    lines.append("  classDef in_progress stroke:#06c,stroke-width:3px")
    lines.append("  classDef completed fill:#ddd,color:#555")
    return "\n".join(lines) + "\n"


def _label(item: ExportedTask) -> str:
    subject = "".join(char if char.isprintable() else " " for char in item.task.subject)
    if len(subject) > LONGEST_LABEL:
        subject = subject[: LONGEST_LABEL - 1] + "…"
    return f"#{item.task.id} {subject}"


def _dot_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _mermaid_text(text: str) -> str:
    """Escape everything but letters, digits and harmless punctuation as Mermaid's `#code;`."""
    return "".join(
        char
        if char.isalnum() or char in _PLAIN_IN_MERMAID or (char.isprintable() and not char.isascii())
        else f"#{ord(char)};"
        for char in text
    )
