"""Request for a supervisor: built by `taskyard.jobs.jobs`, sent by `taskyard.jobs.start`."""

from __future__ import annotations

import json

from taskyard.core.values import NamedTuple, cast
from taskyard.jobs.supervisor.command import CommandPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_decode = json.JSONDecoder().raw_decode


class JobRequest(NamedTuple):
    """One job to be created."""

    id: str
    home: str
    plan: CommandPlan
    record: dict[str, object]  #: initial content of `job.json`
    timeout: float | None = None  #: seconds, pauses not counted
    output_cap: int = 1_000_000_000  #: bytes on disk
    grace: float = 3.0  #: seconds between SIGTERM and SIGKILL
    stall_after: float = 45.0  #: seconds without output after which a question counts as waiting for input
    prompt_after: float = 10.0  #: seconds without output after which an unterminated line counts as a prompt
    stdin: bool = False
    pty: bool = False
    leave_children: bool = False
    on_parent_exit: str = "keep"
    starter: Sequence[int] | None = None  #: pid and start time of the process it must not outlive, or that watches it
    parent: str | None = None
    recipient: str = "me"
    slots: Mapping[str, int] = {}  #: how many may run at once, by name of the queue
    starts_per_minute: int = 0  #: how many jobs may start within any minute; 0: no limit
    after: Sequence[str] = ()  #: jobs that must have completed
    after_any: Sequence[str] = ()  #: jobs that must have ended, however they ended
    retries: int = 0
    event_segments: int | None = None  #: number of event log segments to keep; None: all
    arguments: Mapping[str, object] | None = None  #: for a handler, which then decides the result
    retry_delay: float = 1.0  #: seconds before the second attempt; doubled before each further one
    window: Sequence[int] | None = None  #: rows and columns of its terminal
    transcript: bool = False  #: its output is a link to its own transcript
    agents: Sequence[object] | None = None  #: limits of an agent's start: the fields of `queue.AgentLimits`
    resumes: bool = False  #: its work runs elsewhere, and its process only follows that (`run.run_resumable`)
    again: bool = False  #: the job exists, and its supervisor is gone (`create.RecoveredJobDir`)


_PLAN = JobRequest._fields.index("plan")


def parse_request(raw: Mapping[str, object]) -> JobRequest:
    """Return the request from a mapping of its fields."""
    values = dict(raw)
    plan = cast("dict[str, object]", values.pop("plan"))
    return JobRequest(
        plan=CommandPlan(**plan),  # type: ignore[arg-type]  # made by `jobs`, which checks every field
        **values,  # type: ignore[arg-type]  # the same
    )


def encode_request(raw: Mapping[str, object]) -> bytes:
    """Encode a request as a JSON list of its field values in order, the form cheapest to decode."""
    return json.dumps(parse_request(raw), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode_request(data: bytes) -> JobRequest:
    """Decode a request sent by a starter."""
    values = _decode(data.decode("utf-8", "surrogatepass"))[0]
    values[_PLAN] = CommandPlan(*values[_PLAN])
    return JobRequest(*values)
