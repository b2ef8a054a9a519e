"""Bridge between our mail and Claude Code's inboxes (`<claude>/teams/<team>/inboxes/<name>.json`).

An inbox is one JSON array that all its writers rewrite under a lock; delivered entries are removed. Free text
is an entry's text. Protocol messages are a JSON string in it, with a `type` and the fields in `_FIELDS`; a
JSON text of any other type is free text to us.

Mail to a member that Claude Code runs is added to its inbox. Mail that Claude Code wrote to a member of ours
is moved into that member's mailbox, exactly once:

    1. stage      every new message becomes a file in `<box>/stage/`
    2. remember   `<box>/imported.json` gets the keys of all that is staged
    3. deliver    each staged file is renamed into `new`: it exists once, so it arrives once
    4. remove     the inbox is rewritten without them
    5. forget     keys that are gone from the inbox

A process killed in between is completed by the next: a staged file was never delivered, and a remembered
message is never staged again. An inbox, or an entry of one, that cannot be read is reported and left exactly
as it is.

With mail in a database, `ClaudeMailBridge` moves messages from that local mailbox on: stored in the database
under the same id (idempotent), then acknowledged here.
"""

from __future__ import annotations

import json
import os

from taskyard.agents import teams
from taskyard.agents.mail import MESSAGE, TYPES, Message, encode_message
from taskyard.agents.teams import ClaudeTeam, TeamLock, as_json
from taskyard.core import files
from taskyard.core.system import iso, now_ms
from taskyard.core.values import as_list, as_name, as_object, as_text, folder_name
from taskyard.errors import BadText, BadValue, Busy, Damaged, StorageError
from taskyard.storage import maildir, message_ids
from taskyard.storage.maildir import Maildir, mail_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


#: Fields of protocol messages, in Claude Code's order.
_FIELDS = {
    "task_assignment": ("taskId", "subject", "description", "assignedBy", "timestamp"),
    "idle_notification": ("from", "timestamp", "idleReason", "result"),
    "shutdown_request": ("requestId", "from", "reason", "timestamp"),
    "shutdown_approved": ("requestId", "from", "timestamp", "paneId", "backendType"),
    "plan_approval_request": ("from", "timestamp", "planFilePath", "planContent", "requestId"),
    "plan_approval_response": ("requestId", "approved", "feedback", "timestamp"),
}


def to_entry(message: Message) -> dict[str, Any]:
    """Return `message` as an entry of an inbox."""
    entry: dict[str, Any] = {"from": message.sender, "text": to_text(message)}
    if message.summary is not None:
        entry["summary"] = message.summary
    return entry | {
        "timestamp": iso(message.sent_at),
        "msgV": 1,
        "msg_id": message.id,
        "type": "message",
        "read": False,
    }


def to_text(message: Message) -> str:
    """Return the text of an entry: a protocol message is a JSON string."""
    if message.type == MESSAGE:
        return message.text
    known: dict[str, object] = {"from": message.sender, "timestamp": iso(message.sent_at)}
    if message.text:
        known["reason" if message.type == "shutdown_request" else "text"] = message.text
    known.update(message.data)
    fields = {field: known[field] for field in _FIELDS[message.type] if field in known}
    rest = {field: value for field, value in message.data.items() if field not in fields and field != "type"}
    return json.dumps({"type": message.type} | fields | rest, ensure_ascii=False, separators=(",", ":"))


def from_entry(entry: dict[str, Any], *, message_id: str, recipient: str, team: str) -> Message | None:
    """Return the message in an entry of an inbox; None if it is not one."""
    sender, text = as_name(entry.get("from")), entry.get("text")
    if not sender or not isinstance(text, str):
        return None
    kind, data = from_text(text)
    return Message(
        id=message_id,
        sender=sender,
        recipient=recipient,
        team=team,
        type=kind,
        text=text if kind == MESSAGE else as_text(data.get("reason")),
        summary=as_text(entry.get("summary")) or None,
        data=data,
        sent_at=_epoch_ms(as_text(entry.get("timestamp"))),
    )


def from_text(text: str) -> tuple[str, dict[str, Any]]:
    """Return type and fields of a text: those of a protocol message, or a plain message without any."""
    if text.startswith("{"):
        try:
            found = as_object(json.loads(text)) or {}
        except (ValueError, RecursionError):
            return MESSAGE, {}
        kind = found.pop("type", None)
        if kind in TYPES and kind != MESSAGE:
            return str(kind), found
    return MESSAGE, {}


def _epoch_ms(timestamp: str) -> int:
    """Return an ISO timestamp as epoch ms; now, if it is invalid."""
    from datetime import datetime

    try:
        return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return now_ms()


if TYPE_CHECKING:
    Signature = tuple[int, int, int]

#: Timeout in seconds: Claude Code locks an inbox for milliseconds; a lock left by a crash is free after ten
#: seconds.
FETCH_TIMEOUT = 2.0

