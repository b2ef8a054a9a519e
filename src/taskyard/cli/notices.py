"""`taskyard notices` and `taskyard limits`: notices of background jobs, and rate limits of agents.

The internal command `__sinks FILE` delivers one notice to every sink, in the process started by `start_sinks`.
"""

from __future__ import annotations

import os
import sys

from taskyard import config, yard
from taskyard.cli.main import Command, CommandEntry
from taskyard.cli.output import answer, is_run_by_agent, print_line, warn
from taskyard.cli.parser import integer, seconds
from taskyard.core.system import now_ms
from taskyard.core.text import duration, escape_control, padded, width
from taskyard.core.values import PERSON, as_text
from taskyard.errors import BadValue, NotFound, UsageError, quote_value
from taskyard.jobs.notice import MAX_BATCH, MAX_CHARACTERS, NoticeBatch, to_json
from taskyard.jobs.notice_payload import PEOPLE
from taskyard.storage.message_ids import is_message_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.jobs.notice import Notice
    from taskyard.jobs.notice_check import VerifiedNotice
    from taskyard.jobs.notices import Outbox
    from taskyard.jobs.rate_limit import RateLimited


NOTICES_ROWS = {
    "": CommandEntry("taskyard.cli.notices:LIST", "List pending notices"),
    "list": CommandEntry("taskyard.cli.notices:LIST", "List pending notices"),
    "take": CommandEntry("taskyard.cli.notices:TAKE", "Take pending notices; redelivered unless acknowledged"),
    "clear": CommandEntry("taskyard.cli.notices:CLEAR", "Show pending notices and mark all as read"),
    "ack": CommandEntry("taskyard.cli.notices:ACK", "Mark notices as read"),
    "verify": CommandEntry("taskyard.cli.notices:VERIFY", "Verify that a notice is genuine"),
}

#: Seconds a taken notice waits for its acknowledgement: a model's turn begins well within.
ACK_TIMEOUT = 60.0

_PAUSED_TEXT = "Notices are on hold: agents get none until `taskyard release`; a person can take them with --force."


def _recipient_arguments(parser: Parser) -> None:
    parser.add(
        "--all", action="store_true", help="Notices of all recipients of this user, not only of --by (default: 'me')."
    )


def _outbox(args: Args) -> Outbox:
    return yard.open_outbox(config.home(), config.load_settings(), None if args.all else _recipient(args))


def _recipient(args: Args) -> str:
    return str(args.by or os.environ.get("TASKYARD_AGENT") or PERSON)


def _people_outbox(args: Args) -> Outbox | None:
    """Return the outbox of notices for people only, if the user reads here."""
    if args.all or _recipient(args) != PERSON or is_run_by_agent():
        return None
    return yard.open_outbox(config.home(), config.load_settings(), PEOPLE)


def _pending_notices(args: Args, outbox: Outbox) -> list[Notice]:
    """Return the waiting notices of the recipient, oldest first; for the user also those no model gets."""
    found = outbox.waiting()
    if (people := _people_outbox(args)) is None:
        return found
    with people:
        own = people.waiting()
    return [*found, *own] if not own else sorted([*found, *own], key=lambda notice: notice.at)


def _list(args: Args) -> int:
    with _outbox(args) as outbox:
        found = _pending_notices(args, outbox)
        return answer(
            args,
            lambda: [to_json(notice) for notice in found],
            lambda: _notices_lines(found, args),
            ids=(notice.id for notice in found),
            warnings=_warnings(outbox),
        )


def _take_arguments(parser: Parser) -> None:
    _recipient_arguments(parser)
    parser.add(
        "--limit",
        type=integer,
        default=MAX_BATCH,
        metavar="N",
        help=f"Maximum number of notices; default: {MAX_BATCH}.",
    )
    parser.add("--wait", type=seconds, metavar="TIME", help="If there are no notices, wait up to this long for one.")
    parser.add("--xml", action="store_true", help="Print one bounded text for a model, with a count of the rest.")
    parser.add("--ack", action="store_true", help="Acknowledge the printed notices, so that they are not redelivered.")
    parser.add("--force", action="store_true", help="For people: take notices also while they are on hold.")


def _take(args: Args) -> int:
    if args.xml and args.as_json:
        raise UsageError("Give either --xml (for a model) or --json (for a program).")
    if args.limit < 1:
        raise BadValue("--limit", args.limit, "a number from 1")
    if args.force and _recipient(args) != PERSON:
        raise UsageError("--force is for people: an agent waits until the hold is released.")
    with _outbox(args) as outbox:
        bound = MAX_CHARACTERS if args.xml else None
        batch = outbox.batch(args.limit, characters=bound, hold=ACK_TIMEOUT, force=args.force)
        if not batch.notices and args.wait is not None and outbox.wait(args.wait):
            batch = outbox.batch(args.limit, characters=bound, hold=ACK_TIMEOUT, force=args.force)
        warnings = _warnings(outbox, force=args.force)
        if args.xml:
            _print_for_model(batch)
        else:
            answer(
                args,
                lambda: [to_json(notice) for notice in batch.notices],
                lambda: _notices_lines(batch.notices, args, rest=batch.rest),
                ids=(notice.id for notice in batch.notices),
                warnings=warnings,
            )
        if args.ack and batch.notices:
            sys.stdout.flush()  # only what has left this process is acknowledged
            outbox.ack(notice.id for notice in batch.notices)
    return 0


