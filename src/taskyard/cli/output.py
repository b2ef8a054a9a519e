"""Output of every command: data on stdout, messages on stderr, an exit code at the end.

Also: detection of a terminal that has gone away (the kernel sends SIGHUP only to the session leader, and later
than the first write may fail), what selected the current list (`taskyard.config.list_name`), and repeated reads
of a list while its database is unavailable.
"""

from __future__ import annotations

import os
import select
import stat
import sys

from taskyard.core.text import escape_control, style_for
from taskyard.errors import StoreAway

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from taskyard.cli.main import Args
    from taskyard.core.text import Style
    from taskyard.errors import TaskyardError
    from taskyard.tasks.lists import Lists
    from taskyard.yard import Yard


SCHEMA_VERSION = 1


def answer(
    args: Args,
    data: Callable[[], object],
    lines: Callable[[], Iterable[str]],
    *,
    ids: Iterable[str] = (),
    warnings: Sequence[str] = (),
) -> int:
    """Print one result: JSON for machines, lines for people, bare ids with `--quiet`. Always return 0.

    The caller escapes text from outside before it makes the lines: they may contain our colours.
    """
    if args.as_json:
        print_json({"data": data(), **({"warnings": list(warnings)} if warnings else {})})
        return 0
    for text in warnings:
        warn(text)
    for line in ids if args.quiet else lines():
        print_line(line)
    return 0


def print_json(body: dict[str, object]) -> None:
    """Print one JSON document on one line, in ASCII, so that no terminal or encoding alters it."""
    import json

    print_line(json.dumps({"schema_version": SCHEMA_VERSION, **body}))


def print_line(line: str) -> None:
    """Print a line to stdout in any encoding."""
    out = sys.stdout
    try:
        out.write(f"{line}\n")  # one write: another thread may print as well
    except UnicodeEncodeError:
        out.write(line.encode(out.encoding or "ascii", "backslashreplace").decode(out.encoding or "ascii") + "\n")


def print_info(args: Args, text: str) -> None:
    """Print a message to stderr; not with `--json` or `--quiet`."""
    if not args.quiet and not args.as_json:
        sys.stderr.write(escape_control(text) + "\n")


def warn(text: str) -> None:
    """Print a warning to stderr."""
    sys.stderr.write(f"Warning: {escape_control(text)}\n")


def discard_stdout() -> None:
    """Discard further output, including the flush at interpreter exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # no descriptor behind it


def report_error(error: TaskyardError, *, as_json: bool) -> int:
    """Print a deliberate error; return its exit code."""
    if as_json:
        facts = {name: value for name, value in error.facts().items() if name not in ("code", "message")}
        print_json({"error": {"code": error.code, "message": str(error), **facts}})
    else:
        sys.stderr.write(f"Error: {escape_control(str(error), lines=True)}\n")
    return error.exit_code


def style(args: Args, stream: object = None) -> Style:
    """Return what stdout (or another stream) can show, and the user wants to see."""
    env = {**os.environ, "NO_COLOR": "1"} if args.no_color else os.environ
    out = sys.stdout if stream is None else stream
    return style_for(terminal=is_terminal(out), encoding=getattr(out, "encoding", None) or "ascii", env=env)


def columns(default: int = 80) -> int:
    """Return the width of the terminal; COLUMNS overrides it. Not a terminal: unlimited."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or default
    except (OSError, ValueError, AttributeError):
        return 10_000


