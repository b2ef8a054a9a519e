"""
What was sent to a task after its beginning: `<job>/a2a.jsonl`, a line for each step of each message.

    {"id": …, "text": …, "at": …, "asked": …, "question": …}      it is about to be handed over
    {"id": …, "done": true}                                       it was; or "refused": it could not be

So the same message again is handed over again only if we died over it, and not if the question it answered is gone.
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.errors import UsageError
from taskyard.plain_file import open_plain
from taskyard.runtime.folder import JobFolder
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

#: Messages to one task, and characters of each that are kept for its history.
MOST, KEPT = 500, 10_000

_LARGEST = MOST * KEPT * 8


class Letter(NamedTuple):
    """One message to a task."""

    id: str
    text: str
    at: int  #: epoch ms
    asked: int = 0  #: when the question was asked that it answers; 0: it answers none
    question: str = ""
    is_done: bool = False  #: it was handed over


class Letters:
    """The messages to one task."""

    def __init__(self, folder: JobFolder) -> None:
        self._path = f"{folder.path}/a2a.jsonl"

    def read(self) -> dict[str, Letter]:
        """Each by its id, oldest first; those that were refused are not among them."""
        found: dict[str, Letter] = {}
        for line in (files.read(self._path, most=_LARGEST) or b"").splitlines():
            _take_in(found, line)
        return found

    def begin(self, letter: Letter) -> None:
        """Write down that a message is about to be handed over.

        Raises:
            UsageError: there were too many.
        """
        if len(self.read()) >= MOST:
            raise UsageError(f"A task takes {MOST} messages, and this one has had them.")
        self._append({**letter._asdict(), "text": letter.text[:KEPT], "question": letter.question[:KEPT]})

    def done(self, letter_id: str) -> None:
        """It was handed over."""
        self._append({"id": letter_id, "done": True})

    def refused(self, letter_id: str) -> None:
        """It could not be: it counts as never sent."""
        self._append({"id": letter_id, "refused": True})

    def _append(self, entry: dict[str, object]) -> None:
        try:
            fd = open_plain(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise files.storage_error(self._path, error) from error
        try:
            files.write_all(fd, f"\n{json.dumps(entry)}\n".encode())  # what a dying writer left half ends here
        finally:
            os.close(fd)


def new(letter_id: str, text: str, *, asked: int, question: str) -> Letter:
    """A message that came now."""
    return Letter(letter_id, text, now_ms(), asked, question)


def _take_in(found: dict[str, Letter], line: bytes) -> None:
    try:
        entry = as_object(json.loads(line)) if line.strip() else None
    except ValueError:
        return  # half a line of one who died over it
    match entry or {}:
        case {"id": str(letter_id), "refused": True}:
            found.pop(letter_id, None)
        case {"id": str(letter_id), "done": True} if letter_id in found:
            found[letter_id] = found[letter_id]._replace(is_done=True)
        case {"id": str(letter_id), "text": str(text), "at": int(at), "asked": int(asked), "question": str(question)}:
            found[letter_id] = Letter(letter_id, text, at, asked, question)
        case _:
            pass
