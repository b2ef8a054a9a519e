"""
What a post office does, wherever the mail of a team lies: in files (`mailbox`), in a database (`postgres.post`).

    1. `send`    stored: an answer means that it is
    2. `take`    delivered: in the hands of a living reader
    3. `ack`     read: every id is acknowledged once
    A reader that is gone before 3 gives it back: same id, `redelivered`.

`taskyard.testing.check_mail` is the contract of each.
"""

from __future__ import annotations

from typing import Protocol

from taskyard.tasklist.message import MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from typing import Self

    from taskyard.errors import Damaged
    from taskyard.tasklist.message import Message, Receipt


class Mail(Protocol):
    """The mail of one team."""

    team: str
    damaged: list[Damaged]  #: what could not be read so far; it is kept, never removed

    def send(
        self,
        sender: str,
        recipient: str,
        text: str = "",
        *,
        type: str = MESSAGE,
        data: Mapping[str, object] | None = None,
        summary: str | None = None,
    ) -> Receipt:
        """Store a message for `recipient`; an answer means that it is stored.

        Raises:
            RecipientNotFound: nobody of that name is known; names the nearest.
            BadName, BadText, BadValue: it cannot be sent.
            Damaged: the recipient's Claude Code inbox cannot be read, or whether it has one; nothing was sent.
        """
        ...

    def inform(
        self, sender: str, recipient: str, text: str = "", *, type: str = MESSAGE, data: Mapping[str, object]
    ) -> Receipt:
        """Send what somebody must hear about a task of theirs, unless by their own act; a new owner gets a box."""
        ...

    def open_box(self, agent: str) -> None:
        """Make `agent` someone who gets mail here."""
        ...

    def close_box(self, agent: str) -> None:
        """Let `agent` get no more mail here; what it has stays readable."""
        ...

    def take(self, agent: str, *, limit: int = ..., hold: float | None = None) -> list[Message]:
        """The oldest waiting messages of `agent`, now in this process's hands until `ack`.

        They come back if this process dies first; with `hold`, after that many seconds instead:
        for a reader that answers through another process.
        """
        ...

    def ack(self, agent: str, ids: Iterable[str]) -> tuple[str, ...]:
        """File messages as read, whoever took them; answers those that are filed by this call."""
        ...

    def read(self, agent: str) -> Iterator[Message]:
        """Each waiting message; it counts as read when the next is asked for, here or by another `read`."""
        ...

    def peek(self, agent: str, *, limit: int = ...) -> list[Message]:
        """The oldest waiting messages, left where they are."""
        ...

    def unread_count(self, agent: str) -> int:
        """How many messages wait for `agent`."""
        ...

    def receipt(self, message_id: str) -> str:
        """What became of a message: "stored", "delivered" or "read".

        Raises:
            NotFound: no message of this id was sent here, or it was read and removed long ago.
        """
        ...

    def wait(self, agent: str, timeout: float) -> bool:
        """Whether mail waits for `agent`, now or within `timeout` seconds; new mail wakes at once."""
        ...

    def watched_folders(self, agent: str) -> tuple[str, ...]:
        """The folders in which new mail shows, of those that are on this machine."""
        ...

    def heard(self, agent: str, wake: Callable[[], object]) -> AbstractContextManager[object]:
        """Have `wake` called, from any thread, when mail may have come that no folder shows."""
        ...

    def holders(self, agent: str) -> list[str]:
        """Who has mail of `agent` in hand, taken and not acknowledged yet."""
        ...

    def known(self) -> list[str]:
        """Everyone who can get mail here."""
        ...

    def forget(self, agent: str, *, before_ms: int) -> int:
        """Remove what `agent` read before a moment, to the nearest day; answers how many messages."""
        ...

    def close(self) -> None:
        """Give back what was taken and not acknowledged, unless it is the instance's."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