def _print_for_model(batch: NoticeBatch) -> None:
    from taskyard.jobs.notice import for_model

    if batch.notices:
        print_line(for_model(batch.notices, rest=batch.rest))


def _ack_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="NOTICE", help="Notice ids, as shown by `taskyard notices`.")


def _ack(args: Args) -> int:
    outbox = yard.open_outbox(config.home(), config.load_settings(), None)
    for notice_id in args.ids:
        if not is_message_id(notice_id):
            raise BadValue("The id of a notice", notice_id, "an id as shown by `taskyard notices`")
        if outbox.state(notice_id) is None:
            raise NotFound(f"No notice {notice_id}.")
    done = outbox.ack(args.ids)
    states = {notice_id: "acknowledged" if notice_id in done else "already_acknowledged" for notice_id in args.ids}
    return answer(
        args,
        lambda: [{"id": notice_id, "state": state} for notice_id, state in states.items()],
        lambda: (f"{notice_id}  {state.replace('_', ' ')}" for notice_id, state in states.items()),
        ids=done,
    )


def _notices_clear(args: Args) -> int:
    if _recipient(args) != PERSON and not args.all:
        raise UsageError("`clear` is for people: an agent takes its notices and acknowledges each (`take`, `ack`).")
    with _outbox(args) as outbox:
        found = _pending_notices(args, outbox)
        done = set(yard.open_outbox(config.home(), config.load_settings(), None).ack([notice.id for notice in found]))
        shown_now = [notice for notice in found if notice.id in done]
        return answer(
            args,
            lambda: [to_json(notice) for notice in shown_now],
            lambda: [*_notices_lines(shown_now, args), *([f"Marked as read: {len(shown_now)}."] if shown_now else [])],
            ids=[notice.id for notice in shown_now],
            warnings=[str(error) for error in outbox.damaged],
        )


def _verify_arguments(parser: Parser) -> None:
    parser.add(
        "file",
        nargs="?",
        default="-",
        metavar="FILE",
        help="File with notices in XML or JSON; default: standard input.",
    )


def _verify(args: Args) -> int:
    from taskyard.jobs.notice_check import verify_notices

    found = verify_notices(yard.open_issued(config.home(), config.load_settings()), _read_input(args.file))
    return answer(
        args,
        lambda: [_verified_json(one) for one in found],
        lambda: map(_verified_line, found),
        ids=(one.notice.id for one in found),
    )


def _verified_json(one: VerifiedNotice) -> dict[str, object]:
    facts = {"id": one.notice.id, "task_id": one.notice.task_id, "genuine": True}
    return {**facts, "unproved": list(one.unproved)}


def _verified_line(one: VerifiedNotice) -> str:
    beside = f"; not verified, because not signed: {', '.join(one.unproved)}" if one.unproved else ""
    return f"Genuine: {one.notice.id}, about job {one.notice.task_id}{beside}"


