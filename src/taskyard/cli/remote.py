"""`taskyard remote`: the places that run agents, and whether they would."""

from __future__ import annotations

from taskyard.cli.command import Command, Row
from taskyard.cli.output import answer, print_json, print_line, say
from taskyard.remote.remotes import remote_named, remotes
from taskyard.view.text import padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.errors import UsageError
    from taskyard.remote.check import Checked
    from taskyard.remote.remotes import Remote

ROWS = {
    "": Row("taskyard.cli.remote:LIST", "The places that run agents"),
    "list": Row("taskyard.cli.remote:LIST", "The places that run agents, as they are set up"),
    "check": Row("taskyard.cli.remote:CHECK", "Whether they would, and what is wrong if not"),
}

#: The exit codes of a check: something is wrong, and that it may be right later.
_WRONG, _AWAY = 1, 75

_NONE = "None is set up. Name one in config.toml: a table [remotes.NAME] with backend and url."


def _list(args: Args) -> int:
    wrong: list[str] = []
    found = list(remotes(report=lambda _, error: wrong.append(str(error))).values())
    if not found and not wrong:
        say(args, _NONE)
    return answer(
        args,
        lambda: [_facts(one) for one in found],
        lambda: _lines(found),
        ids=(one.name for one in found),
        warnings=wrong,
    )


def _facts(one: Remote) -> dict[str, object]:
    """A place for machines; where its token is, never what it is."""
    from taskyard.remote.check import shown_url

    return {
        "name": one.name,
        "backend": one.backend,
        "url": shown_url(one.url) or None,
        "token_env": one.token_env or None,
        "token_keyring": one.token_keyring or None,
        "command": one.command or None,
    }


def _lines(found: Sequence[Remote]) -> Iterator[str]:
    from taskyard.remote.check import shown_url

    names = max((width(one.name) for one in found), default=0)
    kinds = max((width(one.backend) for one in found), default=0)
    for one in found:
        token = (
            f"  token in ${one.token_env}" if one.token_env else "  token in the keyring" if one.token_keyring else ""
        )
        yield (
            f"{padded(safe(one.name), names)}  {padded(safe(one.backend), kinds)}  {safe(shown_url(one.url))}{token}"
        ).rstrip()


def _check_arguments(parser: Parser) -> None:
    parser.add("remote", nargs="?", metavar="REMOTE", help="The place; every one if not given.")


def _check(args: Args) -> int:
    import asyncio

    from taskyard.remote.check import check, not_understood

    unread: list[Checked] = []

    def report(name: str, error: UsageError) -> None:
        unread.append(not_understood(name, error))

    wanted = list(remotes(report=report).values()) if args.remote is None else [remote_named(args.remote)]

    async def all_checked() -> list[Checked]:
        return await asyncio.gather(*map(check, wanted))

    found = [*asyncio.run(all_checked()), *unread]
    if not found:
        say(args, _NONE)
    wrong = [one for one in found if one.problem]
    if args.as_json:
        print_json({"data": [{**one._asdict(), "ok": not one.problem} for one in found]})
    else:
        for line in (one.remote for one in wrong) if args.quiet else _checked_lines(found):
            print_line(line)
    return 0 if not wrong else _AWAY if all(one.is_away for one in wrong) else _WRONG


def _checked_lines(found: Iterable[Checked]) -> Iterator[str]:
    for one in found:
        where = f"{safe(one.backend)} at {safe(one.url)}" if one.url else safe(one.backend)
        named = f"{safe(one.remote)} ({where})" if where else safe(one.remote)
        yield f"{'✗' if one.problem else '✓'} {named}: {safe(one.said)}"
        if one.problem and one.advice:
            yield f"  → {safe(one.advice)}"


LIST = Command(
    _list,
    about="Show the places that run agents, as config.toml names them. `taskyard remote check` asks whether they\n"
    "would, `taskyard agent PROMPT --remote NAME` has one work there.",
    examples=("taskyard remote list", "taskyard remote list --json"),
)

CHECK = Command(
    _check,
    _check_arguments,
    "Look at places that run agents, step by step: what is set up, the token, the host, who answers there. Nothing\n"
    "is begun. Of what is wrong, it says what to do next; with -q only the names of those are printed.",
    examples=("taskyard remote check", "taskyard remote check cluster", "taskyard remote check --json"),
    exits=(
        "1   something is wrong with one of them",
        "4   none of this name is set up",
        "75  one cannot be reached now",
    ),
)
