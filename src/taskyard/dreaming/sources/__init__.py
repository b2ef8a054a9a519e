"""
Where transcripts of past sessions come from, by name.

A package of somebody else's adds a source by an entry point of the group `taskyard.transcripts`, whose value is a class
as in `source.TranscriptSource`; the setting `dream_sources` names those that are read.
"""

from __future__ import annotations

from taskyard.errors import BadValue
from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.dreaming.sources.source import TranscriptSource

#: Ours, and where each lives.
BUILTIN: Mapping[str, str] = {
    "claude": "taskyard.dreaming.sources.claude:ClaudeSessions",
    "taskyard": "taskyard.dreaming.sources.ours:AgentJobs",
}

_GROUP = "taskyard.transcripts"


def find(name: str) -> TranscriptSource:
    """The source of a name.

    Raises:
        BadValue: there is none here.
    """
    places = known()
    if name not in places:
        raise BadValue("The source of transcripts", name, f"one of {', '.join(sorted(places))}")
    from importlib import import_module

    module, _, attribute = places[name].partition(":")
    return cast("TranscriptSource", getattr(import_module(module), attribute)())


def known() -> dict[str, str]:
    """Every source there is here, with the place of its class; nobody can take the place of one of ours."""
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=_GROUP)} | dict(BUILTIN)
