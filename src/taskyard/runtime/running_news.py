"""
News of a job that goes on: an event its receiver is told while it runs, signed as all news are, and without a status.

A notice is made whole or not at all, under an id of its own, by the one process that does the job's work: never
twice, and what a kill keeps from being told is in the output all the same. A receiver that reads nothing is not
buried: beyond so many unread ones, the teller hears no, and holds back.
"""

from __future__ import annotations

import json

from taskyard.clock import now_ms
from taskyard.maildir import Box
from taskyard.runtime import news
from taskyard.runtime.ending import read
from taskyard.runtime.folder import outbox
from taskyard.runtime.recipients import PEOPLE
from taskyard.runtime.seal import signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.folder import JobFolder

#: Notices of one job that may wait unread; with 4 kB each, a model's turn is not full of them.
MOST_UNREAD = 20

#: As long as a text in a notice can be; of more, the beginning is told.
_LONGEST = 16_000

#: Characters of a question, of which the end counts.
_LONGEST_QUESTION = 2_000


class RunningNews:
    """What one job tells while it runs."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._told: list[tuple[Box, str]] = []  # the last ones, with the box each went to

    def tell(self, what: str, event: str) -> bool:
        """Tell an event; False if its receiver has so many unread that this one was not made."""
        record = read(self._folder.record) or {}  # as it is by now: it may have gone to the background meanwhile
        if news.is_nobodys(record):
            return True
        if len(self._told) == MOST_UNREAD and self._is_unread(*self._told[0]):
            return False
        stored = self._store(record, summary=f'{what}: "{record.get("description")}"', event=event[:_LONGEST])
        self._told = [*self._told, stored][-MOST_UNREAD:]
        return True

    def ask(self, question: str) -> None:
        """Tell that the job waits for an answer, without a status: nothing ended.

        It goes to whoever started the job; of a job whose end is told to no model, to people alone.
        """
        record = read(self._folder.record) or {}
        is_silent = bool(record.get("silent"))
        if record.get("asksElsewhere") or (not is_silent and news.is_nobodys(record)):
            return  # its caller is asked over the protocol, or a person watches it in the foreground
        self._store(
            record,
            **({"recipient": PEOPLE} if is_silent else {}),
            summary=f'{news.noun(record)} "{record.get("description")}" waits for an answer',
            tail=question[-_LONGEST_QUESTION:],
            hint=f"Answer with: taskyard send {self._folder.id} TEXT",
        )

    def _store(self, record: Mapping[str, object], **fields: str) -> tuple[Box, str]:
        """Put a signed notice about the job into its recipient's outbox; the box, and the notice's id."""
        about = {**news.about(self._folder, record), "priority": str(record.get("priority") or "later")}
        notice = signed(self._folder.home, {**about, **fields, "at": now_ms()})
        box = Box(self._folder.home, outbox(self._folder.home, str(notice["recipient"])))
        box.open()
        box.put(str(notice["id"]), json.dumps({"news": notice}).encode())
        return box, str(notice["id"])

    @staticmethod
    def _is_unread(box: Box, notice_id: str) -> bool:
        return box.state(notice_id) == "stored"
