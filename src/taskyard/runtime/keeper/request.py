"""What a keeper is asked to keep: made by `taskyard.runtime.jobs`, brought to it by `starting`."""

from __future__ import annotations

import json

from taskyard.runtime.keeper.command import Plan
from taskyard.typed import NamedTuple, cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_decode = json.JSONDecoder().raw_decode


class Request(NamedTuple):
    """One job to be."""

    id: str
    home: str
    plan: Plan
    record: dict[str, object]  #: what `job.json` says from the start
    timeout: float | None = None  #: seconds, pauses not counted
    output_cap: int = 1_000_000_000  #: bytes on disk
    grace: float = 3.0  #: seconds between TERM and KILL
    stall_after: float = 45.0  #: seconds of silence after which a question counts as waiting
    prompt_after: float = 10.0  #: seconds of silence after which a line without an end counts as a prompt
    stdin: bool = False
    pty: bool = False
    leave_children: bool = False
    on_parent_exit: str = "keep"
    starter: Sequence[int] | None = None  #: process number and start of whoever must outlive it, or watches it
    parent: str | None = None
    recipient: str = "me"
    slots: Mapping[str, int] = {}  #: how many may run at once, by the name of the queue
    starts_per_minute: int = 0  #: how many jobs may begin within any minute; 0: as many as like
    after: Sequence[str] = ()  #: jobs that must have completed
    after_any: Sequence[str] = ()  #: jobs that must be over, however they ended
    retries: int = 0
    event_segments: int | None = None  #: how many segments of the stream of events are kept; None: all
    arguments: Mapping[str, object] | None = None  #: for a handler, which then has the last word on how it went
    retry_delay: float = 1.0  #: seconds before the second attempt; twice as long before each further one
    window: Sequence[int] | None = None  #: rows and columns of its terminal
    transcript: bool = False  #: its output is a link to a transcript of its own
    agents: Sequence[object] | None = None  #: what an agent's start goes by: the fields of `agents.Rules`
    resumes: bool = False  #: its work goes on elsewhere, and its process only follows that (`resuming`)
    again: bool = False  #: the job is there, and its keeper is gone (`rebirth`)


_PLAN = Request._fields.index("plan")


def request_of(raw: Mapping[str, object]) -> Request:
    """The request that a starter put together, field by field."""
    values = dict(raw)
    plan = cast("dict[str, object]", values.pop("plan"))
    return Request(
        plan=Plan(**plan),  # type: ignore[arg-type]  # made by `jobs`, which checks every field
        **values,  # type: ignore[arg-type]  # the same
    )


def encoded(raw: Mapping[str, object]) -> bytes:
    """It as it travels: a list of its fields' values, in their order, which a keeper has least to do with."""
    return json.dumps(request_of(raw), ensure_ascii=False).encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> Request:
    """The request in what a starter sent."""
    values = _decode(data.decode("utf-8", "surrogatepass"))[0]
    values[_PLAN] = Plan(*values[_PLAN])
    return Request(*values)
