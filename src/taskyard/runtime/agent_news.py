"""What is told of an agent's end: its answer, what it took, where it worked and where all of it can be read. Pure."""

from __future__ import annotations

import os

from taskyard.runtime.facts import shown
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.folder import JobFolder
    from taskyard.runtime.model import End

#: Characters of an answer that a notice carries; all of it is in the transcript.
_LONGEST = 16_000


def added(folder: JobFolder) -> dict[str, object]:
    """What an agent's notice has beyond others."""
    facts = shown(folder)
    found: dict[str, object] = {"transcript": folder.transcript} if os.path.lexists(folder.transcript) else {}
    if isinstance(result := facts.get("result"), str):
        found["result"] = result[-_LONGEST:]
    for name in ("usage", "worktree"):
        if (value := as_object(facts.get(name))) is not None:
            found[name] = value
    return found


def summary(record: Mapping[str, object], end: End) -> str:
    """How an agent ended, in a sentence."""
    what = f'Agent "{record.get("description")}"'
    if end.status == "completed":
        return f"{what} finished"
    if end.cause in ("stopped", "timeout", "output_cap"):
        return f"{what} was stopped"
    return f"{what} failed: {_why(end)}"


def _why(end: End) -> str:
    if end.error:
        return end.error
    if end.cause == "signal":
        return f"killed by signal {end.signal}"
    return {"oom": "out of memory", "exited": f"exit code {end.exit_code}"}.get(end.cause, "Unknown error")
