"""`taskyard mail …`: messages between agents, from a shell."""

from __future__ import annotations

import sys

from taskyard.cli.main import Command, CommandEntry
from taskyard.cli.output import answer, open_yard, print_json, print_line
from taskyard.cli.parser import seconds
from taskyard.core.system import now_ms
from taskyard.core.text import duration, escape_control
from taskyard.core.values import PERSON
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.agents.mail import Mail, Message
    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser

MAIL_ROWS = {
    "send": CommandEntry("taskyard.cli.mail:SEND", "Send a message to an agent"),
    "read": CommandEntry("taskyard.cli.mail:READ", "Read an agent's messages, live with --follow"),
    "receipts": CommandEntry("taskyard.cli.mail:RECEIPTS", "Show the delivery status of messages"),
}

#: Longest single sleep while following, in seconds; new mail wakes it sooner.
_IDLE_WAIT = 3600.0


def _send_arguments(parser: Parser) -> None:
    parser.add("to", metavar="TO", help="Recipient.")
    parser.add("text", metavar="TEXT", help="Message text; - reads standard input.")
    parser.add("--from", dest="sender", metavar="AGENT", help="Sender; default: --by, else 'me'.")
    parser.add("--summary", metavar="TEXT", help="One-line summary of the message.")


def _send(args: Args) -> int:
    text = sys.stdin.read() if args.text == "-" else args.text
    with open_yard(args) as yard:
        sender = args.sender or yard.agent or PERSON
        receipt = yard.mail.send(sender, args.to, text, summary=args.summary)
        warnings = [str(error) for error in yard.mail.damaged]
    data = {"id": receipt.id, "state": receipt.state, "from": sender, "to": args.to}
    said = f"Stored for {escape_control(args.to)}: {receipt.id}"
    return answer(args, lambda: data, lambda: [said], ids=[receipt.id], warnings=warnings)


def _read_arguments(parser: Parser) -> None:
    parser.add("--agent", metavar="AGENT", help="Agent whose mail to read; default: --by, else 'me'.")
    parser.add("--peek", action="store_true", help="Show messages without marking them as read.")
    parser.add("--follow", "-f", action="store_true", help="Keep running and show new messages.")
    parser.add("--timeout", type=seconds, metavar="TIME", help="With --follow: exit after this long without mail.")


def _read(args: Args) -> int:
    if args.timeout is not None and not args.follow:
        raise UsageError("--timeout requires --follow.")
    if args.peek and args.follow:
        raise UsageError("Give either --peek or --follow.")
    with open_yard(args) as yard, yard.mail as post:
        agent = args.agent or yard.agent or PERSON
        if args.follow:
            return _follow(args, post, agent)
        messages = post.peek(agent) if args.peek else list(_take_all(post, agent))
        answer(
            args,
            lambda: [message_json(message) for message in messages],
            lambda: _lines(messages, agent),
            ids=(message.id for message in messages),
            warnings=[str(error) for error in post.damaged],
        )
        if not args.peek:
            sys.stdout.flush()  # messages that were not shown stay unread
            post.ack(agent, [message.id for message in messages])
    return 0


def _take_all(post: Mail, agent: str) -> Iterator[Message]:
    while found := post.take(agent):
        yield from found


def _follow(args: Args, post: Mail, agent: str) -> int:
    """Print messages as they arrive, each acknowledged once it is written."""
    post.open_box(agent)
    while post.wait(agent, args.timeout or _IDLE_WAIT) or args.timeout is None:
        for message in _take_all(post, agent):
            if args.as_json:
                print_json({"data": message_json(message)})
            else:
                for line in [message.id] if args.quiet else _message(message):
                    print_line(line)
            sys.stdout.flush()
            post.ack(agent, [message.id])
    return 0


def _lines(messages: Sequence[Message], agent: str) -> Iterator[str]:
    if not messages:
        yield f"No mail for {escape_control(agent)}."
    for message in messages:
        yield from _message(message)


def _message(message: Message) -> Iterator[str]:
    """Yield `ada, 3m ago` and the text below."""
    age = duration((now_ms() - message.sent_at) / 1000)
    kind = "" if message.type == "message" else f", {escape_control(message.type).replace('_', ' ')}"
    again = ", again" if message.redelivered else ""
    yield f"{escape_control(message.sender)}, {age} ago{kind}{again}"
    for line in (message.text or _from_data(message)).splitlines():
        yield f"    {escape_control(line)}"


def _from_data(message: Message) -> str:
    """Return the fields of a protocol message as text; a task by its number and subject."""
    data = dict(message.data)
    if message.type == "task_assignment":
        more = data.get("description")
        head = f"#{data.get('taskId')} {data.get('subject')}"
        return f"{head}\n{more}" if more and more != data.get("subject") else head
    return "\n".join(f"{key}: {value}" for key, value in data.items())


def message_json(message: Message) -> dict[str, object]:
    """Return a message as JSON values."""
    return {
        "id": message.id,
        "from": message.sender,
        "to": message.recipient,
        "team": message.team,
        "type": message.type,
        "text": message.text,
        "summary": message.summary,
        "data": dict(message.data),
        "sent_at": message.sent_at,
        "redelivered": message.redelivered,
    }


def _receipts_arguments(parser: Parser) -> None:
    parser.add("ids", nargs="+", metavar="ID", help="Message ids, as printed by `send`.")


def _receipts(args: Args) -> int:
    with open_yard(args) as yard:
        states = {message_id: yard.mail.receipt(message_id) for message_id in args.ids}
    data = [{"id": message_id, "state": state} for message_id, state in states.items()]
    return answer(args, lambda: data, lambda: [f"{i}  {state}" for i, state in states.items()], ids=states.values())


SEND = Command(
    _send,
    _send_arguments,
    "Send a message. The message is stored when the command returns, and is redelivered if its reader crashes.",
    examples=("taskyard mail send bob 'The API is frozen' --from ada", "git diff | taskyard mail send bob -"),
    exits=("4  no such recipient",),
)
READ = Command(
    _read,
    _read_arguments,
    "Show an agent's messages, oldest first. Shown messages are marked as read, except with --peek.",
    examples=("taskyard mail read --agent bob", "taskyard mail read --follow --json"),
)
RECEIPTS = Command(
    _receipts,
    _receipts_arguments,
    "Show whether messages are stored, delivered (taken by a reader) or read.",
    examples=("taskyard mail receipts 0199a7c3-52d0-8001-b2c3-9f1e6a4d7c20",),
    exits=("4  no such message",),
)
