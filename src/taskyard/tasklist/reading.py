"""Reading mail one message at a time: what was given out last counts as read when the next is asked for."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskyard.tasklist.mail import Mail
    from taskyard.tasklist.message import Message

#: One bite for a reader that does not say how much it wants.
MANY = 100


class Reading:
    """One office's, for every box in it."""

    def __init__(self, mail: Mail) -> None:
        self._mail = mail
        self._asked: dict[str, str] = {}

    def of(self, agent: str) -> Iterator[Message]:
        """Each waiting message of `agent`."""
        while True:
            if before := self._asked.pop(agent, None):
                self._mail.ack(agent, [before])
            found = self._mail.take(agent, limit=1)
            if not found:
                return
            self._asked[agent] = found[0].id
            yield found[0]
