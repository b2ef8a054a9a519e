"""`taskyard task add`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.fields import add_fields, extras, metadata, text_of, trust_typed
from taskyard.cli.task.shown import answer_task
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser


def _arguments(parser: Parser) -> None:
    parser.add("subject", metavar="SUBJECT", help="What is to be done, in one line; - reads standard input.")
    parser.add_ids("--blocked-by", help="The tasks it waits for: 1 2, 1,2 or repeated.")
    parser.add_ids("--blocks", help="The tasks that wait for it.")
    add_fields(parser)


def _run(args: Args) -> int:
    if args.subject == "-" and args.description == "-":
        raise UsageError("Standard input can be the subject or the description, not both.")
    subject, description = text_of(args.subject, "subject") or "", text_of(args.description, "description")
    if args.subject == "-" and description is None:
        subject, _, rest = subject.partition("\n")
        description = rest.strip() or None
    with open_yard(args) as yard:
        task = yard.tasks.create(
            subject,
            description=description,
            active_form=args.active_form,
            owner=args.owner,
            blocks=args.blocks,
            blocked_by=args.blocked_by,
            metadata=metadata(args),
            **extras(args),
        )
        trust_typed(args)
        return answer_task(args, yard, task)


ADD = Command(
    _run,
    _arguments,
    "Put a new pending task on the list. From standard input, the first line is the subject and the\n"
    "rest the description.",
    examples=(
        "taskyard task add 'Port the importer' --blocked-by 12",
        "taskyard task add 'Fix the build' --priority 1 --label ci --accept 'make test'",
        "id=$(taskyard task add -q 'Write the notes')",
    ),
    exits=("4  a dependency or the parent names no task", "5  the dependencies would be a cycle, or a hook refused"),
)
