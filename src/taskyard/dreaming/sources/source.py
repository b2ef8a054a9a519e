"""The interface of every source of transcripts, on one screen: which sessions there were, and what was said in one."""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Protocol

    class TranscriptSource(Protocol):
        """Somewhere that sessions are kept."""

        def sessions(self, project: Project) -> Iterable[Session]:
            """The sessions of a project, in any order. What cannot be read is left out; it raises nothing."""
            ...

        def read(self, session: Session, most: int) -> Told:
            """What was said in one, at most `most` characters, the end rather than the beginning."""
            ...


class Project(NamedTuple):
    """Whose sessions are asked for."""

    folder: str  #: where it is worked in, a real path
    root: str  #: the whole of it; the same from all its worktrees
    home: str  #: `$TASKYARD_HOME`
    env: Mapping[str, str]


class Session(NamedTuple):
    """One conversation of the past."""

    id: str
    path: str
    changed: float  #: epoch seconds of its last word
    size: int = 0


class Told(NamedTuple):
    """What was said, as text."""

    text: str
    skipped: int = 0  #: lines that could not be read
    is_cut: bool = False  #: there is more
