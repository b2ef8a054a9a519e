"""Help of `taskyard` and of its command groups, its version, and the tables of verbs of the groups."""

from __future__ import annotations

from taskyard.cli.main import CommandEntry
from taskyard.cli.output import print_json, print_line
from taskyard.cli.parser import EXIT_CODES
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_TITLE = "Taskyard: the task engine for teams of AI agents."
_EXAMPLES = (
    "taskyard task add 'Port the importer' --blocked-by 12",
    "taskyard task next --by ada --start",
    "taskyard task list --watch",
    "taskyard run -d -- npm test",
)
_COMMON = ("--list NAME", "--by AGENT", "--tasks-dir DIR", "--json", "-q", "-v", "--no-color")


def show_help(table: Mapping[str, CommandEntry], names: Sequence[str], options: Sequence[str]) -> int:
    """Print the overview of a table of commands, or the version.

    Raises:
        UsageError: a group was named without a verb.
    """
    if "--version" in options and not names:
        return _version("--json" in options)
    if names and not {"-h", "--help"}.intersection(options):
        prog = " ".join(("taskyard", *names))
        verbs = ", ".join(name for name, row in table.items() if not row.hidden)
        raise UsageError(f"{prog} needs a verb: {verbs}. See `{prog} -h`.")
    for line in _help_lines(table, names):
        print_line(line)
    return 0


def _help_lines(table: Mapping[str, CommandEntry], names: Sequence[str]) -> Iterator[str]:
    prog = " ".join(("taskyard", *names))
    yield f"usage: {prog} {'VERB' if names else 'COMMAND'} …"
    yield ""
    if not names:
        yield _TITLE
        yield ""
    yield "verbs:" if names else "commands:"
    shown = {name: row.help for name, row in table.items() if not row.hidden and name}
    width = max(map(len, shown))
    for name, text in shown.items():
        yield f"  {name:<{width}}  {text}"
    yield ""
    if not names:
        yield "examples:"
        yield from (f"  {example}" for example in _EXAMPLES)
        yield ""
    yield f"options of every command: {', '.join(_COMMON)}"
    yield "exit codes:"
    yield from (f"  {line}" for line in EXIT_CODES)
    yield ""
    yield f"`{prog} {'VERB' if names else 'COMMAND'} -h` tells more."


def _version(as_json: bool) -> int:
    from taskyard import __version__

    if as_json:
        print_json({"data": {"version": __version__}})
    else:
        print_line(f"taskyard {__version__}")
    return 0


TASK_ROWS: Mapping[str, CommandEntry] = {
    "add": CommandEntry("taskyard.cli.task:ADD", "Put a task on the list"),
    "list": CommandEntry("taskyard.cli.task_views:LIST", "Show the tasks, live with --watch"),
    "show": CommandEntry("taskyard.cli.task_views:SHOW", "Show everything about one task"),
    "next": CommandEntry("taskyard.cli.task:NEXT", "Find a free task and claim it, in one step"),
    "claim": CommandEntry("taskyard.cli.task:CLAIM", "Take a task"),
    "start": CommandEntry("taskyard.cli.task:START", "Say that work begins"),
    "done": CommandEntry("taskyard.cli.task:DONE", "Say that it is done"),
    "reopen": CommandEntry("taskyard.cli.task:REOPEN", "Put a task back to pending"),
    "block": CommandEntry("taskyard.cli.task:BLOCK", "Let a task wait for others"),
    "unblock": CommandEntry("taskyard.cli.task:UNBLOCK", "Let a task no longer wait for others"),
    "assign": CommandEntry("taskyard.cli.task:ASSIGN", "Name a new owner, who gets mail"),
    "release": CommandEntry("taskyard.cli.task:RELEASE", "Put a task back into the pool"),
    "renew": CommandEntry("taskyard.cli.task:RENEW", "Hold on to a claim for longer"),
    "edit": CommandEntry("taskyard.cli.task:EDIT", "Change the fields of a task"),
    "rm": CommandEntry("taskyard.cli.task:RM", "Take tasks off the list"),
    "archive": CommandEntry("taskyard.cli.task:ARCHIVE", "Put completed tasks away"),
    "reset": CommandEntry("taskyard.cli.task:RESET", "Put the whole list away"),
    "restore": CommandEntry("taskyard.cli.task:RESTORE", "Bring removed tasks back"),
    "log": CommandEntry("taskyard.cli.task_views:LOG", "What happened, by whom and why"),
    "events": CommandEntry("taskyard.cli.task_views:EVENTS", "What happened, as JSON lines, live if wanted"),
    "import": CommandEntry("taskyard.cli.task_views:IMPORT", "Add the tasks of a JSON, Markdown or CSV file"),
    "export": CommandEntry("taskyard.cli.task_views:EXPORT", "The list as JSON, Markdown, CSV, DOT or Mermaid"),
}


TEAM_ROWS: Mapping[str, CommandEntry] = {
    "up": CommandEntry("taskyard.cli.team:UP", "Have a team of agents work a list until all is done"),
    "create": CommandEntry("taskyard.cli.team:CREATE", "Found a team"),
    "list": CommandEntry("taskyard.cli.team:LIST", "All teams, ours and Claude Code's"),
    "show": CommandEntry("taskyard.cli.team:SHOW", "Who is in a team, who lives, and what each does"),
    "join": CommandEntry("taskyard.cli.team:JOIN", "Let an agent into a team, or be one of its members here"),
    "leave": CommandEntry("taskyard.cli.team:LEAVE", "Take an agent out; its unfinished tasks go back to the pool"),
    "progress": CommandEntry("taskyard.cli.team:PROGRESS", "Say that an agent gets on with its work, or has none left"),
    "approve": CommandEntry("taskyard.cli.team:APPROVE", "Let a member go on with the plan it asked about"),
    "reject": CommandEntry("taskyard.cli.team:REJECT", "Send a member back to its plan, with the reason"),
    "remove": CommandEntry(
        "taskyard.cli.team:REMOVE", "Dissolve a team; everyone's unfinished tasks go back to the pool"
    ),
}


WORKFLOW_ROWS = {
    "run": CommandEntry("taskyard.cli.workflow:RUN", "Run the workflow in a file"),
    "resume": CommandEntry("taskyard.cli.workflow:RESUME", "Go on with a run that was cut short"),
    "list": CommandEntry("taskyard.cli.workflow:LIST", "The runs, the newest first, and how they stand"),
    "show": CommandEntry("taskyard.cli.workflow:SHOW", "The steps of a run or of a file, and how they stand"),
}


DREAM_ROWS = {
    "": CommandEntry("taskyard.cli.dream:DREAM", "Bring the memory in order, if it is time"),
    "status": CommandEntry("taskyard.cli.dream:STATUS", "When the last one was, and what the next one waits for"),
    "history": CommandEntry("taskyard.cli.dream:HISTORY", "Earlier states of the memory"),
    "undo": CommandEntry("taskyard.cli.dream:UNDO", "Put an earlier state back"),
}


A2A_ROWS: Mapping[str, CommandEntry] = {
    "serve": CommandEntry("taskyard.cli.server:SERVE", "Offer agents of this machine to others, over A2A"),
    "token": CommandEntry("taskyard.cli.server:TOKEN", "The token of one who may ask for them"),
    "callers": CommandEntry("taskyard.cli.server:CALLERS", "Everyone who may ask for them"),
}