#: Maximum bytes of an inbox: one that is never drained grows.
LARGEST_INBOX = 64 * 1024 * 1024

_BAD_ENTRY = "entry {} is not a valid message"


class ClaudeMail:
    """The mail of one team on Claude Code's side; empty if it has no such team."""

    def __init__(self, claude: str, team: str) -> None:
        self.claude = claude
        self.team = team
        self.folder = teams.team_folder(claude, team)
        self.config_file = teams.config_file(claude, team)
        self._config: tuple[Signature | None, ClaudeTeam | None] = (None, None)
        self._seen: dict[str, Signature | None] = {}

    def config(self) -> ClaudeTeam | None:
        """Return the team as Claude Code has it now, read again only when its file changed.

        Raises:
            Damaged: its file cannot be read.
        """
        signature = _signature(self.config_file)
        if signature is None:
            return None
        if signature != self._config[0]:
            self._config = (signature, teams.read_claude_team(self.claude, self.team))
        return self._config[1]

    def config_or(self, damaged: list[Damaged]) -> ClaudeTeam | None:
        """Return the same, or None if it cannot be read; the reason is added to `damaged`, once."""
        try:
            return self.config()
        except Damaged as error:
            if error.file not in [known.file for known in damaged]:
                damaged.append(error)
            return None

    def delivers_to(self, name: str) -> bool:
        """Return whether mail to `name` goes to an inbox: it is a member that does not read through us."""
        team = self.config()
        member = team.member(name) if team else None
        return member is not None and not member.is_ours

    def inbox(self, name: str) -> str:
        """Return the inbox file of `name`."""
        return f"{self.folder}/inboxes/{folder_name('an agent', name)}.json"

    def send(self, message: Message) -> None:
        """Add `message` to its recipient's inbox.

        Raises:
            Damaged: the inbox cannot be read; it is left as it is, and nothing was sent.
        """
        path = self.inbox(message.recipient)
        files.make_folder(os.path.dirname(path), mode=0o700)
        try:
            files.create(path, b"[]")  # the lock requires an existing file
        except FileExistsError:
            pass
        with TeamLock(self.folder, path) as lock:
            entries = _read_entries(path)
            entries.append(to_entry(message))
            lock.write(path, as_json(entries))

    def holds(self, name: str, message_id: str) -> bool:
        """Return whether a message we sent still waits in an inbox."""
        entries = _read_entries(self.inbox(name))
        return any((as_object(entry) or {}).get("msg_id") == message_id for entry in entries)

    def fetch(self, name: str, box: Maildir, new_id: Callable[[str], str]) -> list[Damaged]:
        """Move what waits in the inbox of `name` into its mailbox; return what could not be read.

        A member that Claude Code itself runs keeps its inbox.
        """
        path = self.inbox(name)
        signature = _signature(path)
        if name in self._seen and self._seen[name] == signature:
            return []
        try:
            damaged, self._seen[name] = self._fetch(name, path, box, new_id)
        except Damaged as error:
            self._seen[name] = signature
            return [error]
        except Busy:
            return []  # other mail must not wait for this inbox; the next call retries
        return damaged

    def _fetch(
        self, name: str, path: str, box: Maildir, new_id: Callable[[str], str]
    ) -> tuple[list[Damaged], Signature | None]:
        """Return what could not be read, and the inbox's signature after the import."""
        signature = _signature(path)
        team = self.config()
        member = team.member(name) if team else None
        if member is not None and not member.is_external:
            return [], signature
        if not os.path.lexists(path):
            _deliver(box, _list_staged(box))  # staged before a crash, and then the inbox was removed
            return [], None
        with TeamLock(self.folder, path, timeout=FETCH_TIMEOUT) as lock:
            damaged = _import(path, lock, name, self.team, box, new_id)
            return damaged, _signature(path)  # under the lock: later writes are detected


def check_inbox(path: str, *, entries: bool) -> list[Damaged]:
    """Return why an inbox cannot be read; with `entries`, also invalid entries. Nothing is moved."""
    try:
        found = _read_entries(path)
    except Damaged as error:
        return [error]
    return [
        Damaged(path, _BAD_ENTRY.format(at))
        for at, (key, entry) in enumerate(zip(_entry_keys(found), found))
        if entries and not key and not _is_read(entry)
    ]


def _import(
    path: str, lock: TeamLock, name: str, team: str, box: Maildir, new_id: Callable[[str], str]
) -> list[Damaged]:
    """Do the five steps, under the inbox's lock."""
    entries = _read_entries(path)
    box.open()
    files.make_private_folder(_stage(box))
    memory = f"{box.path}/imported.json"
    remembered, staged, keys = _read_imported(memory), _list_staged(box), _entry_keys(entries)
    damaged: list[Damaged] = []
    for at, (key, entry) in enumerate(zip(keys, entries)):
        if key in remembered or key in staged or _is_read(entry):
            continue
        message = from_entry(entry, message_id=new_id(entry["from"]), recipient=name, team=team) if key else None
        if message is None or not _stage_message(f"{_stage(box)}/{message.id}.{key}", message):
            damaged.append(Damaged(path, _BAD_ENTRY.format(at)))
        else:
            staged[key] = f"{message.id}.{key}"
    remembered |= staged.keys()
    if staged:
        files.replace(memory, json.dumps(sorted(remembered)).encode())
    _deliver(box, staged)
    if remembered:
        left = [entry for key, entry in zip(keys, entries) if key not in remembered]
        if len(left) < len(entries):
            lock.write(path, as_json(left))
        os.unlink(memory)
    return damaged


