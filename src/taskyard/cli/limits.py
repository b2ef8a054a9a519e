"""`taskyard limits`: the rate limits that agents wait for, and lifting one early."""

from __future__ import annotations

from taskyard import paths
from taskyard.cli.command import Command, Row
from taskyard.cli.output import answer
from taskyard.errors import NotFound, UsageError
from taskyard.view.text import padded, safe, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.rate_limit import RateLimited

ROWS = {
    "": Row("taskyard.cli.limits:LIMITS", "Rate limits that agents wait for"),
    "clear": Row("taskyard.cli.limits:CLEAR", "Lift a rate limit early"),
}


def _run(args: Args) -> int:
    from taskyard.runtime import pace

    found = pace.limits(paths.home())
    return answer(args, lambda: [_facts(*one) for one in found.items()], lambda: _lines(found), ids=found)


def _facts(account: str, limit: RateLimited) -> dict[str, object]:
    return {
        "account": account,
        "provider": limit.provider,
        "until": limit.until_ms,
        "since": limit.since_ms,
        "reason": limit.reason,
        "is_estimate": limit.is_estimate,
    }


def _lines(found: Mapping[str, RateLimited]) -> Iterator[str]:
    if not found:
        yield "No account is rate-limited."
    widest = max(map(width, found), default=0)
    for account, limit in found.items():
        yield f"{padded(safe(account), widest)}  {limit.words()}  {safe(limit.reason)}".rstrip()


def _clear_arguments(parser: Parser) -> None:
    parser.add("account", nargs="?", metavar="ACCOUNT", help="The account, or a provider for all of its accounts.")
    parser.add("--all", action="store_true", help="Lift every rate limit.")


def _clear(args: Args) -> int:
    from taskyard.runtime import pace

    if args.all == (args.account is not None):
        raise UsageError("Name an account, or give --all.")
    home = paths.home()
    known = pace.limits(home)
    wanted = [one for one, limit in known.items() if args.all or args.account in (one, limit.provider)]
    if not wanted and not args.all:
        raise NotFound(f"No account {args.account!r} is rate-limited. `taskyard limits` lists those that are.")
    for account in wanted:
        pace.lift(home, account)
    lines = [f"Lifted the rate limit of {safe(account)}." for account in wanted] or ["No account is rate-limited."]
    return answer(args, lambda: [_facts(one, known[one]) for one in wanted], lambda: lines, ids=wanted)


LIMITS = Command(
    _run,
    about="List the accounts that a provider has rate-limited, until when, and why. Agents on them wait.",
    examples=("taskyard limits", "taskyard limits clear anthropic"),
)
CLEAR = Command(
    _clear,
    _clear_arguments,
    "Lift a rate limit early, for instance after buying more quota. Agents that wait try again within\n"
    "two seconds, and wait again if the provider still refuses.",
    examples=("taskyard limits clear anthropic", "taskyard limits clear --all"),
    exits=("4  no such account is rate-limited",),
)
