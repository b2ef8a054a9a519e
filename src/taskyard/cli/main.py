"""Entry point of the command line: find the named command, run it, return its exit code.

    COMMANDS = {"doctor": CommandEntry("taskyard.cli.admin:DOCTOR", "Explain and repair what is wrong"),
                "team":   CommandEntry("taskyard.cli.help:TEAM_ROWS", "Teams of agents")}       a group

The target of an entry is `module:NAME` of a `Command` or, for a group of verbs, of a table like this one; an
entry "" there is what the group does without a verb.

    def _arguments(parser: Parser) -> None:
        parser.add("--fix", action="store_true", help="Repair what can be repaired.")

    def _run(args: Args) -> int:
        ...
        return 0

    DOCTOR = Command(_run, _arguments, "Look at a list's files …", examples=("taskyard doctor --fix",))

It runs on every tool call of an agent, so only the requested command is imported; the help of a group loads one
table. Entries are plain classes, since defining a named tuple takes longer than most commands run. Deliberate
errors become a sentence on stderr (with `--json`, a JSON object on stdout) and the exit code of their class; a
bug shows its traceback.
"""

from __future__ import annotations

import sys

from taskyard.errors import TaskyardError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    Args = Namespace
    from collections.abc import Callable, Mapping, Sequence

    from taskyard.cli.parser import Parser


class CommandEntry:
    """Where a command is defined, and its help in one line."""

    __slots__ = ("help", "hidden", "target")

    def __init__(self, target: str, help: str, *, hidden: bool = False) -> None:
        """`hidden`: for programs only; in no help and no completion."""
        self.target = target
        self.help = help
        self.hidden = hidden


class Command:
    """One command."""

    __slots__ = ("about", "arguments", "examples", "exits", "run")

    def __init__(
        self,
        run: Callable[[Args], int],
        arguments: Callable[[Parser], None] | None = None,
        about: str = "",
        *,
        examples: tuple[str, ...] = (),
        exits: tuple[str, ...] = (),
    ) -> None:
        """Describe a command.

        Args:
            run: Runs it and returns the exit code; deliberate errors are raised.
            arguments: Adds its arguments beyond the common options.
            about: What it does, in a few sentences.
            examples: Command lines worth copying.
            exits: Exit codes with a specific meaning here, such as "4  nothing is free".
        """
        self.run = run
        self.arguments = arguments
        self.about = about
        self.examples = examples
        self.exits = exits


class ResolvedCommand:
    """A command, and the words that named it."""

    __slots__ = ("command", "help", "words")

    def __init__(self, words: tuple[str, ...], command: Command, help: str) -> None:
        self.words = words
        self.command = command
        self.help = help

    @property
    def prog(self) -> str:
        """The command as users type it."""
        return " ".join(("taskyard", *self.words))


def load_entry(row: CommandEntry) -> Command | Mapping[str, CommandEntry]:
    """Return the command of an entry, or the table of its verbs."""
    import importlib

    module, _, name = row.target.partition(":")
    found: Command | Mapping[str, CommandEntry] = getattr(importlib.import_module(module), name)
    return found


