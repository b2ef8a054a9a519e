"""The final answer of an agent elsewhere: as its place tells, else found in what it said."""

from __future__ import annotations

from taskyard.remote.messages import answer_in
from taskyard.remote.review import review_in
from taskyard.remote.ultraplan import plan_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.runtime.context import JobContext

#: Bytes of the output's end that an answer is looked for in, and characters of it that are kept.
_LOOKED_AT, _LONGEST = 8 * 1024 * 1024, 200_000


def result_of(remote_task_type: str, told: str, context: JobContext) -> str:
    """The answer of work that is complete; `told` is what the place says it is."""
    lines = context.written(max(context.size - _LOOKED_AT, 0)).decode("utf-8", "replace").splitlines()
    found = ""
    if remote_task_type == "ultrareview":
        found = review_in(lines)
    elif remote_task_type == "ultraplan":
        found = plan_in(lines)
    return (found or told or answer_in(lines))[-_LONGEST:]
