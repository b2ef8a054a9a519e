"""
What a job's own process says of it: `<job>/facts.json`, written by that process alone.

The record belongs to the keeper, which runs nobody's code. Progress, the final answer and what else a kind adds stand
beside it, and readers put both together.
"""

from __future__ import annotations

import json

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.runtime.ending import read
from taskyard.runtime.rate_limit import FACT, WAITED
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.kind import Outcome
    from taskyard.runtime.model import End

#: Set with the last word of a handler: without it, the work ended before it was done.
_DONE = "isDone"

#: Of work that goes on elsewhere: its process has seen that it ended there, or why that cannot be said.
CONFIRMED, UNCONFIRMED = "stopConfirmed", "stopError"


class Facts:
    """The facts of one job, in the hands of the process that does its work."""

    def __init__(self, folder: JobFolder) -> None:
        self._path = folder.facts
        self.known: dict[str, object] = dict(read(folder.facts) or {})
        self.known.pop(_DONE, None)  # of an attempt before this one

    def change(self, changes: Mapping[str, object]) -> bool:
        """Put changed facts in place; False, and nothing is written, if nothing is new."""
        if all(name in self.known and self.known[name] == value for name, value in changes.items()):
            return False
        self.known.update(changes)
        files.replace(self._path, json.dumps(self.known).encode("utf-8", "surrogatepass"))
        return True

    def close(self, outcome: Outcome) -> None:
        """Write down how the work ended."""
        self.change({**outcome.facts, "result": outcome.result, "error": outcome.error, _DONE: True})


def shown(folder: JobFolder) -> dict[str, object]:
    """What is known of a job beyond its record."""
    known = read(folder.facts) or {}
    return {name: value for name, value in known.items() if name != _DONE and value not in ("", None)}


def rate_limited_seconds(folder: JobFolder) -> tuple[float, bool]:
    """How long a job has waited for rate limits, and whether it does so now."""
    known = read(folder.facts) or {}
    waited, flag = known.get(WAITED), as_object(known.get(FACT))
    total = waited if type(waited) is int and waited > 0 else 0
    since = (flag or {}).get("waitsSinceMs")
    if type(since) is int:
        total += max(now_ms() - since, 0)
    return total / 1000, flag is not None


def is_done(folder: JobFolder) -> bool:
    """Whether a handler said its last word."""
    return (read(folder.facts) or {}).get(_DONE) is True


def judged(folder: JobFolder, end: End) -> End:
    """How a job ended whose process has the last word: only what it said is done counts as done."""
    if end.cause != "exited":
        return end
    known = read(folder.facts) or {}
    error = known.get("error")
    if isinstance(error, str) and error:
        return end._replace(cause="error", error=error)
    if end.exit_code == 0 and known.get(_DONE) is not True:
        return end._replace(cause="error", error="it ended without saying how its work went")
    return end