#: Every command, in the order of the overview.
COMMANDS: Mapping[str, CommandEntry] = {
    "task": CommandEntry("taskyard.cli.help:TASK_ROWS", "Create, claim, complete and list tasks"),
    "run": CommandEntry("taskyard.cli.job:RUN", "Run a command as a job, in the foreground or background"),
    "monitor": CommandEntry("taskyard.cli.job:MONITOR", "Monitor a command's output or an MCP server's events"),
    "workflow": CommandEntry("taskyard.cli.help:WORKFLOW_ROWS", "Run workflows as jobs, resume them after a crash"),
    "dream": CommandEntry("taskyard.cli.help:DREAM_ROWS", "Have an agent consolidate a memory folder"),
    "ps": CommandEntry("taskyard.cli.job_views:PS", "List jobs"),
    "wait": CommandEntry("taskyard.cli.job:WAIT", "Wait until jobs have ended"),
    "stop": CommandEntry("taskyard.cli.job:STOP", "Stop jobs and all their processes"),
    "pause": CommandEntry("taskyard.cli.job:PAUSE", "Pause a job"),
    "resume": CommandEntry("taskyard.cli.job:RESUME", "Resume a paused job"),
    "send": CommandEntry("taskyard.cli.job:SEND", "Send input to a job"),
    "release": CommandEntry("taskyard.cli.job:RELEASE", "Resume notice delivery after `stop --all --hold`"),
    "lists": CommandEntry("taskyard.cli.admin:LISTS_ROWS", "List all task lists and select the current one"),
    "events": CommandEntry(
        "taskyard.cli.job_views:EVENTS", "Print job events: start, progress and end, live with --follow"
    ),
    "logs": CommandEntry("taskyard.cli.job_views:LOGS", "Print the output of a job, live with --follow"),
    "limits": CommandEntry("taskyard.cli.notices:LIMITS_ROWS", "List rate limits that agents wait for, and lift them"),
    "dismiss": CommandEntry("taskyard.cli.job:DISMISS", "Hide ended jobs from every view"),
    "gc": CommandEntry("taskyard.cli.admin:GC", "Delete files of old ended jobs"),
    "team": CommandEntry("taskyard.cli.help:TEAM_ROWS", "Run and manage teams of agents"),
    "mail": CommandEntry("taskyard.cli.mail:MAIL_ROWS", "Send and read messages between agents"),
    "notices": CommandEntry(
        "taskyard.cli.notices:NOTICES_ROWS", "List, take, acknowledge and verify notices about jobs"
    ),
    "install": CommandEntry("taskyard.cli.setup:INSTALL", "Configure Claude Code, Codex or Gemini CLI to use Taskyard"),
    "uninstall": CommandEntry(
        "taskyard.cli.setup:UNINSTALL", "Remove Taskyard from the configuration of such a client"
    ),
    "hook": CommandEntry("taskyard.cli.hook:HOOK", "Hook command run by Claude Code to deliver notices"),
    "trust": CommandEntry("taskyard.cli.admin:TRUST", "Allow commands that came with a project or a task"),
    "doctor": CommandEntry("taskyard.cli.admin:DOCTOR", "Diagnose problems of a list and repair them"),
    "agent": CommandEntry("taskyard.cli.agent:AGENT", "Run an agent on a prompt, in the foreground or background"),
    "remote": CommandEntry("taskyard.cli.admin:REMOTE_ROWS", "List and check remotes that run agents"),
    "engines": CommandEntry("taskyard.cli.agent:ENGINES", "List the engines that agents can run on"),
    "a2a": CommandEntry("taskyard.cli.help:A2A_ROWS", "Serve agents of this machine over A2A"),
    "mcp": CommandEntry("taskyard.cli.server:MCP", "Serve Taskyard's tools over MCP"),
    "tui": CommandEntry("taskyard.cli.server:TUI", "Open the terminal UI: tasks, jobs, output, graph"),
    "web": CommandEntry("taskyard.cli.server:WEB", "Serve lists, tasks and jobs as a live web page"),
    "db": CommandEntry("taskyard.cli.admin:DB_ROWS", "Inspect and upgrade the shared database"),
    "relay": CommandEntry("taskyard.cli.server:RELAY", "Relay this machine's jobs to other machines"),
    "demo": CommandEntry("taskyard.cli.demo:DEMO", "Run a demo: a team of agents completes a plan"),
    "completions": CommandEntry("taskyard.cli.complete:COMPLETIONS", "Print completion scripts for bash, zsh and fish"),
    "__complete": CommandEntry(
        "taskyard.cli.complete:COMPLETE", "Print completion candidates for a command line", hidden=True
    ),
    "__job_ended": CommandEntry("taskyard.cli.job:ENDED", "Run the job-ended hooks of a job", hidden=True),
    "__workflow_tasks": CommandEntry("taskyard.cli.workflow:TASKS", "Create a step's tasks on the list", hidden=True),
    "__member": CommandEntry("taskyard.cli.team:MEMBER", "Run a team member in its own window", hidden=True),
    "__members": CommandEntry("taskyard.cli.team:MEMBERS", "Run several team members in one process", hidden=True),
    "__sinks": CommandEntry("taskyard.cli.notices:SINKS", "Send one event to every sink", hidden=True),
}

