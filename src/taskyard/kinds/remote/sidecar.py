"""
`<job>/remote.json`: where an agent elsewhere is found again, and how far it was heard.

It is written before anything is asked of the place, replaced whole after each poll that brought something, and
removed by the runtime with the job's end.
"""

from __future__ import annotations

import json

from taskyard.disk import files
from taskyard.errors import Damaged
from taskyard.runtime.ending import read
from taskyard.runtime.folder import JobFolder
from taskyard.shapes import as_list, as_number, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.kinds.remote_agent import RemoteAgent
    from taskyard.runtime.context import JobContext


class Place(NamedTuple):
    """How far a session was heard."""

    session: str = ""  #: its id there; "": it may have begun or not
    cursor: str = ""
    size: int = 0  #: bytes of the job's output that hold everything up to the cursor
    unsent: tuple[str, ...] = ()  #: what it is still to be told


class Sidecar:
    """The file, in the hands of the one process that follows the session."""

    def __init__(self, spec: RemoteAgent, context: JobContext) -> None:
        """Read it, if it is there.

        Raises:
            Damaged: it cannot be understood; nothing is guessed.
        """
        self._path = JobFolder(context.home, context.id).elsewhere
        self._constant: Mapping[str, object] = {
            "taskId": context.id,
            "remote": spec.remote,
            "remoteTaskType": spec.remote_task_type,
            "remoteTaskMetadata": dict(spec.metadata),
        }
        found = read(self._path)
        if found is None and files.read(self._path) is not None:
            raise Damaged(self._path, "it does not say where the session is")
        self.may_have_begun = found is not None  #: a session, at the place
        self.place = _place(found or {}) if found is not None else Place(spec.session or "")

    def save(self, **changes: object) -> None:
        """Put a changed place in the file, whole."""
        self.place = self.place._replace(**changes)  # type: ignore[arg-type]  # fields of it
        place = self.place
        known = {**self._constant, "sessionId": place.session, "cursor": place.cursor, "outputSize": place.size}
        if place.unsent:
            known["unsent"] = list(place.unsent)
        files.replace(self._path, json.dumps(known).encode("utf-8", "surrogatepass"))


def _place(found: Mapping[str, object]) -> Place:
    unsent = tuple(text for text in as_list(found.get("unsent")) or [] if isinstance(text, str))
    size = as_number(found.get("outputSize"))
    known = as_object(found) or {}
    return Place(as_text(known.get("sessionId")), as_text(known.get("cursor")), size, unsent)