def is_terminal(stream: object) -> bool:
    """Return whether `stream` is a terminal."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]  # None and test doubles are no terminals
    except (AttributeError, ValueError):
        return False


#: Set for commands that an agent runs: by us, Claude Code, Codex, Gemini CLI, opencode, Cursor.
_AGENT_VARIABLES = (
    "TASKYARD_JOB", "TASKYARD_INSTANCE", "TASKYARD_AGENT", "CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID",
    "GEMINI_CLI", "OPENCODE", "CURSOR_AGENT", "AI_AGENT",
)  # fmt: skip


def is_typed_by_person(args: Args) -> bool:
    """Return whether the user typed this command at a terminal; not an agent, a job or a script without one."""
    return is_terminal(sys.stdin) and not args.by and not is_run_by_agent()


def is_run_by_agent() -> bool:
    """Return whether an agent or a job runs this command, judging by the environment."""
    return any(os.environ.get(name) for name in _AGENT_VARIABLES)


def confirm(args: Args, question: str) -> None:
    """Ask the user to agree, unless `--yes` was given.

    Raises:
        UsageError: there is no terminal to ask at.
        Cancelled: the answer was no.
    """
    if args.yes:
        return
    from taskyard.errors import Cancelled, UsageError

    if args.as_json or not is_terminal(sys.stdin):
        raise UsageError(f"{question} Cannot ask for confirmation without a terminal: repeat with --yes.")
    sys.stderr.write(f"{escape_control(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("The command")


def open_yard(args: Args, *, cwd: str | None = None) -> Yard:
    """Open the list given by the arguments, for the user or script working in `cwd`."""
    from taskyard.yard import open as open_

    announce_waits(args)
    yard = open_(
        tasks_dir=args.tasks_dir,
        list=args.list,
        agent=args.by,
        via="cli",
        is_person=True,
        report=_print_report,
        cwd=cwd,
    )
    if args.verbose:
        sys.stderr.write(f"List {yard.tasks.name}, by {list_source(args.list)}.\n")
    return yard


def announce_waits(args: Args) -> None:
    """Report waits for the database on stderr, where lists are in one."""
    if args.tasks_dir is not None or args.quiet or args.as_json:
        return
    from taskyard import config

    if config.load_settings().store != "files":
        from taskyard.postgres.deadline import report_waits

        report_waits(_print_report)


def _print_report(text: str) -> None:
    sys.stderr.write(escape_control(text.rstrip(), lines=True) + "\n")


#: The exit code shells report for SIGHUP.
HUNG_UP = 129


def is_hung_up(fd: int) -> bool:
    """Return whether a descriptor is a terminal that has gone away."""
    poll = select.poll()
    poll.register(fd, 0)  # reports POLLERR and POLLHUP only
    try:
        return stat.S_ISCHR(os.fstat(fd).st_mode) and any(what & select.POLLHUP for _, what in poll.poll(0))
    except OSError:
        return False  # it is closed


def mute_hung_up() -> bool:
    """Redirect output to a lost terminal to /dev/null; return whether there was one."""
    lost = [fd for fd in (1, 2) if is_hung_up(fd)]
    if lost:
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        for fd in lost:
            os.dup2(nowhere, fd)
        os.close(nowhere)
    return bool(lost)


#: Variables that name a list, in order of precedence, as in `taskyard.config.list_name`.
LIST_VARIABLES = ("TASKYARD_LIST", "CLAUDE_CODE_TASK_LIST_ID", "CLAUDE_CODE_TEAM_NAME")


def list_source(chosen: str | None, env: Mapping[str, str] | None = None) -> str:
    """Return what selected the list: an option, a variable, the session or the project."""
    env = os.environ if env is None else env
    if chosen:
        return "--list"
    for name in LIST_VARIABLES:
        if env.get(name):
            return name
    return "the session" if env.get("TASKYARD_LIST_SCOPE") == "session" else "the project in this folder"


if TYPE_CHECKING:
    T = TypeVar("T")


class OutageReporter:
    """Repeated reads for a long-running command, through outages of the database."""

    def __init__(self, args: Args, lists: Lists) -> None:
        self._args = args
        self._lists = lists
        self.trouble = ""  #: reason of the current outage

    def look(self, act: Callable[[], T]) -> T | None:
        """Return the result of `act`; None if the database is unavailable."""
        try:
            with self._lists.hurried():
                found = act()
        except StoreAway as error:
            was, self.trouble = self.trouble, str(self._lists.away or error)
            if not was:
                print_info(self._args, self.trouble)
            return None
        if self.trouble:
            self.trouble = ""
            print_info(self._args, "Reconnected.")
        return found