#: Common options that take a value.
VALUE_OPTIONS = ("--list", "--tasks-dir", "--by")

#: The exit code shells report for SIGPIPE.
_PIPE_CLOSED = 141
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(words)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # None if it was closed
            sys.stdout.flush()
        return code
    except TaskyardError as error:
        from taskyard.cli.output import report_error

        return report_error(error, as_json=_wants_json(words))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        from taskyard.cli.output import discard_stdout

        discard_stdout()  # the reader closed the pipe
        return _PIPE_CLOSED
    except OSError as error:
        if _is_out_of_files(error):
            from taskyard.cli.output import report_error
            from taskyard.errors import StorageError
            from taskyard.jobs.environment import FILE_LIMIT_HINT

            return report_error(
                StorageError("this process", "too many open files", advice=FILE_LIMIT_HINT), as_json=_wants_json(words)
            )
        if error.filename is not None or not _is_full(error):
            raise
        from taskyard.cli.output import HUNG_UP, mute_hung_up

        if mute_hung_up():
            return HUNG_UP
        sys.stderr.write(f"Error: Cannot write the output: {error.strerror}.\n")
        from taskyard.cli.output import discard_stdout

        discard_stdout()
        return 1


def find_command(
    words: Sequence[str],
) -> tuple[ResolvedCommand | Mapping[str, CommandEntry], list[str], tuple[str, ...]]:
    """Return the command that `words` name, its remaining words, and the names themselves.

    If no command is named, or a group without a verb, return the table to choose from.

    Raises:
        UsageError: there is no such command; names the nearest.
    """
    table, row = COMMANDS, CommandEntry("", "")
    names: tuple[str, ...] = ()
    options: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith("-") and word != "-":
            after = at + (2 if word in VALUE_OPTIONS else 1)
            options += words[at:after]
            at = after
            continue
        if word not in table or not word:
            if "" in table:
                break  # an argument of the group's own command
            raise _unknown_command(word, names, table)
        row, names, at = table[word], (*names, word), at + 1
        found = load_entry(row)
        if isinstance(found, Command):
            return ResolvedCommand(names, found, row.help), [*options, *words[at:]], names
        table = found
    if "" in table and isinstance(found := load_entry(table[""]), Command):
        return ResolvedCommand(names, found, row.help), [*options, *words[at:]], names
    return table, options, names


def _run(words: list[str]) -> int:
    found, rest, names = find_command(words)
    if not isinstance(found, ResolvedCommand):
        from taskyard.cli.help import show_help

        return show_help(found, names, rest)
    from taskyard.cli.parser import Parser

    parser = Parser(found)
    try:
        args = parser.parse(rest)
    except SystemExit as end:  # argparse exits after --help
        return int(end.code or 0)
    return found.command.run(args)


def _unknown_command(word: str, names: tuple[str, ...], table: Mapping[str, CommandEntry]) -> UsageError:
    from taskyard.core.values import nearest
    from taskyard.errors import quote_value

    known = [name for name, row in table.items() if not row.hidden]
    prog = " ".join(("taskyard", *names))
    near = nearest(word, known)
    hint = f"Did you mean: {', '.join(near)}?" if near else f"Available: {', '.join(known)}."
    return UsageError(f"{prog} has no command {quote_value(word)}. {hint}")


def _wants_json(words: Sequence[str]) -> bool:
    before = words[: words.index("--")] if "--" in words else words
    return "--json" in before


def _is_out_of_files(error: OSError) -> bool:
    import errno

    return error.errno in (errno.EMFILE, errno.ENFILE)


def _is_full(error: OSError) -> bool:
    import errno

    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
