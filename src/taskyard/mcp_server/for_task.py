"""What an agent starts while it works on a task is counted to that task."""

from __future__ import annotations

from typing import NamedTuple

from taskyard.mcp_server.calls import Call
from taskyard.runtime.kind import letter_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.kind import Spec, Wanted


class ForTask(NamedTuple):
    """A job, with the task it is for."""

    inner: Spec
    task: str

    @property
    def type(self) -> str:
        """The kind, as records name it."""
        return self.inner.type

    @property
    def letter(self) -> str:
        """What its ids begin with."""
        return letter_of(self.inner)

    def wanted(self) -> Wanted:
        """What its keeper is asked for."""
        return self.inner.wanted()._replace(task=self.task)


def for_task(call: Call, spec: Spec) -> Spec:
    """`spec`, for the task that its caller works on, if that is known."""
    at_work = call.caller.at_work
    return spec if at_work is None else ForTask(spec, f"{call.caller.tasks_yard.tasks.name}/{at_work}")
