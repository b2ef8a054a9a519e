"""How every command speaks: data on stdout, words on stderr, a number at the end."""

from __future__ import annotations

import os
import sys

from taskyard.view.glyphs import style_for
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.errors import TaskyardError
    from taskyard.view.glyphs import Style

SCHEMA_VERSION = 1


def answer(
    args: Args,
    data: Callable[[], object],
    lines: Callable[[], Iterable[str]],
    *,
    ids: Iterable[str] = (),
    warnings: Sequence[str] = (),
) -> int:
    """Print one answer: the envelope for machines, lines for people, bare ids for the quiet. Always 0.

    What came from outside is made safe by whoever makes the lines: they may hold colours of ours.
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
    """One JSON document on one line. ASCII alone, so that no terminal and no encoding acts on it."""
    import json

    print_line(json.dumps({"schema_version": SCHEMA_VERSION, **body}))


def print_line(line: str) -> None:
    """A line on stdout, whatever its encoding."""
    out = sys.stdout
    try:
        out.write(f"{line}\n")  # at once: another thread may print as well
    except UnicodeEncodeError:
        out.write(line.encode(out.encoding or "ascii", "backslashreplace").decode(out.encoding or "ascii") + "\n")


def say(args: Args, text: str) -> None:
    """Words beside an answer that has no data; not for machines, not for the quiet."""
    if not args.quiet and not args.as_json:
        sys.stderr.write(safe(text) + "\n")


def warn(text: str) -> None:
    """What a person should know, beside the answer."""
    sys.stderr.write(f"Warning: {safe(text)}\n")


def say_no_more() -> None:
    """What is left cannot be written: not even when the interpreter flushes at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass  # no descriptor behind it


def report(error: TaskyardError, *, as_json: bool) -> int:
    """Tell of a deliberate error; its exit code."""
    if as_json:
        facts = {name: value for name, value in error.facts().items() if name not in ("code", "message")}
        print_json({"error": {"code": error.code, "message": str(error), **facts}})
    else:
        sys.stderr.write(f"Error: {safe(str(error), lines=True)}\n")
    return error.exit_code


def style(args: Args, stream: object = None) -> Style:
    """What stdout (or another stream) can show, and the person wants to see."""
    env = {**os.environ, "NO_COLOR": "1"} if args.no_color else os.environ
    out = sys.stdout if stream is None else stream
    return style_for(terminal=is_terminal(out), encoding=getattr(out, "encoding", None) or "ascii", env=env)


def columns(default: int = 80) -> int:
    """How wide the terminal is; COLUMNS wins. Not a terminal: as wide as the text wants to be."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or default
    except (OSError, ValueError, AttributeError):
        return 10_000


def is_terminal(stream: object) -> bool:
    """Whether a person looks at `stream`."""
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
    """Whether a person typed this command at a terminal; not an agent, a job or a script without one."""
    return is_terminal(sys.stdin) and not args.by and not is_run_by_agent()


def is_run_by_agent() -> bool:
    """Whether an agent or a job runs this command, as far as the environment tells."""
    return any(os.environ.get(name) for name in _AGENT_VARIABLES)


def confirm(args: Args, question: str) -> None:
    """Have a person agree, unless `--yes` said so already.

    Raises:
        UsageError: there is nobody to ask.
        Cancelled: the answer was no.
    """
    if args.yes:
        return
    from taskyard.errors import Cancelled, UsageError

    if args.as_json or not is_terminal(sys.stdin):
        raise UsageError(f"{question} Nobody can be asked here: repeat it with --yes.")
    sys.stderr.write(f"{safe(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled("The command")


def open_yard(args: Args, *, cwd: str | None = None) -> Yard:
    """The list the arguments name, for the person or script behind this command line, who works in `cwd`."""
    from taskyard.app import open as open_

    wait_aloud(args)
    yard = open_(
        tasks_dir=args.tasks_dir, list=args.list, agent=args.by, via="cli", is_person=True, report=_said, cwd=cwd
    )
    if args.verbose:
        from taskyard.cli.which import why

        sys.stderr.write(f"List {yard.tasks.name}, by {why(args.list)}.\n")
    return yard


def wait_aloud(args: Args) -> None:
    """Have whoever looks at this command told of what it waits for, where lists are in a database."""
    if args.tasks_dir is not None or args.quiet or args.as_json:
        return
    from taskyard import config

    if config.load().store != "files":
        from taskyard.database.waiting import aloud

        aloud(_said)


def _said(text: str) -> None:
    sys.stderr.write(safe(text.rstrip(), lines=True) + "\n")
