"""
The front door: finds the command that was named, runs it, and turns how it ended into a number.

It starts on every tool call of an agent, so it loads the one command that is asked for and
nothing else. Deliberate errors become a sentence on stderr (with `--json`, an envelope on stdout)
and the exit code of their class; a bug shows its traceback.
"""

from __future__ import annotations

import sys

from taskyard.cli.command import Command, Found, Row, load
from taskyard.errors import TaskyardError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Every command, in the order of the overview.
COMMANDS: Mapping[str, Row] = {
    "task": Row("taskyard.cli.task", "The shared list: add, claim, complete and look at tasks"),
    "run": Row("taskyard.cli.job.run:RUN", "Run a command as a job, here or in the background"),
    "monitor": Row("taskyard.cli.job.monitor:MONITOR", "Watch a command's lines or an MCP server's events"),
    "workflow": Row("taskyard.cli.workflow", "Steps as jobs: run, resume after a crash, look at"),
    "dream": Row("taskyard.cli.dream", "An agent brings a memory folder in order"),
    "ps": Row("taskyard.cli.job.ps:PS", "The jobs of this user"),
    "wait": Row("taskyard.cli.job.verbs:WAIT", "Wait until jobs are over"),
    "stop": Row("taskyard.cli.job.stop:STOP", "End jobs with everything they started"),
    "pause": Row("taskyard.cli.job.verbs:PAUSE", "Pause a job"),
    "resume": Row("taskyard.cli.job.verbs:RESUME", "Let a paused job go on"),
    "send": Row("taskyard.cli.job.verbs:SEND", "Type into a job"),
    "release": Row("taskyard.cli.job.stop:RELEASE", "Let notices flow again after an emergency stop"),
    "lists": Row("taskyard.cli.lists", "All lists, and which one is current"),
    "events": Row("taskyard.cli.events:EVENTS", "What happens to jobs: each start, progress and end, live if wanted"),
    "logs": Row("taskyard.cli.logs:LOGS", "What a background job printed, live if wanted"),
    "limits": Row("taskyard.cli.limits", "Rate limits that agents wait for, and how to lift one"),
    "dismiss": Row("taskyard.cli.job.dismiss:DISMISS", "Leave ended jobs out of every view"),
    "gc": Row("taskyard.cli.gc:GC", "Make room: remove what old ended jobs left on disk"),
    "team": Row("taskyard.cli.team", "Teams of agents: have one work, see who lives"),
    "mail": Row("taskyard.cli.mail", "Messages between agents"),
    "notices": Row("taskyard.cli.notices", "What became of background jobs: look, take, acknowledge, verify"),
    "install": Row("taskyard.cli.install:INSTALL", "Have Claude Code, Codex or Gemini CLI use Taskyard"),
    "uninstall": Row("taskyard.cli.uninstall:UNINSTALL", "Take Taskyard out of such a program again"),
    "hook": Row("taskyard.cli.hook:HOOK", "What Claude Code runs so that its model hears of background jobs"),
    "trust": Row("taskyard.cli.trust:TRUST", "Allow commands that came with a project or a task"),
    "doctor": Row("taskyard.cli.doctor:DOCTOR", "Explain what is wrong with a list, and repair it"),
    "agent": Row("taskyard.cli.agent:AGENT", "Have an agent work on a prompt, here or in the background"),
    "remote": Row("taskyard.cli.remote", "Places elsewhere that run agents: list, check"),
    "engines": Row("taskyard.cli.agent:ENGINES", "What agents can run on"),
    "a2a": Row("taskyard.cli.a2a", "Agents of this machine for others, over A2A"),
    "mcp": Row("taskyard.cli.mcp:MCP", "The tools for any model's client, over MCP"),
    "tui": Row("taskyard.cli.tui:TUI", "Everything live in a terminal: tasks, jobs, output, graph"),
    "web": Row("taskyard.cli.web:WEB", "Lists, tasks and jobs in a browser, live"),
    "db": Row("taskyard.cli.db", "The database that several machines share"),
    "relay": Row("taskyard.cli.relay:RELAY", "Keep this machine's jobs within reach of others"),
    "demo": Row("taskyard.cli.demo:DEMO", "A plan of tasks worked on by agents, live"),
    "completions": Row("taskyard.cli.completions:COMPLETIONS", "Completion for bash, zsh and fish"),
    "__complete": Row("taskyard.cli.complete:COMPLETE", "Candidates for a command line", hidden=True),
    "__job_ended": Row("taskyard.cli.job.ended:ENDED", "Run the hooks of a job's end", hidden=True),
    "__workflow_tasks": Row("taskyard.cli.workflow.tasks:TASKS", "Put a step's tasks on the list", hidden=True),
    "__member": Row("taskyard.cli.team.members:MEMBER", "A member of a team in a window of its own", hidden=True),
    "__members": Row("taskyard.cli.team.members:MEMBERS", "Members of a team inside one process", hidden=True),
    "__sinks": Row("taskyard.cli.sinks:SINKS", "Tell one piece of news to every sink", hidden=True),
}

