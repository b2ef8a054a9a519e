"""
`taskyard __complete -- WORDS…`: what could stand where the cursor is.

The last word is the one being typed, perhaps empty. Lines of `candidate<TAB>description`; nothing,
and exit code 0, where nothing is known or anything goes wrong: Tab must never print an error.
"""

from __future__ import annotations

import argparse
import os

from taskyard.cli.command import Command, Found, Row
from taskyard.cli.output import print_line
from taskyard.cli.values import id_list, task_id
from taskyard.errors import TaskyardError
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.lists.protocol import Lists
    from taskyard.tasklist.model import Listing, Task

    Candidate = tuple[str, str]  #: what to insert, and what it means

#: What a value is, where the name of its argument tells. Others, such as NAME for a new name, are left to the shell.
_KINDS = {
    "AGENT": "agents",
    "LIST": "lists",
    "WORD": "labels",
    "STATUS": "statuses",
    "ID": "ids",
    "JOB": "jobs",
    "RUN": "runs",
    "TEAM": "teams",
    "ENGINE": "engines",
    "CALLER": "callers",
    "SKILL": "skills",
    "REMOTE": "remotes",
    "PROBLEM": "problems",
}

#: The same for the options that may stand before any command.
_COMMON = {"--list": "lists", "--by": "agents", "--tasks-dir": ""}

_MOST = 200  #: more candidates than this help nobody

_PATIENCE = 1.0  #: seconds after which nobody looks at the line any more


def candidates(words: Sequence[str]) -> list[Candidate]:
    """What could stand in the place of the last of `words`."""
    from taskyard.cli.main import find

    *before, current = words or [""]
    try:
        if before and (kind := _COMMON.get(before[-1])) is not None:
            return _starting(current, _known(kind, before, ""))
        found, rest, names = find(before)
        if not isinstance(found, Found):
            return _starting(current, _commands(found)) if not current.startswith("-") else []
        parser = _parser(found)
        offered = list(_verbs(names)) if before[-1:] == [names[-1]] else []
        return [*_starting(current, offered), *_arguments(parser, found, rest, current, before)]
    except (TaskyardError, SystemExit, OSError):
        return []


def _in_time(words: Sequence[str]) -> list[Candidate]:
    """The candidates, if they are known while somebody still waits: a database may be far away."""
    from taskyard import config

    try:
        if config.load().store == "files":
            return candidates(words)
    except TaskyardError:
        return []
    import threading

    from taskyard.database.waiting import at_most

    found: list[Candidate] = []

    def look() -> None:
        with at_most(0.0):
            found.extend(candidates(words))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    return found if not thread.is_alive() else []


def _run(args: Args) -> int:
    for text, meaning in _in_time(args.words)[:_MOST]:
        print_line(f"{text}\t{safe(meaning)}")
    return 0


def _parser(found: Found) -> Parser:
    from taskyard.cli.parser import Parser

    return Parser(found)


def _commands(table: Mapping[str, Row]) -> Iterator[Candidate]:
    for name, row in table.items():
        if name and not row.hidden:
            yield name, row.help


def _verbs(names: tuple[str, ...]) -> Iterator[Candidate]:
    """The verbs of a group that also does something by itself, such as `lists`."""
    from taskyard.cli.command import load
    from taskyard.cli.main import COMMANDS

    if len(names) == 1 and not isinstance(table := load(COMMANDS[names[0]]), Command):
        yield from _commands(table)


def _arguments(
    parser: Parser, found: Found, rest: Sequence[str], current: str, words: Sequence[str]
) -> Iterator[Candidate]:
    if "--" in rest:
        return  # somebody else's words: the shell knows files
    option, typed = _open_option(parser, rest), current
    if current.startswith("--") and "=" in current:
        name, _, typed = current.partition("=")
        option = parser.options.get(name)
        prefix = f"{name}="
        if option is not None:
            yield from ((prefix + text, meaning) for text, meaning in _values(option, typed, words))
        return
    if option is not None and not current.startswith("-"):
        yield from _values(option, current, words)
        if not (option.nargs in ("?", "*", "+") or parser.takes_ids(option)):
            return
    if current.startswith("-"):
        shown = ((name, action.help or "") for name, action in parser.options.items() if name.startswith("--"))
        yield from _starting(current, shown)
    elif option is None and (positional := _positional(parser, rest)) is not None:
        yield from _values(positional, current, words, verb=found.words[-1])


def _open_option(parser: Parser, rest: Sequence[str]) -> argparse.Action | None:
    """The option whose value is being typed."""
    for word in reversed(rest):
        action = parser.options.get(word)
        if action is not None:
            return action if action.nargs != 0 and _still_takes(parser, action, rest, word) else None
        if word.startswith("-"):
            return None
    return None


