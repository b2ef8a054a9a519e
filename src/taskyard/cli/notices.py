"""`taskyard notices …`: what became of background jobs, from a shell."""

from __future__ import annotations

import os
import sys

from taskyard import config, paths
from taskyard.cli.command import Command, Row
from taskyard.cli.output import answer, is_run_by_agent, print_line
from taskyard.cli.values import seconds, whole
from taskyard.clock import now_ms
from taskyard.errors import BadValue, NotFound, UsageError, shown
from taskyard.message_ids import is_id
from taskyard.relay import door
from taskyard.runtime.batch import CHARACTERS, MOST, Batch
from taskyard.runtime.notice import PERSON, to_json
from taskyard.runtime.recipients import PEOPLE
from taskyard.shapes import as_text
from taskyard.view.text import duration, safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.notice import Notice
    from taskyard.runtime.notices import Outbox
    from taskyard.runtime.verify import Verified

ROWS = {
    "": Row("taskyard.cli.notices:LIST", "What waits, left where it is"),
    "list": Row("taskyard.cli.notices:LIST", "What waits, left where it is"),
    "take": Row("taskyard.cli.notices:TAKE", "Take what waits; it comes back unless acknowledged"),
    "clear": Row("taskyard.cli.notices:CLEAR", "Show what waits and mark all of it as read"),
    "ack": Row("taskyard.cli.notices:ACK", "Mark notices as read"),
    "verify": Row("taskyard.cli.notices:VERIFY", "Whether what looks like a notice is genuine"),
}

#: Seconds a taken notice waits for its acknowledgement: a turn of a model begins well within.
HOLD = 60.0

_HELD = "Notices are on hold: agents get none until `taskyard release`; a person may take them with --force."


def _whose_arguments(parser: Parser) -> None:
    parser.add("--all", action="store_true", help="Of every recipient of this user, not only of --by (else 'me').")


def _outbox(args: Args) -> Outbox:
    return door.outbox(paths.home(), config.load(), None if args.all else _receiver(args))


def _receiver(args: Args) -> str:
    return str(args.by or os.environ.get("TASKYARD_AGENT") or PERSON)


def _for_people(args: Args) -> Outbox | None:
    """The box of notices that are for people alone, where a person reads here."""
    if args.all or _receiver(args) != PERSON or is_run_by_agent():
        return None
    return door.outbox(paths.home(), config.load(), PEOPLE)


def _waiting(args: Args, outbox: Outbox) -> list[Notice]:
    """What waits for the receiver, the oldest first; for a person also what no model hears."""
    found = outbox.waiting()
    if (people := _for_people(args)) is None:
        return found
    with people:
        own = people.waiting()
    return [*found, *own] if not own else sorted([*found, *own], key=lambda notice: notice.at)


def _list(args: Args) -> int:
    with _outbox(args) as outbox:
        found = _waiting(args, outbox)
        return answer(
            args,
            lambda: [to_json(notice) for notice in found],
            lambda: _lines(found, args),
            ids=(notice.id for notice in found),
            warnings=_warnings(outbox),
        )


def _take_arguments(parser: Parser) -> None:
    _whose_arguments(parser)
    parser.add("--limit", type=whole, default=MOST, metavar="N", help=f"At most so many; {MOST} if not given.")
    parser.add("--wait", type=seconds, metavar="TIME", help="If nothing waits, wait so long for the first.")
    parser.add("--xml", action="store_true", help="As one text for a model, bounded, with a count of the rest.")
    parser.add("--ack", action="store_true", help="Acknowledge what is printed, so that it does not come again.")
    parser.add("--force", action="store_true", help="As a person: also while notices are on hold.")


def _take(args: Args) -> int:
    if args.xml and args.as_json:
        raise UsageError("Either --xml, for a model, or --json, for a program.")
    if args.limit < 1:
        raise BadValue("--limit", args.limit, "a number from 1")
    if args.force and _receiver(args) != PERSON:
        raise UsageError("--force is a person's: an agent waits until the hold is released.")
    with _outbox(args) as outbox:
        bound = CHARACTERS if args.xml else None
        batch = outbox.batch(args.limit, characters=bound, hold=HOLD, force=args.force)
        if not batch.notices and args.wait is not None and outbox.wait(args.wait):
            batch = outbox.batch(args.limit, characters=bound, hold=HOLD, force=args.force)
        warnings = _warnings(outbox, force=args.force)
        if args.xml:
            _print_for_model(batch)
        else:
            answer(
                args,
                lambda: [to_json(notice) for notice in batch.notices],
                lambda: _lines(batch.notices, args, rest=batch.rest),
                ids=(notice.id for notice in batch.notices),
                warnings=warnings,
            )
        if args.ack and batch.notices:
            sys.stdout.flush()  # only what has left this process is acknowledged
            outbox.ack(notice.id for notice in batch.notices)
    return 0


def _print_for_model(batch: Batch) -> None:
    from taskyard.runtime.notice_text import for_model

    if batch.notices:
        print_line(for_model(batch.notices, rest=batch.rest))


