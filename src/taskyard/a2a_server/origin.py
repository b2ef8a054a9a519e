"""
Where a job is from, in its own record: who asked, with which message, for which skill.

Written with the job's birth, in one step with it: a task needs no second file to be found again.
"""

from __future__ import annotations

from taskyard.kinds.agent import Agent
from taskyard.runtime.kind import Wanted
from taskyard.shapes import as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Its key among the facts of a job.
KEY = "a2a"


class Origin(NamedTuple):
    """Who asked for a job."""

    caller: str
    message: str  #: the id of the message it began with; the same again begins nothing
    context: str
    skill: str
    transcript: bool = False  #: whether the caller sees what tools were given


def origin_in(facts: Mapping[str, object]) -> Origin | None:
    """Who asked, by the facts of a job; None if it was nobody from outside."""
    found = as_object(facts.get(KEY))
    if found is None:
        return None
    caller, message, context, skill = (as_text(found.get(name)) for name in Origin._fields[:4])
    if not (caller and message and context and skill):
        return None
    return Origin(caller, message, context, skill, found.get("transcript") is True)


class Offered(NamedTuple):
    """An agent that somebody else asked for; see `taskyard.runtime.kind.Spec`."""

    agent: Agent
    origin: Origin

    @property
    def type(self) -> str:
        """The kind: an agent like any other."""
        return self.agent.type

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return self.agent.letter

    def wanted(self) -> Wanted:
        """As for any agent; its end is news for whoever asked, and for no model here."""
        wanted = self.agent.wanted()
        return wanted._replace(is_silent=True, asks_elsewhere=True, facts={**wanted.facts, KEY: self.origin._asdict()})