def _read_input(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except OSError as error:
        raise NotFound(f"{quote_value(file)} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadValue("What is to be verified", file, "text in UTF-8") from error


def _warnings(outbox: Outbox, *, force: bool = False) -> list[str]:
    held = [_PAUSED_TEXT] if outbox.is_held() and not force else []
    return [*held, *(str(error) for error in outbox.damaged)]


def _notices_lines(notices: Sequence[Notice], args: Args, *, rest: int = 0) -> Iterator[str]:
    """Yield a line per notice, `completed  b4kz81mp2  3m ago  Background command …`, and its text below."""
    if not notices:
        yield "No notices." if args.all else f"No notices for {escape_control(_recipient(args))}."
    for notice in notices:
        age = duration((now_ms() - notice.at) / 1000)
        more = [
            f"for {escape_control(notice.orphaned_from or notice.recipient)}"
            if args.all or notice.orphaned_from
            else "",
            "again" if notice.redelivered else "",
        ]
        word = notice.status or ("event" if notice.news.get("event") else "waits")
        yield "  ".join([notice.id, escape_control(word), notice.task_id, f"{age} ago", *filter(None, more)])
        yield f"    {escape_control(notice.summary)}"
        for line in (*as_text(notice.news.get("event")).splitlines(), *notice.tail.splitlines(), notice.hint):
            if line.strip():
                yield f"    {escape_control(line)}"
    if rest:
        yield f"{rest} more."


LIST = Command(
    _list,
    _recipient_arguments,
    "List pending notices about background jobs without taking them.",
    examples=("taskyard notices", "taskyard notices list --all --json"),
)
TAKE = Command(
    _take,
    _take_arguments,
    "Take pending notices, urgent ones first. Acknowledge them within 60 seconds; otherwise they are "
    "redelivered and\n"
    "marked as such. The recipient is the agent that started the job, or the next in line if that agent is "
    "gone.",
    examples=(
        "taskyard notices take --by ada --wait 10m",
        "taskyard notices take --xml",
        "taskyard notices take --json",
    ),
)
CLEAR = Command(
    _notices_clear,
    _recipient_arguments,
    "Show your pending notices and mark all of them as read, in one step.",
    examples=("taskyard notices clear", "taskyard notices clear --all"),
)
ACK = Command(
    _ack,
    _ack_arguments,
    "Mark notices as read, so that they are not redelivered. They need not have been taken before.",
    examples=("taskyard notices ack 0643a11c-8712-8e4f-a5d3-f19c20b7e441",),
    exits=("4  no such notice",),
)
VERIFY = Command(
    _verify,
    _verify_arguments,
    "Verify the signature of notices: a notice with a changed byte or an unknown id is refused. Accepts the "
    "XML given to\n"
    "a model or the JSON given to a program. Delivery attributes are not signed: impossible values are "
    "refused, and\n"
    "values that can no longer be verified are listed.",
    examples=(
        "taskyard notices take --json | tee got.json | taskyard notices verify",
        "taskyard notices verify got.json",
    ),
    exits=("1  not genuine", "4  no such notice was issued"),
)


def _arguments(parser: Parser) -> None:
    parser.add("file", metavar="FILE", help="As `taskyard.jobs.sinks.start_sinks` wrote it.")


def _run_notices(args: Args) -> int:
    from taskyard.jobs.sink_delivery import deliver

    failed = deliver(args.file)
    if not args.as_json:
        for text in failed:
            warn(text)
    answer(args, lambda: {"failed": failed}, list)
    return 1 if failed else 0


SINKS = Command(_run_notices, _arguments, "Send one event to every sink.")


LIMITS_ROWS = {
    "": CommandEntry("taskyard.cli.notices:LIMITS", "Rate limits that agents wait for"),
    "clear": CommandEntry("taskyard.cli.notices:LIMITS_CLEAR", "Lift a rate limit early"),
}


def _run_limits(args: Args) -> int:
    from taskyard.jobs import rate_limit

    found = rate_limit.active_limits(config.home())
    return answer(args, lambda: [_facts(*one) for one in found.items()], lambda: _limits_lines(found), ids=found)


def _facts(account: str, limit: RateLimited) -> dict[str, object]:
    return {
        "account": account,
        "provider": limit.provider,
        "until": limit.until_ms,
        "since": limit.since_ms,
        "reason": limit.reason,
        "is_estimate": limit.is_estimate,
    }


def _limits_lines(found: Mapping[str, RateLimited]) -> Iterator[str]:
    if not found:
        yield "No account is rate-limited."
    widest = max(map(width, found), default=0)
    for account, limit in found.items():
        yield f"{padded(escape_control(account), widest)}  {limit.words()}  {escape_control(limit.reason)}".rstrip()


def _clear_arguments(parser: Parser) -> None:
    parser.add("account", nargs="?", metavar="ACCOUNT", help="The account, or a provider for all of its accounts.")
    parser.add("--all", action="store_true", help="Lift every rate limit.")


def _limits_clear(args: Args) -> int:
    from taskyard.jobs import rate_limit

    if args.all == (args.account is not None):
        raise UsageError("Name an account, or give --all.")
    home = config.home()
    known = rate_limit.active_limits(home)
    wanted = [one for one, limit in known.items() if args.all or args.account in (one, limit.provider)]
    if not wanted and not args.all:
        raise NotFound(f"No account {args.account!r} is rate-limited. `taskyard limits` lists those that are.")
    for account in wanted:
        rate_limit.lift_limit(home, account)
    lines = [f"Lifted the rate limit of {escape_control(account)}." for account in wanted] or [
        "No account is rate-limited."
    ]
    return answer(args, lambda: [_facts(one, known[one]) for one in wanted], lambda: lines, ids=wanted)


LIMITS = Command(
    _run_limits,
    about="List the accounts that a provider has rate-limited, until when, and why. Agents on them wait.",
    examples=("taskyard limits", "taskyard limits clear anthropic"),
)
LIMITS_CLEAR = Command(
    _limits_clear,
    _clear_arguments,
    "Lift a rate limit early, for instance after buying more quota. Agents that wait try again within\n"
    "two seconds, and wait again if the provider still refuses.",
    examples=("taskyard limits clear anthropic", "taskyard limits clear --all"),
    exits=("4  no such account is rate-limited",),
)