def _still_takes(parser: Parser, action: argparse.Action, rest: Sequence[str], word: str) -> bool:
    given = len(rest) - 1 - max(at for at, text in enumerate(rest) if text == word)
    return given == 0 or action.nargs in ("*", "+") or parser.takes_ids(action)


def _positional(parser: Parser, rest: Sequence[str]) -> argparse.Action | None:
    """The positional argument that comes next."""
    taken, skip = 0, False
    for word in rest:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            action = parser.options.get(word)
            skip = action is not None and action.nargs != 0
        else:
            taken += 1
    positionals = [action for action in parser.known if not action.option_strings]
    if taken < len(positionals):
        return positionals[taken]
    return positionals[-1] if positionals and positionals[-1].nargs in ("*", "+") else None


def _values(action: argparse.Action, typed: str, words: Sequence[str], *, verb: str = "") -> Iterator[Candidate]:
    if action.choices is not None:
        yield from _starting(typed, ((str(choice), "") for choice in action.choices))
        return
    kind = "ids" if action.type in (task_id, id_list) else _KINDS.get(str(action.metavar), "")
    done, _, last = typed.rpartition(",") if action.type is id_list else ("", "", typed)
    lead = f"{done}," if done else ""
    if kind == "jobs":
        from taskyard.cli.complete_jobs import job_candidates

        yield from job_candidates(verb, typed)
        return
    for text, meaning in _known(kind, words, verb):
        if text.startswith(last):
            yield lead + text, meaning


def _known(kind: str, words: Sequence[str], verb: str) -> Iterable[Candidate]:
    if kind == "lists":
        return [(name, "") for name in _lists(words)]
    if kind == "statuses":
        return [("pending", ""), ("in_progress", ""), ("completed", "")]
    if kind == "runs":
        return [(name, "") for name in _runs()]
    if kind in ("teams", "engines"):
        from taskyard.cli import complete_teams

        return complete_teams.teams() if kind == "teams" else complete_teams.engines()
    if kind in ("callers", "skills"):
        from taskyard.cli import complete_a2a

        return complete_a2a.callers() if kind == "callers" else complete_a2a.skills()
    if kind in ("problems", "remotes"):
        return _problems() if kind == "problems" else _remotes()
    if kind not in ("ids", "agents", "labels"):
        return []
    listing = _listing(words)
    if kind == "ids":
        return [(task.id, task.subject) for task in listing if _suits(task, verb)]
    if kind == "labels":
        from taskyard.tasklist.extras import labels_of

        return [(label, "") for label in sorted({label for task in listing for label in labels_of(task)})]
    from taskyard.cli.complete_teams import members

    names = {task.owner for task in listing if task.owner} | members(words)
    return [(name, "") for name in sorted(names | {name for name in [os.environ.get("TASKYARD_AGENT")] if name})]


def _problems() -> list[Candidate]:
    """What `doctor --fix` repairs by name."""
    from taskyard.tasklist.doctor.finding import KINDS

    return [(name, found.about) for name, found in KINDS.items() if found.can_fix]


def _remotes() -> list[Candidate]:
    from taskyard.remote.remotes import remotes

    return [(one.name, f"{one.backend} {one.url}") for one in remotes(report=lambda _name, _error: None).values()]


def _suits(task: Task, verb: str) -> bool:
    """Whether a verb could be about this task: nobody starts what is done."""
    if task.is_internal:
        return False
    if verb in ("start", "claim", "done", "release", "renew", "block"):
        return not task.is_done
    return task.is_done if verb == "reopen" else True


def _place(words: Sequence[str]) -> tuple[Lists, str | None]:
    """All lists of the place that the words before the cursor name, and the list."""
    from taskyard.places import lists_here

    given: dict[str, str] = {}
    for before, after in zip(words, (*words[1:], "")):
        given[before] = after
    for word in words:
        name, sign, value = word.partition("=")
        if sign:
            given[name] = value
    return lists_here(given.get("--tasks-dir") or None), given.get("--list")


def _lists(words: Sequence[str]) -> list[str]:
    return _place(words)[0].names()


def _runs() -> list[str]:
    """The runs of workflows that are known, the newest first."""
    from taskyard import paths

    try:
        with os.scandir(f"{paths.home()}/workflows") as entries:
            return [entry.name for entry in sorted(entries, key=lambda entry: -entry.stat().st_mtime)]
    except OSError:
        return []


def _listing(words: Sequence[str]) -> Listing:
    """The tasks by a plain look: Tab makes, locks and logs nothing."""
    from taskyard import paths

    lists, chosen = _place(words)
    return lists.look(paths.list_name(chosen))


def _starting(typed: str, found: Iterable[Candidate]) -> list[Candidate]:
    return [(text, meaning) for text, meaning in found if text.startswith(typed)]


def _take_words(parser: Parser) -> None:
    parser.add("words", nargs="*", metavar="WORD", help="The words up to the cursor.")


COMPLETE = Command(_run, _take_words, "Candidates for the last of the given words, one a line.")