#: Those options of every command that take a value.
VALUED = ("--list", "--tasks-dir", "--by")

#: As a shell reports a process that wrote to a closed pipe.
_PIPE_CLOSED = 141
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(words)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # None if it was closed
            sys.stdout.flush()
        return code
    except TaskyardError as error:
        from taskyard.cli.output import report

        return report(error, as_json=_wants_json(words))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        from taskyard.cli.output import say_no_more

        say_no_more()  # the reader went away
        return _PIPE_CLOSED
    except OSError as error:
        if _is_out_of_files(error):
            from taskyard.cli.output import report
            from taskyard.errors import StorageError
            from taskyard.runtime.machine import MORE_FILES

            return report(
                StorageError("this process", "too many open files", advice=MORE_FILES), as_json=_wants_json(words)
            )
        if error.filename is not None or not _is_full(error):
            raise
        from taskyard.cli.hang_up import HUNG_UP, mute_lost

        if mute_lost():
            return HUNG_UP
        sys.stderr.write(f"Error: The output could not be written: {error.strerror}.\n")
        from taskyard.cli.output import say_no_more

        say_no_more()
        return 1


def find(words: Sequence[str]) -> tuple[Found | Mapping[str, Row], list[str], tuple[str, ...]]:
    """The command that `words` name, what is left for it, and the names themselves.

    Where no command is named, or a group without a verb, the answer is the table to choose from.

    Raises:
        UsageError: there is no such command; names the nearest.
    """
    table, row = COMMANDS, Row("", "")
    names: tuple[str, ...] = ()
    options: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word.startswith("-") and word != "-":
            after = at + (2 if word in VALUED else 1)
            options += words[at:after]
            at = after
            continue
        if word not in table or not word:
            if "" in table:
                break  # an argument of what the group does by itself
            raise _unknown(word, names, table)
        row, names, at = table[word], (*names, word), at + 1
        found = load(row)
        if isinstance(found, Command):
            return Found(names, found, row.help), [*options, *words[at:]], names
        table = found
    if "" in table and isinstance(found := load(table[""]), Command):
        return Found(names, found, row.help), [*options, *words[at:]], names
    return table, options, names


def _run(words: list[str]) -> int:
    found, rest, names = find(words)
    if not isinstance(found, Found):
        from taskyard.cli.overview import show

        return show(found, names, rest)
    from taskyard.cli.parser import Parser

    parser = Parser(found)
    try:
        args = parser.parse(rest)
    except SystemExit as end:  # how argparse ends after --help
        return int(end.code or 0)
    return found.command.run(args)


def _unknown(word: str, names: tuple[str, ...], table: Mapping[str, Row]) -> UsageError:
    from taskyard.errors import shown
    from taskyard.names import nearest

    known = [name for name, row in table.items() if not row.hidden]
    prog = " ".join(("taskyard", *names))
    near = nearest(word, known)
    hint = f"Nearest: {', '.join(near)}." if near else f"There are: {', '.join(known)}."
    return UsageError(f"{prog} has no command {shown(word)}. {hint}")


def _wants_json(words: Sequence[str]) -> bool:
    before = words[: words.index("--")] if "--" in words else words
    return "--json" in before


def _is_out_of_files(error: OSError) -> bool:
    import errno

    return error.errno in (errno.EMFILE, errno.ENFILE)


def _is_full(error: OSError) -> bool:
    import errno

    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
