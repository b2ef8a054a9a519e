"""What an agent says as it comes, piece by piece, in lines of its transcript that can be read."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Watcher

#: Characters of one line of the transcript: what follows is the next line.
_LONGEST = 8_000

#: Seconds after which the end of a line is a good moment to write down what was said: whoever follows waits no longer.
_SOON = 1.0

#: Characters of an answer that are kept: more than any reader is given.
LONGEST_ANSWER = 200_000


class Speech:
    """Everything one agent says in one turn."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._kind = ""
        self._held = ""
        self._since = 0.0
        self._answer = ""
        self._before = ""

    def says(self, text: str, *, kind: str = "assistant") -> None:
        """Take in a piece of what it says; `kind` is the type of the line in the transcript."""
        if not text:
            return
        if kind != self._kind:
            self.pause()
            self._kind, self._since = kind, time.monotonic()
        self._held += text
        if kind == "assistant":
            self._answer = (self._answer + text)[-LONGEST_ANSWER:]
        if len(self._held) >= _LONGEST or ("\n" in text and time.monotonic() - self._since > _SOON):
            self.pause()

    def pause(self) -> None:
        """Write down what it said so far: something else comes."""
        held, kind = self._held, self._kind
        self._held = self._kind = ""
        for at in range(0, len(held), _LONGEST):
            self._watcher.record({"type": kind, "text": held[at : at + _LONGEST]})

    def acts(self) -> None:
        """It does something: what it said before was no answer yet."""
        self.pause()
        if self._answer.strip():
            self._before = self._answer
        self._answer = ""

    @property
    def answer(self) -> str:
        """What it said since it last did something; if that is nothing, what it said before."""
        return (self._answer.strip() or self._before.strip())[-LONGEST_ANSWER:]
