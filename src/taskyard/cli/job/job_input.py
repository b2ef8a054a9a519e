"""
What is typed or piped into an attached run, on its way to the job.

    keys of a screen     to the keeper, without an answer: a person sees what becomes of them
    lines of a person    to the keeper, which says whether they were taken
    what is piped in     to the command itself, as fast as that reads; through the keeper where no pipe leads to it
"""

from __future__ import annotations

import select
import time

from taskyard.errors import JobEnded
from taskyard.runtime.folder import JobFolder
from taskyard.runtime.input_pipe import InputPipe
from taskyard.runtime.keeper.others import send
from taskyard.runtime.looking import look
from taskyard.runtime.steering import PIECE, tell

#: Input that the command does not read yet is offered again this often, in seconds, where nobody tells when it does.
_OFFER_EVERY = 0.05


class JobInput:
    """Input for one job, of which no more is read than was taken."""

    def __init__(self, home: str, job_id: str) -> None:
        self._home, self._id = home, job_id
        self._folder = JobFolder(home, job_id)
        self._pipe = InputPipe(self._folder)
        self._held = b""  # typed, and not taken yet
        self._how = ""
        self._offer_at = 0.0
        self.is_closed = False  #: the job takes no more

    @property
    def is_taken(self) -> bool:
        """Whether all of it was."""
        return not self._held

    @property
    def next_offer(self) -> float:
        """When to offer again what was not taken, if nobody tells before."""
        return self._offer_at if self._held and self._pipe.fd is None else float("inf")

    def take(self, data: bytes, *, how: str) -> None:
        """Hand over `data`: `keys`, `lines` or `poured`."""
        self._held, self._how = data, how
        self._offer()

    def listen(self, poll: select.poll) -> int | None:
        """Have `poll` tell when the command reads on; the descriptor, if there is one to wait for."""
        if self._pipe.fd is not None:
            poll.register(self._pipe.fd, select.POLLOUT)
        return self._pipe.fd

    def go_on(self) -> None:
        """Offer what is left, if it is time to, or the command may have read."""
        if self._held and (self._pipe.fd is not None or time.monotonic() >= self._offer_at):
            self._offer()

    def end(self) -> None:
        """Let the command read to the end."""
        self._wish({"do": "close_input"})

    def close(self) -> None:
        """Leave: somebody else may end the input."""
        self._pipe.close()

    def _offer(self) -> None:
        if self._how == "poured" and (rest := self._pipe.offer(self._held)) is not None:
            self._held = rest
            send(self._folder, {"do": "answer", "text": ""})  # somebody cares for it, its keeper should know
            return
        piece = self._held[:PIECE]
        wish: dict[str, object] = {"do": "answer", "text": piece.decode("utf-8", "surrogateescape")}
        if send(self._folder, wish) if self._how == "keys" else self._wish(wish):
            self._held = self._held[PIECE:]
            self._offer_at = 0.0
            return
        self._offer_at = time.monotonic() + _OFFER_EVERY
        job = look(self._home, self._id)
        if not job.takes_input and job.attempt > job.retries:
            self._held, self.is_closed = b"", True

    def _wish(self, wish: dict[str, object]) -> bool:
        try:
            return tell(self._home, self._id, wish)
        except JobEnded:
            return True  # too late, and no matter any more
