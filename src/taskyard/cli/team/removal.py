"""`taskyard team remove`."""

from __future__ import annotations

from taskyard.cli.command import Command
from taskyard.cli.output import answer, open_yard
from taskyard.cli.team.show import one_team
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.crew.removal import Removed


def _arguments(parser: Parser) -> None:
    one_team(parser)
    parser.add(
        "--force",
        action="store_true",
        help="Stop its members, alive or stuck, with proof; also if its record is damaged.",
    )


def _remove(args: Args) -> int:
    with open_yard(args) as yard:
        if args.force:
            from taskyard.crew.removal import remove_by_force

            done = remove_by_force(yard, args.team)
        else:
            from taskyard.crew.removal import Removed

            teams = yard.teams
            team = teams.remove(args.team)
            done = Removed(team, teams.released, (), (), ())
    answer(args, lambda: _json(done), lambda: _lines(done), ids=done.released)
    return 1 if done.partial else 0


def _json(done: Removed) -> dict[str, object]:
    return {
        "team": done.team.name,
        "members": [member.name for member in done.team.members],
        "released": list(done.released),
        "stopped": list(done.stopped),
        "left": list(done.left),
        "partial": list(done.partial),
    }


def _lines(done: Removed) -> Iterator[str]:
    yield f"Team {safe(done.team.name)} is no more; its mail is kept.{released(done.released)}"
    for names, what in (
        (done.stopped, "Stopped"),
        (done.left, "Live on, as nothing that Taskyard runs"),
        (done.partial, "Something may be left of"),
    ):
        if names:
            yield f"{what}: {', '.join(safe(name) for name in names)}."


def released(ids: Sequence[str]) -> str:
    """What is free again, as a sentence behind another."""
    return f" Back in the pool: {', '.join('#' + task_id for task_id in ids)}." if ids else ""


REMOVE = Command(
    _remove,
    _arguments,
    "Dissolve a team. Its list stays; its mail is kept apart; unfinished tasks of its members are free again. With\n"
    "--force members that Taskyard runs are stopped first, with everything they started, and so is a `team up` that\n"
    "leads them; it works also on those that are stuck, dead or damaged.",
    examples=("taskyard team remove crew", "taskyard team remove crew --force"),
    exits=(
        "1  of a member that was stopped something may be left",
        "5  a member may still live: --force; or the team is Claude Code's",
    ),
)
