"""`taskyard task edit`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import open_yard
from taskyard.cli.task.fields import add_fields, extras, metadata, text_of, trust_typed
from taskyard.cli.task.shown import answer_task
from taskyard.cli.values import task_id
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.list_core import Extras

_CHANGES = ("subject", "description", "active_form", "owner", "status")


def _arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, metavar="ID", help="The task.")
    parser.add("--subject", metavar="TEXT", help="A new subject.")
    parser.add("--status", metavar="STATUS", help="pending, in_progress or completed.")
    add_fields(parser)
    parser.add_words("--clear", metavar="FIELD", dest="clear", help="Take optional fields away: priority, labels, …")
    parser.add("--token", metavar="TOKEN", help="Of the claim you hold: refused if it is no longer the current one.")
    parser.add("--force", action="store_true", help="With --status: although it is blocked or another's. It is logged.")


def _run(args: Args) -> int:
    given: Extras = extras(args)
    data = metadata(args)
    if not (given or data or args.clear) and all(getattr(args, name) is None for name in _CHANGES):
        raise UsageError(f"What shall be different about #{args.id}? See `taskyard task edit -h`.")
    with open_yard(args) as yard:
        task = yard.tasks.update(
            args.id,
            subject=args.subject,
            description=text_of(args.description, "description"),
            active_form=args.active_form,
            owner=args.owner,
            status=args.status,
            metadata=data,
            token=args.token,
            force=args.force,
            clear=args.clear or (),
            **given,
        )
        trust_typed(args)
        return answer_task(args, yard, task)


EDIT = Command(
    _run,
    _arguments,
    "Change fields and status of a task in one step: all of it or nothing. An empty --owner or\n"
    "--active-form takes it away; --clear takes optional fields away, also `held`, which sets a task\n"
    "aside after it lost three holders.",
    examples=(
        "taskyard task edit 12 --subject 'Port the CSV importer' --priority 2",
        "taskyard task edit 12 --clear due,labels --metadata 'ticket=\"A-7\"'",
    ),
)
