"""
The bridge to Claude Code's inboxes: `<claude>/teams/<team>/inboxes/<name>.json`.

An inbox is one JSON array that all its writers rewrite under a lock; what was delivered is taken
out of it. Mail to a member that Claude Code runs is added to its inbox. Mail that Claude Code
wrote to a member of ours is moved into that member's box, exactly once:

    1. stage      every new message becomes a file in `<box>/stage/`
    2. remember   `<box>/imported.json` gets the keys of all that is staged
    3. deliver    each staged file is renamed into `new`: it exists once, so it arrives once
    4. remove     the inbox is rewritten without them
    5. forget     keys that are gone from the inbox

Whoever is killed in between is finished by the next: a staged file was never delivered, and a
remembered message is never staged again. An inbox, or an entry of one, that cannot be read is
reported and left exactly as it is.
"""

from __future__ import annotations

import json
import os

from taskyard import message_ids
from taskyard.disk import files
from taskyard.errors import BadText, BadValue, Busy, Damaged, StorageError
from taskyard.names import folder_name
from taskyard.shapes import as_list, as_name, as_object
from taskyard.tasklist import claude_teams
from taskyard.tasklist.claude_entry import from_entry, to_entry
from taskyard.tasklist.claude_teams import ClaudeTeam, TeamLock, as_json
from taskyard.tasklist.message import Message, encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from taskyard.maildir import Box

    Signature = tuple[int, int, int]

#: Claude Code holds an inbox for milliseconds; one that a crash left locked is free after ten seconds.
FETCH_TIMEOUT = 2.0

#: An inbox that nobody drains grows; one beyond this is no inbox.
LARGEST_INBOX = 64 * 1024 * 1024

_NO_MESSAGE = "entry {} is no message we can keep"


class ClaudeMail:
    """One team's mail on Claude Code's side; a team that it does not have has none."""

    def __init__(self, claude: str, team: str) -> None:
        self.claude = claude
        self.team = team
        self.folder = claude_teams.team_folder(claude, team)
        self.config_file = claude_teams.config_file(claude, team)
        self._config: tuple[Signature | None, ClaudeTeam | None] = (None, None)
        self._seen: dict[str, Signature | None] = {}

    def config(self) -> ClaudeTeam | None:
        """The team as Claude Code has it now, read again only when its file changed.

        Raises:
            Damaged: its file cannot be read.
        """
        signature = _signature(self.config_file)
        if signature is None:
            return None
        if signature != self._config[0]:
            self._config = (signature, claude_teams.read(self.claude, self.team))
        return self._config[1]

    def config_or(self, damaged: list[Damaged]) -> ClaudeTeam | None:
        """The same, or None where it cannot be read; why not is noted in `damaged`, once."""
        try:
            return self.config()
        except Damaged as error:
            if error.file not in [known.file for known in damaged]:
                damaged.append(error)
            return None

    def carries(self, name: str) -> bool:
        """Whether mail to `name` goes to an inbox: it is a member that does not read through us."""
        team = self.config()
        member = team.member(name) if team else None
        return member is not None and not member.is_ours

    def inbox(self, name: str) -> str:
        """The inbox of `name`."""
        return f"{self.folder}/inboxes/{folder_name('an agent', name)}.json"

    def send(self, message: Message) -> None:
        """Add `message` to its recipient's inbox.

        Raises:
            Damaged: the inbox cannot be read; it is left as it is, and nothing was sent.
        """
        path = self.inbox(message.recipient)
        files.make_folder(os.path.dirname(path), mode=0o700)
        try:
            files.create(path, b"[]")  # the lock is taken on a file that exists
        except FileExistsError:
            pass
        with TeamLock(self.folder, path) as lock:
            entries = _entries(path)
            entries.append(to_entry(message))
            lock.write(path, as_json(entries))

    def holds(self, name: str, message_id: str) -> bool:
        """Whether a message we sent still waits in an inbox."""
        entries = _entries(self.inbox(name))
        return any((as_object(entry) or {}).get("msg_id") == message_id for entry in entries)

    def fetch(self, name: str, box: Box, new_id: Callable[[str], str]) -> list[Damaged]:
        """Move what waits in the inbox of `name` into its box; answers what could not be read.

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
            return []  # its other mail must not wait for this inbox; the next look tries again
        return damaged

    def _fetch(
        self, name: str, path: str, box: Box, new_id: Callable[[str], str]
    ) -> tuple[list[Damaged], Signature | None]:
        """What could not be read, and how the inbox looked when everything in it was ours."""
        signature = _signature(path)
        team = self.config()
        member = team.member(name) if team else None
        if member is not None and not member.is_outside:
            return [], signature
        if not os.path.lexists(path):
            _deliver(box, _staged(box))  # staged by one who died, and then the inbox was removed
            return [], None
        with TeamLock(self.folder, path, timeout=FETCH_TIMEOUT) as lock:
            damaged = _import(path, lock, name, self.team, box, new_id)
            return damaged, _signature(path)  # under the lock: what is written after it is news


def damage(path: str, *, entries: bool) -> list[Damaged]:
    """Why an inbox cannot be read; with `entries`, which of them are no messages. Nothing is moved."""
    try:
        found = _entries(path)
    except Damaged as error:
        return [error]
    return [
        Damaged(path, _NO_MESSAGE.format(at))
        for at, (key, entry) in enumerate(zip(_keys(found), found))
        if entries and not key and not _is_read(entry)
    ]


def _import(path: str, lock: TeamLock, name: str, team: str, box: Box, new_id: Callable[[str], str]) -> list[Damaged]:
    """The five steps, under the inbox's lock."""
    entries = _entries(path)
    box.open()
    files.make_private_folder(_stage(box))
    memory = f"{box.path}/imported.json"
    remembered, staged, keys = _remembered(memory), _staged(box), _keys(entries)
    damaged: list[Damaged] = []
    for at, (key, entry) in enumerate(zip(keys, entries)):
        if key in remembered or key in staged or _is_read(entry):
            continue
        message = from_entry(entry, message_id=new_id(entry["from"]), recipient=name, team=team) if key else None
        if message is None or not _put(f"{_stage(box)}/{message.id}.{key}", message):
            damaged.append(Damaged(path, _NO_MESSAGE.format(at)))
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


