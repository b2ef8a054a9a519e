"""The one job that runs in the foreground of this view, and the key that moves it to the background."""

from __future__ import annotations

from taskyard.clock import elapsed
from taskyard.runtime.background import is_background_disabled
from taskyard.view.background_key import Key, background_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.view.snapshot import Snapshot

#: How bindings call what Ctrl is held with, where that is no letter.
_NAMES = {"]": "right_square_bracket", "^": "circumflex_accent", "_": "underscore"}


class Foreground:
    """At most one job."""

    HINT_AFTER = 2.0  #: seconds until the key is told

    def __init__(self, setting: str = "") -> None:
        """`setting` is `background_key`."""
        self.key: Key | None = background_key(setting) if not is_background_disabled() else None
        self.job: str | None = None
        self._since = 0.0

    @property
    def binding(self) -> str:
        """The key as bindings call it."""
        letter = self.key.name[-1].lower() if self.key is not None else "b"
        return f"ctrl+{_NAMES.get(letter, letter)}"

    def begin(self, job_id: str) -> None:
        """A job is in the foreground from now on."""
        self.job, self._since = job_id, elapsed()

    def end(self) -> None:
        """None any more."""
        self.job = None

    def look(self, snapshot: Snapshot) -> None:
        """It may be over, or was moved by somebody else."""
        found = next((job for job in snapshot.jobs if job.id == self.job), None)
        if found is not None and not found.is_foreground:
            self.end()

    @property
    def hint(self) -> str:
        """Which key moves it to the background, once it has run for a while."""
        if self.job is None or self.key is None or elapsed() - self._since < self.HINT_AFTER:
            return ""
        return f"{self.key.name} moves it to the background"
