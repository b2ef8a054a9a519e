"""
What every place that runs agents for us promises: four verbs, each of which may be repeated.

    submit   begin the work; the same `Work.id` again finds the session that is there
    poll     how it stands, and what it said since a cursor; asking again with a cursor gives the same again
    send     tell it something
    stop     end it; harmless if it is over

Nothing is kept in between: a backend that is made anew, in another process, goes on with a session by its id alone.
`taskyard.testing.check_remote_backend` states the whole contract as executable checks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class RemoteState(StrEnum):
    """How a session stands."""

    RUNNING = "running"  #: at work, or waiting for its turn there
    NEEDS_INPUT = "needs_input"  #: it asked something, and goes on when it is answered
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"  #: somebody ended it
    LOST = "lost"  #: the place is there and knows nothing of it, any more

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes."""
        return self not in (RemoteState.RUNNING, RemoteState.NEEDS_INPUT)


class Work(NamedTuple):
    """What a session is asked to do."""

    id: str  #: ours, the job's: a second `submit` of it begins nothing
    prompt: str
    command: str = ""  #: the program that does it, where the place runs programs; the place's own if empty
    metadata: Mapping[str, str] = {}  #: kept with the session, for people who look there
    env: Mapping[str, str] = {}  #: what the program finds in its surroundings, beside the prompt


class Seen(NamedTuple):
    """What one poll found."""

    state: RemoteState
    cursor: str  #: where the next poll goes on
    text: str = ""  #: what was said since the cursor that was asked with; whole lines, each a message in JSON or plain
    result: str = ""  #: its final answer, where the place tells
    error: str = ""  #: why it failed or was lost, in words for people
    question: str = ""  #: what it asked, while it needs input
    metadata: Mapping[str, object] = {}  #: what the place says of it beside: completion checkers are asked about this


class RemoteBackend(Protocol):
    """One place that runs agents."""

    async def submit(self, work: Work) -> str:
        """Begin the work; the id of its session there.

        Raises:
            RemoteRefused: the place is there and will not do it: bad credentials, a bad request, no such thing.
            RemoteAway: it cannot be reached now; trying again may help.
        """
        ...

    async def poll(self, session: str, cursor: str = "") -> Seen:
        """How a session stands, and what it said since `cursor`; "" is its beginning.

        Raises:
            RemoteRefused, RemoteAway
        """
        ...

    async def send(self, session: str, text: str) -> None:
        """Tell a session something, such as the answer to what it asked.

        Raises:
            RemoteRefused: it takes nothing, or not now.
            RemoteAway: it cannot be reached now.
        """
        ...

    async def stop(self, session: str) -> None:
        """End a session, with what runs for it; harmless if it is over, or unknown there.

        Raises:
            RemoteRefused, RemoteAway
        """
        ...

    async def close(self) -> None:
        """Let go of connections. Sessions go on."""
        ...


class Probing(Protocol):
    """A backend that can say whether it would work, for `taskyard remote check`; every one of ours does."""

    async def probe(self) -> str:
        """What is there, in a line for people, such as its version; nothing is begun.

        Raises:
            RemoteRefused, RemoteAway: what is wrong, with what to do about it.
        """
        ...
