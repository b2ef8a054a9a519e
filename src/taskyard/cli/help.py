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
    yield f"Run `{prog} {'VERB' if names else 'COMMAND'} -h` for details."


def _version(as_json: bool) -> int:
    from taskyard import __version__

    if as_json:
        print_json({"data": {"version": __version__}})
    else:
        print_line(f"taskyard {__version__}")
    return 0


TASK_ROWS: Mapping[str, CommandEntry] = {
    "add": CommandEntry("taskyard.cli.task:ADD", "Create a task"),
    "list": CommandEntry("taskyard.cli.task_views:LIST", "List tasks, live with --watch"),
    "show": CommandEntry("taskyard.cli.task_views:SHOW", "Show all details of a task"),
    "next": CommandEntry("taskyard.cli.task:NEXT", "Claim the next ready task in one step"),
    "claim": CommandEntry("taskyard.cli.task:CLAIM", "Claim a task"),
    "start": CommandEntry("taskyard.cli.task:START", "Set a task to in_progress"),
    "done": CommandEntry("taskyard.cli.task:DONE", "Mark a task completed"),
    "reopen": CommandEntry("taskyard.cli.task:REOPEN", "Set a task back to pending"),
    "block": CommandEntry("taskyard.cli.task:BLOCK", "Add dependencies to a task"),
    "unblock": CommandEntry("taskyard.cli.task:UNBLOCK", "Remove dependencies from a task"),
    "assign": CommandEntry("taskyard.cli.task:ASSIGN", "Assign a task and notify the new owner by mail"),
    "release": CommandEntry("taskyard.cli.task:RELEASE", "Release a claimed task"),
    "renew": CommandEntry("taskyard.cli.task:RENEW", "Renew a claim that has a lease"),
    "edit": CommandEntry("taskyard.cli.task:EDIT", "Change fields of a task"),
    "rm": CommandEntry("taskyard.cli.task:RM", "Remove tasks"),
    "archive": CommandEntry("taskyard.cli.task:ARCHIVE", "Archive completed tasks"),
    "reset": CommandEntry("taskyard.cli.task:RESET", "Archive all tasks of the list"),
    "restore": CommandEntry("taskyard.cli.task:RESTORE", "Restore removed or archived tasks"),
    "log": CommandEntry("taskyard.cli.task_views:LOG", "Show the change log of a task or the list"),
    "events": CommandEntry("taskyard.cli.task_views:EVENTS", "Print task events as JSON lines, live with --follow"),
    "import": CommandEntry("taskyard.cli.task_views:IMPORT", "Import tasks from a JSON, Markdown or CSV file"),
    "export": CommandEntry("taskyard.cli.task_views:EXPORT", "Export the list as JSON, Markdown, CSV, DOT or Mermaid"),
}


TEAM_ROWS: Mapping[str, CommandEntry] = {
    "up": CommandEntry("taskyard.cli.team:UP", "Run a team of agents on a list until all tasks are completed"),
    "create": CommandEntry("taskyard.cli.team:CREATE", "Create a team"),
    "list": CommandEntry("taskyard.cli.team:LIST", "List all teams, including Claude Code's"),
    "show": CommandEntry("taskyard.cli.team:SHOW", "Show the members of a team, their state and current task"),
    "join": CommandEntry("taskyard.cli.team:JOIN", "Add an agent to a team, or run a member here"),
    "leave": CommandEntry("taskyard.cli.team:LEAVE", "Remove an agent from a team and release its unfinished tasks"),
    "progress": CommandEntry("taskyard.cli.team:PROGRESS", "Report progress of an agent, or that it is idle"),
    "approve": CommandEntry("taskyard.cli.team:APPROVE", "Approve the plan of a team member"),
    "reject": CommandEntry("taskyard.cli.team:REJECT", "Reject the plan of a team member, with a reason"),
    "remove": CommandEntry("taskyard.cli.team:REMOVE", "Delete a team and release its members' unfinished tasks"),
}


WORKFLOW_ROWS = {
    "run": CommandEntry("taskyard.cli.workflow:RUN", "Run a workflow file"),
    "resume": CommandEntry("taskyard.cli.workflow:RESUME", "Resume an interrupted run"),
    "list": CommandEntry("taskyard.cli.workflow:LIST", "List runs and their status, newest first"),
    "show": CommandEntry("taskyard.cli.workflow:SHOW", "Show the steps of a run or a file, and their status"),
}


DREAM_ROWS = {
    "": CommandEntry("taskyard.cli.dream:DREAM", "Consolidate the memory folder, if a dream is due"),
    "status": CommandEntry("taskyard.cli.dream:STATUS", "Show when the last dream ran and when the next is due"),
    "history": CommandEntry("taskyard.cli.dream:HISTORY", "List earlier versions of the memory folder"),
    "undo": CommandEntry("taskyard.cli.dream:UNDO", "Restore an earlier version of the memory folder"),
}


A2A_ROWS: Mapping[str, CommandEntry] = {
    "serve": CommandEntry("taskyard.cli.server:SERVE", "Serve agents of this machine over A2A"),
    "token": CommandEntry("taskyard.cli.server:TOKEN", "Print, replace or revoke the token of a caller"),
    "callers": CommandEntry("taskyard.cli.server:CALLERS", "List the callers that have a token"),
}
