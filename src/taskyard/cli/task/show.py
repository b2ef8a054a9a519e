"""`taskyard task show`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard, style
from taskyard.cli.task.shown import look, open_blockers, rows
from taskyard.cli.values import task_id
from taskyard.clock import now_ms
from taskyard.runtime.families import of_task
from taskyard.shapes import as_object
from taskyard.tasklist import extras
from taskyard.view.figures import together
from taskyard.view.glyphs import painted
from taskyard.view.records import task_json
from taskyard.view.text import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Lease, Task
    from taskyard.view.figures import Figures

#: Of an acceptance command's output this much is shown; the rest is in `--json`.
_LAST_LINES = 5


def _arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")


def _run(args: Args) -> int:
    with open_yard(args) as yard:
        task = yard.tasks.get(args.id)
        waits_for = open_blockers(yard, task)
        took = together(of_task(yard.home, f"{yard.tasks.name}/{task.id}"), now_ms())
        return answer(
            args,
            lambda: {**task_json(task, open_blockers=waits_for), "took": took.to_json()},
            lambda: _lines(args, yard, task, waits_for, took),
            ids=[task.id],
        )


def _lines(args: Args, yard: Yard, task: Task, waits_for: list[str], took: Figures) -> Iterator[str]:
    yield from rows(args, yard, [task])
    facts = [*_facts(yard, task, waits_for), *_extras(task)]
    if took.jobs:
        facts.append(("took", took.in_words()))
    width = max(len(name) for name, _ in facts)
    look_of = style(args)
    for name, value in facts:
        yield f"  {painted(f'{name:<{width}}', 'muted', look_of)}  {value}"
    if task.description and task.description != task.subject:
        yield ""
        yield safe(task.description, lines=True)


def _facts(yard: Yard, task: Task, waits_for: list[str]) -> Iterator[tuple[str, str]]:
    yield "status", task.status.value.replace("_", " ") + (", set aside" if task.is_held else "")
    if task.owner:
        yield "owner", safe(task.owner) + (_held(task.lease) if task.lease else "")
    if waits_for:
        yield "waits for", _named(yard, waits_for)
    if task.blocks:
        yield "blocks", _named(yard, list(task.blocks))
    if task.active_form:
        yield "meanwhile", safe(task.active_form)
    now = now_ms()
    if task.created_at is not None:
        yield "created", f"{duration((now - task.created_at) / 1000)} ago"
    if task.updated_at is not None:
        yield "changed", f"{duration((now - task.updated_at) / 1000)} ago"


def _extras(task: Task) -> Iterator[tuple[str, str]]:
    if "priority" in task.extra:
        yield "priority", str(extras.priority_of(task))
    for name, words in (
        ("labels", extras.labels_of(task)),
        ("requires", extras.requires_of(task)),
        ("paths", extras.paths_of(task)),
    ):
        if words:
            yield name, safe(", ".join(words))
    if due := extras.due_of(task):
        yield "due", safe(due)
    if parent := extras.parent_of(task):
        yield "part of", f"#{parent}"
    if twin := extras.external_of(task):
        yield "also", safe(f"{twin.system} {twin.id}" + (f"  {twin.url}" if twin.url else ""))
    if acceptance := extras.acceptance_of(task):
        yield "accepted by", safe(acceptance.command)
    if (waits := as_object(task.extra.get("awaiting"))) is not None and not task.is_done:
        yield "waits for you", safe(f"{waits.get('reason')} (`taskyard trust {task.id}`)")
    if (evidence := as_object(task.extra.get("evidence"))) is not None:
        yield "evidence", _evidence(evidence)


def _evidence(found: dict[str, object]) -> str:
    output = safe(str(found.get("output", "")).strip(), lines=True).splitlines()[-_LAST_LINES:]
    return "\n    ".join([f"exit code {found.get('exit_code')}", *output])


def _held(lease: Lease) -> str:
    if lease.expires is None:
        return f", since {duration((now_ms() - lease.since) / 1000)}"
    return f", for another {duration((lease.expires - now_ms()) / 1000)} unless renewed"


def _named(yard: Yard, ids: list[str]) -> str:
    found = ((task_id, look(yard, task_id)) for task_id in ids)
    return ", ".join(f"#{task_id} {safe(task.subject)}" if task else f"#{task_id}" for task_id, task in found)


SHOW = Command(
    _run,
    _arguments,
    "Show everything about one task.",
    examples=("taskyard task show 12", "taskyard task show 12 --json | jq .data.metadata"),
    exits=("4  no such task; names the nearest, or that it can be restored",),
)