def _stage(box: Maildir) -> str:
    return f"{box.path}/stage"


def _list_staged(box: Maildir) -> dict[str, str]:
    """Return the staged files by key; each is `<id>.<key>`, and none was delivered yet."""
    try:
        names = os.listdir(_stage(box))
    except FileNotFoundError:
        return {}
    return {
        name.partition(".")[2]: name for name in names if message_ids.is_message_id(name[:36]) and name.count(".") == 1
    }


def _deliver(box: Maildir, staged: dict[str, str]) -> None:
    for file in sorted(staged.values()):
        try:
            os.rename(f"{_stage(box)}/{file}", f"{box.path}/new/{file[:36]}")
        except FileNotFoundError:
            pass  # another process delivered it


def _stage_message(path: str, message: Message) -> bool:
    """Write one staged message atomically; False if it can never be stored."""
    try:
        files.replace(path, encode_message(message))
    except (BadText, BadValue):
        return False
    return True


def _read_entries(path: str) -> list[Any]:
    """Return the entries of an inbox.

    Raises:
        Damaged: it is not a JSON array.
    """
    try:
        data = files.read(path, most=LARGEST_INBOX)
    except StorageError as error:
        raise Damaged(path, error.why) from error
    if data is None:
        return []
    try:
        entries = as_list(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"it is not JSON ({error})") from error
    if entries is None:
        raise Damaged(path, "it is not a list of messages")
    return entries


def _entry_keys(entries: Sequence[object]) -> list[str]:
    """Return a key per entry that is stable while it is in the inbox; "" for entries not to import."""
    import hashlib

    keys: list[str] = []
    repeats: dict[str, int] = {}
    for value in entries:
        entry = as_object(value) or {}
        if not as_name(entry.get("from")) or not isinstance(entry.get("text"), str) or _is_read(value):
            keys.append("")
            continue
        said = json.dumps([entry.get("msg_id"), entry.get("from"), entry.get("text"), entry.get("timestamp")])
        key = hashlib.sha256(said.encode()).hexdigest()[:32]
        if not entry.get("msg_id"):  # the same text twice in a millisecond is two messages
            repeats[key] = repeats.get(key, 0) + 1
            key += f"-{repeats[key]}"
        keys.append(key)
    return keys


def _is_read(value: object) -> bool:
    return (as_object(value) or {}).get("read") is True


def _read_imported(memory: str) -> set[str]:
    data = files.read(memory)
    return set() if data is None else {str(key) for key in as_list(json.loads(data)) or ()}


def _signature(path: str) -> Signature | None:
    """Return a value that changes with every write to a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


#: Timeout in seconds to move a message into the database; after that another process redoes it.
_TRANSFER_TIMEOUT = 60.0


class ClaudeMailBridge(ClaudeMail):
    """The bridge of one team; costs one stat if Claude Code has no such team here."""

    def __init__(self, home: str, claude: str, team: str) -> None:
        super().__init__(claude, team)
        self._home = home

    @property
    def is_here(self) -> bool:
        """Whether a Claude Code on this machine has a team of this name."""
        return teams.team_exists(self.claude, self.team)

    @property
    def inboxes(self) -> str:
        """The folder of its inboxes."""
        return f"{self.folder}/inboxes"

    def brought(self, agent: str, damaged: list[Damaged]) -> Iterator[tuple[str, str]]:
        """Yield id and body of each message in the inbox of `agent`.

        Each is removed there when the next is requested. What cannot be read is added to `damaged`.
        """
        if not self.is_here:
            return
        box = Maildir(self._home, f"{mail_folder(self._home, self.team)}/{folder_name('an agent', agent)}")
        box.check()
        damaged += self.fetch(agent, box, self._new_id)
        box.requeue_abandoned()
        names = box.waiting()
        holder = maildir.timed_holder(_TRANSFER_TIMEOUT) if names else ""
        for name in names:
            if box.take(name, holder) and (body := box.read(name, holder)) is not None:
                yield maildir.message_id_of(name), body.decode("utf-8", "replace")
                box.acknowledge(maildir.message_id_of(name), holder)

    def _new_id(self, sender: str) -> str:
        folder = mail_folder(self._home, self.team)
        for path in (self._home, f"{self._home}/mail", folder, f"{folder}/.sent"):
            files.make_private_folder(path)
        return message_ids.next_id(f"{folder}/.sent", sender)
