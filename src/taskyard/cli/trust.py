"""`taskyard trust`: a person reads other people's commands, and allows them to run."""

from __future__ import annotations

import os

from taskyard import trust
from taskyard.cli.command import Command
from taskyard.cli.output import answer, confirm, open_yard, print_line, say, warn
from taskyard.cli.values import task_id
from taskyard.errors import NotFound, TaskyardError, UsageError
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.app import Yard
    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.tasklist.model import Task


class Wanted(NamedTuple):
    """Something that would run if it were allowed."""

    kind: str  #: "project", "git" or "acceptance"
    path: str  #: the project's root, or the folder the command would run in
    commands: tuple[str, ...]
    is_trusted: bool
    of: str  #: whose it is, in words
    task: Task | None = None  #: whose acceptance command it is


def _arguments(parser: Parser) -> None:
    parser.add("id", type=task_id, nargs="?", metavar="ID", help="The acceptance command of this task.")
    parser.add("--all", action="store_true", help="The project's hooks and every acceptance command on the list.")
    parser.add("--trusted", action="store_true", help="Only show what is allowed, everywhere.")
    parser.add("--revoke", action="store_true", help="Take it back instead.")
    parser.add("--yes", "-y", action="store_true", help="You have read them: do not ask.")


def _run(args: Args) -> int:
    if args.trusted:
        return _show_trusted(args)
    if args.id and args.all:
        raise UsageError("One task's command, or --all: not both.")
    with open_yard(args) as yard:
        found = list(_wanted(args, yard))
    if args.revoke:
        return _take_back(args, found)
    wanted = [one for one in found if not one.is_trusted]
    if not wanted:
        return answer(args, list, lambda: ["Nothing here waits for your trust."])
    if not args.as_json:
        for line in _lines(wanted):
            print_line(line)
    confirm(args, "Allow these commands to run as you?")
    for one in wanted:
        _allow(one)
    lines = [f"Trusted: {safe(one.of)}" for one in wanted]
    return answer(args, lambda: _json(wanted), lambda: lines) or _complete_finished(args, wanted)


def _complete_finished(args: Args, wanted: Sequence[Wanted]) -> int:
    """Complete the tasks whose work was finished and only waited for this trust."""
    failed = False
    for one in wanted:
        waits = as_object(one.task.extra.get("awaiting")) if one.task is not None else None
        if one.task is None or waits is None or one.task.is_done:
            continue
        folder = str(waits.get("cwd") or "")
        cwd = folder if os.path.isdir(folder) else None
        try:
            with open_yard(args, cwd=cwd) as yard:
                yard.tasks.update(one.task.id, status="completed", clear=("awaiting",))
        except TaskyardError as error:
            failed = True
            warn(f"Task #{one.task.id} is not completed: {error}")
        else:
            say(args, f"Completed #{one.task.id}, which waited for this.")
    return 1 if failed else 0


def _take_back(args: Args, found: Sequence[Wanted]) -> int:
    done = [one for one in found if _revoke(one)]

    def lines() -> list[str]:
        return [f"No longer trusted: {safe(one.of)}" for one in done] or ["Nothing of it was trusted."]

    return answer(args, lambda: _json(done), lines)


def _wanted(args: Args, yard: Yard) -> Iterator[Wanted]:
    from taskyard.surroundings import project_here

    root = project_here()
    if args.id is None and root is not None:
        yield from _of_project(root, even_without=args.revoke)
        yield from _of_git(root, even_without=args.revoke)
    if args.id is not None:
        found = _of_task(yard.tasks.get(args.id))
        if found is None:
            raise NotFound(f"Task #{args.id} has no acceptance command.")
        yield found
    elif args.all:
        yield from (found for task in yard.tasks.list() if (found := _of_task(task)) is not None)


def _of_project(root: str, *, even_without: bool) -> Iterator[Wanted]:
    """The project's hooks; trust in hooks that have changed since, or are gone, can be taken back too."""
    from taskyard.hooks import load

    commands = load(root).project_commands
    if commands or even_without:
        trusted = trust.trusted_project(root, commands)
        yield Wanted("project", os.path.realpath(root), commands, trusted, f"hooks of the project {root}")


def _of_git(root: str, *, even_without: bool) -> Iterator[Wanted]:
    """The programs that the repository's own configuration names, such as filters."""
    if not os.path.lexists(os.path.join(root, ".git")):
        return
    from taskyard.runtime.git import own_programs

    programs = own_programs(root)
    if programs or even_without:
        trusted = trust.trusted_git(root, programs)
        yield Wanted("git", os.path.realpath(root), programs, trusted, f"programs in the git configuration of {root}")


def _of_task(task: Task) -> Wanted | None:
    from taskyard.acceptance import check_acceptance

    spec = task.extra.get("acceptance")
    if spec is None:
        return None
    try:
        found = check_acceptance(spec, folder=os.getcwd())
    except TaskyardError:
        return None  # what cannot run needs no trust
    trusted = trust.trusted_command(found.command, found.trusted_at)
    of = f"acceptance of #{task.id} {task.subject}"
    return Wanted("acceptance", found.trusted_at, (found.command,), trusted, of, task)


def _allow(one: Wanted) -> None:
    if one.kind == "project":
        trust.trust_project(one.path, one.commands)
    elif one.kind == "git":
        trust.trust_git(one.path, one.commands)
    else:
        trust.trust_command(one.commands[0], one.path)


def _revoke(one: Wanted) -> bool:
    if one.kind == "acceptance":
        return trust.revoke(one.path, one.commands[0])
    return trust.revoke(one.path, kind=one.kind)


def _lines(wanted: Sequence[Wanted]) -> Iterator[str]:
    for one in wanted:
        yield f"{safe(one.of)}, in {safe(one.path)}:"
        for command in one.commands:
            yield from (f"    {safe(line)}" for line in command.splitlines())


def _json(wanted: Sequence[Wanted]) -> list[dict[str, object]]:
    return [{"kind": one.kind, "path": one.path, "commands": list(one.commands)} for one in wanted]


def _show_trusted(args: Args) -> int:
    found = trust.list_trusted()
    data = [one._asdict() for one in found]
    known = [Wanted(one.kind, one.path, one.commands, True, _kind(one.kind)) for one in found]
    return answer(args, lambda: data, lambda: list(_lines(known)) or ["Nothing is trusted."])


def _kind(kind: str) -> str:
    names = {"project": "hooks of a project", "git": "programs in a project's git configuration"}
    return names.get(kind, "an acceptance command")


TRUST = Command(
    _run,
    _arguments,
    "Show the hooks and git filters that came with this project, or acceptance commands of tasks, and allow them\n"
    "to run. Other people wrote them: read them first. After any change they must be allowed again.",
    examples=("taskyard trust", "taskyard trust 12", "taskyard trust --all --yes", "taskyard trust --trusted"),
    exits=(
        "1  a task that waited for this trust could not be completed",
        "2  nobody can be asked here: --yes",
        "130  you said no",
    ),
)
