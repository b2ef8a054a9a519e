"""What the state of a job, or of whoever runs jobs, forbids."""

from __future__ import annotations

from taskyard.errors.conflicts import Conflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class NoInput(Conflict):
    """A job that reads from nobody, or does not read, cannot be typed into."""

    code = "no_input"

    def __init__(self, job_id: str, why: str, advice: str) -> None:
        super().__init__(f"Job {job_id} {why}.", advice)
        self.job_id = job_id
        self.why = why


class BackgroundDisabled(Conflict):
    """Background jobs are switched off here."""

    code = "background_disabled"

    def __init__(self, setting: str) -> None:
        super().__init__(
            f"Background jobs are switched off here ({setting}).", "Run it in the foreground, or unset that."
        )
        self.setting = setting


class TooDeep(Conflict):
    """Jobs inside jobs inside jobs: somebody has lost control."""

    code = "too_deep"

    def __init__(self, parent: str, limit: int) -> None:
        super().__init__(
            f"Job {parent} may start no other: jobs may be {limit} deep (setting job_depth). "
            "Do it within this job, or ask whoever started it."
        )
        self.parent = parent
        self.limit = limit


class TooManyCallers(Conflict):
    """A server has as many clients as it may."""

    code = "too_many_callers"

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} agents are here, and all hold something (setting mcp_callers). Try again later.")
        self.limit = limit
        self.retryable = True


class DreamHeld(Conflict):
    """It is not the time to dream."""

    code = "dream_held"

    def __init__(
        self, held_by: Sequence[str], why: str, *, opens_at: int | None = None, forcible: bool = False
    ) -> None:
        """`opens_at`: epoch ms, if time alone opens the gate."""
        super().__init__(f"No dream now: {why}.", "--force dreams all the same." if forcible else "")
        self.held_by = tuple(held_by)
        self.opens_at = opens_at