def _stage(box: Box) -> str:
    return f"{box.path}/stage"


def _staged(box: Box) -> dict[str, str]:
    """The staged files by key; each is `<id>.<key>`, and none was delivered yet."""
    try:
        names = os.listdir(_stage(box))
    except FileNotFoundError:
        return {}
    return {name.partition(".")[2]: name for name in names if message_ids.is_id(name[:36]) and name.count(".") == 1}


def _deliver(box: Box, staged: dict[str, str]) -> None:
    for file in sorted(staged.values()):
        try:
            os.rename(f"{_stage(box)}/{file}", f"{box.path}/new/{file[:36]}")
        except FileNotFoundError:
            pass  # delivered by somebody else: it existed once


def _put(path: str, message: Message) -> bool:
    """Write one staged message, whole; False if it can never be stored."""
    try:
        files.replace(path, encoded(message))
    except (BadText, BadValue):
        return False
    return True


def _entries(path: str) -> list[Any]:
    """What is in an inbox.

    Raises:
        Damaged: it is no JSON array.
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
        raise Damaged(path, f"it is no JSON ({error})") from error
    if entries is None:
        raise Damaged(path, "it is no list of messages")
    return entries


def _keys(entries: Sequence[object]) -> list[str]:
    """A name for each entry that lasts as long as it is in the inbox; "" for what is not to be imported."""
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
        if not entry.get("msg_id"):  # the same words twice in a millisecond are two messages
            repeats[key] = repeats.get(key, 0) + 1
            key += f"-{repeats[key]}"
        keys.append(key)
    return keys


def _is_read(value: object) -> bool:
    return (as_object(value) or {}).get("read") is True


def _remembered(memory: str) -> set[str]:
    data = files.read(memory)
    return set() if data is None else {str(key) for key in as_list(json.loads(data)) or ()}


def _signature(path: str) -> Signature | None:
    """What changes with every write to a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
