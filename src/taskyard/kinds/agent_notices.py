"""
Notices of an agent's own background jobs, handed over with the messages that were queued while it worked.

    next      before the messages
    messages  in the order they were sent
    later     after them

A notice counts as read once the turn that has it is completed; else it goes back, and to whoever is next in line.
"""

from __future__ import annotations

from taskyard import config
from taskyard.errors import TaskyardError
from taskyard.relay import door
from taskyard.runtime.notice_text import for_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskyard.runtime.notices import Outbox

#: As much of a prompt as notices may take, in characters.
_CHARACTERS = 8_000


class AgentNotices:
    """What waits for one agent between its turns. Its methods block: call them in a thread."""

    def __init__(self, home: str, agent: str) -> None:
        self._home, self._agent = home, agent
        self._outbox: Outbox | None = None
        self._given: tuple[str, ...] = ()

    def around(self, messages: Sequence[str]) -> str:
        """The next prompt: queued messages between the notices that wait. Where those cannot be read, they wait on."""
        try:
            if self._outbox is None:
                self._outbox = door.outbox(self._home, config.load(), self._agent)
            batch = self._outbox.batch(characters=_CHARACTERS)
        except TaskyardError:
            return "\n\n".join(messages)
        self._given = tuple(notice.id for notice in batch.notices)
        first, later = batch.first, batch.later
        before = [for_model(first, rest=0 if later else batch.rest)] if first else []
        after = [for_model(later, rest=batch.rest)] if later else []
        return "\n\n".join([*before, *messages, *after])

    def end_turn(self, *, is_complete: bool) -> None:
        """The turn that was given notices is over."""
        given, self._given = self._given, ()
        if given and is_complete and self._outbox is not None:
            try:
                self._outbox.ack(given)
            except TaskyardError:
                return  # they are in our hands, and come again when this process ends

    def close(self) -> None:
        """Give back what was not read."""
        if self._outbox is not None:
            self._outbox.close()