def _ack_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="NOTICE", help="Ids as `taskyard notices` shows them.")


def _ack(args: Args) -> int:
    outbox = door.outbox(paths.home(), config.load(), None)
    for notice_id in args.ids:
        if not is_id(notice_id):
            raise BadValue("The id of a notice", notice_id, "an id as `taskyard notices` shows it")
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


def _clear(args: Args) -> int:
    if _receiver(args) != PERSON and not args.all:
        raise UsageError("`clear` is for people: an agent takes its notices and acknowledges each (`take`, `ack`).")
    with _outbox(args) as outbox:
        found = _waiting(args, outbox)
        done = set(door.outbox(paths.home(), config.load(), None).ack([notice.id for notice in found]))
        shown_now = [notice for notice in found if notice.id in done]
        return answer(
            args,
            lambda: [to_json(notice) for notice in shown_now],
            lambda: [*_lines(shown_now, args), *([f"Marked as read: {len(shown_now)}."] if shown_now else [])],
            ids=[notice.id for notice in shown_now],
            warnings=[str(error) for error in outbox.damaged],
        )


def _verify_arguments(parser: Parser) -> None:
    parser.add("file", nargs="?", default="-", metavar="FILE", help="XML or JSON of notices; - or nothing: stdin.")


def _verify(args: Args) -> int:
    from taskyard.runtime.verify import verified

    found = verified(door.issued(paths.home(), config.load()), _given(args.file))
    return answer(
        args,
        lambda: [_verified_json(one) for one in found],
        lambda: map(_verified_line, found),
        ids=(one.notice.id for one in found),
    )


def _verified_json(one: Verified) -> dict[str, object]:
    facts = {"id": one.notice.id, "task_id": one.notice.task_id, "genuine": True}
    return {**facts, "unproved": list(one.unproved)}


def _verified_line(one: Verified) -> str:
    beside = f"; not proved, since not signed: {', '.join(one.unproved)}" if one.unproved else ""
    return f"Genuine: {one.notice.id}, about job {one.notice.task_id}{beside}"


def _given(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read()
        with open(file, encoding="utf-8") as opened:
            return opened.read()
    except OSError as error:
        raise NotFound(f"{shown(file)} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise BadValue("What is to be verified", file, "text in UTF-8") from error


def _warnings(outbox: Outbox, *, force: bool = False) -> list[str]:
    held = [_HELD] if outbox.is_held() and not force else []
    return [*held, *(str(error) for error in outbox.damaged)]


def _lines(notices: Sequence[Notice], args: Args, *, rest: int = 0) -> Iterator[str]:
    """A notice in a line, `completed  b4kz81mp2  3m ago  Background command …`, and below it what it says."""
    if not notices:
        yield "No notices." if args.all else f"No notices for {safe(_receiver(args))}."
    for notice in notices:
        age = duration((now_ms() - notice.at) / 1000)
        more = [
            f"for {safe(notice.orphaned_from or notice.recipient)}" if args.all or notice.orphaned_from else "",
            "again" if notice.redelivered else "",
        ]
        word = notice.status or ("event" if notice.news.get("event") else "waits")
        yield "  ".join([notice.id, safe(word), notice.task_id, f"{age} ago", *filter(None, more)])
        yield f"    {safe(notice.summary)}"
        for line in (*as_text(notice.news.get("event")).splitlines(), *notice.tail.splitlines(), notice.hint):
            if line.strip():
                yield f"    {safe(line)}"
    if rest:
        yield f"{rest} more."


LIST = Command(
    _list,
    _whose_arguments,
    "Show what waits to be told about background jobs, and leave it there.",
    examples=("taskyard notices", "taskyard notices list --all --json"),
)
TAKE = Command(
    _take,
    _take_arguments,
    "Take what waits, the urgent first. Acknowledge it within 60 seconds: else it comes back, marked as delivered\n"
    "again. Whoever gets it is the one who started the job; if that one is gone, the next in line.",
    examples=(
        "taskyard notices take --by ada --wait 10m",
        "taskyard notices take --xml",
        "taskyard notices take --json",
    ),
)
CLEAR = Command(
    _clear,
    _whose_arguments,
    "Show the notices that wait for you and mark all of them as read, in one step.",
    examples=("taskyard notices clear", "taskyard notices clear --all"),
)
ACK = Command(
    _ack,
    _ack_arguments,
    "Mark notices as read: they are not delivered again. They need not have been taken before.",
    examples=("taskyard notices ack 0643a11c-8712-8e4f-a5d3-f19c20b7e441",),
    exits=("4  no such notice",),
)
VERIFY = Command(
    _verify,
    _verify_arguments,
    "Check that notices are genuine, word for word: a changed byte is refused, and so is an id that was never\n"
    "issued. Takes the XML a model got, or the JSON a program got. How a notice was delivered is not signed: what of\n"
    "it cannot be is refused, and what nobody can know any more is named.",
    examples=(
        "taskyard notices take --json | tee got.json | taskyard notices verify",
        "taskyard notices verify got.json",
    ),
    exits=("1  it is not genuine", "4  no such notice was ever issued"),
)
