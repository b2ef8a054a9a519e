"""
The verbs of a place, carried out by Ray.

A session is a job of Ray's whose submission id is our job's. Its state is asked of Ray Jobs; its log is read byte for
byte from the node it ran on (docs/adr/0017-rays-log-as-bytes.md). A final state is told with the last of what it said,
never before.
"""

from __future__ import annotations

from urllib.parse import quote

from taskyard.clock import elapsed
from taskyard.errors import RemoteAway
from taskyard.remote.backend import RemoteState, Seen
from taskyard.remote.ray.dashboard import Dashboard, last_line
from taskyard.remote.ray.log import LAST_LINES, Cursor, LastLines, Reading, Told, begun_anew, read_cursor
from taskyard.remote.ray.work import checked_options, request_for
from taskyard.shapes import as_list, as_number, as_object, as_text
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from taskyard.remote.backend import Work
    from taskyard.remote.remotes import Remote

_STATES = {
    "PENDING": RemoteState.RUNNING,
    "RUNNING": RemoteState.RUNNING,
    "SUCCEEDED": RemoteState.COMPLETED,
    "FAILED": RemoteState.FAILED,
    "STOPPED": RemoteState.STOPPED,
}

#: Bytes a second of logs that had nothing new: a log comes whole each time, so that a long one is asked for less often.
_PACE = 10_000_000

#: Seconds that the head waits for the node of a log.
_NODE_ANSWERS = "10"

#: Characters of what Ray says about a job that are looked at.
_LONGEST_MESSAGE = 2000

_FORGOTTEN = (
    "its head was restarted, which forgets every job, or somebody deleted this one there; "
    "whether it still runs cannot be told"
)
_LOST_WITH_ITS_NODE = "its node is gone, and with it what was said after the last look"


class _NoLog(Exception):
    """A log cannot be had; it says why."""


class RayJob(NamedTuple):
    """A job, as Ray tells of it."""

    id: str
    status: str
    entrypoint: str
    message: str
    node: str  #: where it runs, or ran; "" if it never started
    exit_code: int | None
    metadata: dict[str, object]

    @property
    def state(self) -> RemoteState:
        """In our words."""
        return _STATES[self.status]

    @property
    def error(self) -> str:
        """Why it failed."""
        if self.state is not RemoteState.FAILED:
            return ""
        return self.message or "it failed, and Ray does not say why"

    def about(self) -> dict[str, object]:
        """What Ray says beside."""
        return {**self.metadata, "status": self.status, "exit_code": self.exit_code, "node": self.node}


class RayBackend:
    """Speaks to one cluster."""

    def __init__(self, remote: Remote, token: str = "") -> None:
        """Connects to nothing yet.

        Raises:
            BadValue: the url or another setting cannot be one.
            RemoteRefused: the token cannot be one.
        """
        checked_options(remote)
        self._remote = remote
        self._dashboard = Dashboard(remote, token)
        self._resting: dict[str, tuple[Cursor, float]] = {}  #: whose log to leave alone at which cursor, until when

    async def submit(self, work: Work) -> str:
        """Begin a job, unless one of this id is there."""
        asked = request_for(work, self._remote)
        async with self._dashboard.asked("POST", "/api/jobs/", body=asked) as answer:
            if answer.status == 200:
                return as_text((await answer.json()).get("submission_id")) or work.id
            said = await answer.text()
        if f"{work.id} already exists" in said:
            return work.id
        if answer.status < 500 or "status code 400" in said:  # a node's refusal comes inside of the head's failure
            raise self._dashboard.refused(last_line(said))
        raise self._dashboard.away(last_line(said))

    async def poll(self, session: str, cursor: str = "") -> Seen:
        """How a job stands, and what it printed since."""
        at = read_cursor(cursor)
        job = await self._job(session)
        if job is None:
            return Seen(RemoteState.LOST, cursor, error=_FORGOTTEN)
        if job.state.is_final:
            return await self._seen_over(job, at)
        try:
            told = await self._told(job, at)
        except (RemoteAway, _NoLog) as problem:
            return Seen(job.state, cursor, metadata={**job.about(), "log": str(problem)})
        return Seen(job.state, str(told.cursor), told.text, metadata=job.about())

    async def send(self, session: str, text: str) -> None:
        """Refuse: a program on Ray has no input."""
        await self._version()  # one that cannot be reached is said to be away
        raise self._dashboard.refused("a program on Ray takes no input once it runs", "Start another with what to add.")

    async def stop(self, session: str) -> None:
        """Tell Ray to end it: SIGTERM, and after three seconds SIGKILL. One that waits for room ends as it starts."""
        async with self._dashboard.asked("POST", f"/api/jobs/{quote(session, safe='')}/stop") as answer:
            if answer.status == 200:
                return
            said = await answer.text()
        if answer.status == 404:
            await self._version()
        elif answer.status < 500:
            raise self._dashboard.refused(last_line(said))
        else:
            raise self._dashboard.away(last_line(said))

    async def close(self) -> None:
        """Let go of connections."""
        await self._dashboard.close()

    async def probe(self) -> str:
        """Its version, and how many nodes it has; nothing is begun."""
        version, nodes = await self._version(), await self._nodes({})
        count = sum(_is_alive(node) for node in nodes or ())
        return f"Ray {version}" + (f", {count} node{'s' * (count != 1)}" if nodes else "")

    async def _version(self) -> str:
        """The version of Ray; what answers otherwise is not Ray."""
        async with self._dashboard.asked("GET", "/api/version") as answer:
            if answer.status == 200 and (version := as_text((await answer.json()).get("ray_version"))):
                return self._dashboard.clean(version)
            said = await answer.text()
        if answer.status >= 500:
            raise self._dashboard.away(last_line(said))
        raise self._dashboard.refused("what answers there is not Ray", "The url must be that of Ray's dashboard.")

    async def _job(self, session: str) -> RayJob | None:
        async with self._dashboard.asked("GET", f"/api/jobs/{quote(session, safe='')}") as answer:
            if answer.status == 200:
                return self._read_job(session, await answer.json())
            said = await answer.text()
        if answer.status == 404:
            await self._version()  # somebody else's 404 says nothing about a job
            return None
        if answer.status >= 500:
            raise self._dashboard.away(last_line(said))
        raise self._dashboard.refused(last_line(said))

    def _read_job(self, session: str, told: dict[str, object]) -> RayJob:
        status = as_text(told.get("status"))
        if status not in _STATES:
            raise self._dashboard.refused(
                f"it says of a job that it is {status[:40]!r}, which says nothing to Taskyard"
            )
        code = told.get("driver_exit_code")
        return RayJob(
            id=session,
            status=status,
            entrypoint=as_text(told.get("entrypoint")),
            message=_first_line(self._dashboard.clean(as_text(told.get("message"))[:_LONGEST_MESSAGE], lines=True)),
            node=as_text(told.get("driver_node_id")),
            exit_code=as_number(code) if code is not None else None,
            metadata=as_object(told.get("metadata")) or {},
        )

    async def _seen_over(self, job: RayJob, at: Cursor) -> Seen:
        """A final state, once the last of what it said is told with it."""
        error = job.error
        try:
            told = await (self._last_lines(job, at) if at.is_too_far else self._told(job, at))
        except _NoLog as problem:
            if await self._is_there(job.node):
                raise self._dashboard.away(f"the log of {job.id} cannot be read now: {problem}") from problem
            told, error = Told("", at), "; ".join(filter(None, (error, _LOST_WITH_ITS_NODE)))
        is_told = told.is_all and not (told.cursor.is_too_far and not told.cursor.is_end)
        state = job.state if is_told else RemoteState.RUNNING
        return Seen(state, str(told.cursor), told.text, error=error if is_told else "", metadata=job.about())

    async def _told(self, job: RayJob, at: Cursor) -> Told:
        """What is new in the log.

        Raises:
            _NoLog
        """
        is_over = job.state.is_final
        resting_at, until = self._resting.get(job.id, (None, 0.0))
        if not job.node or at.is_too_far or (resting_at == at and elapsed() < until and not is_over):
            return Told("", at)
        reading = await self._read(job, at)
        told = reading.told(is_over=is_over)
        if told is None:
            reading = await self._read(job, Cursor())
            told = begun_anew(reading.told(is_over=is_over) or Told("", Cursor()))
        self._resting[job.id] = (told.cursor, elapsed() + (0 if told.text else reading.length / _PACE))
        return told

    async def _read(self, job: RayJob, at: Cursor) -> Reading:
        reading = Reading(at, job.entrypoint, job.id)
        try:
            await self._fetch(job, "-1", reading.take)
        except RemoteAway:
            if not reading.has_news:
                raise
            reading.broke_off = True  # what came is told: over a slow line it would not come whole the next time either
        return reading

    async def _last_lines(self, job: RayJob, at: Cursor) -> Told:
        if at.is_end:
            return Told("", at)
        last = LastLines()
        await self._fetch(job, str(LAST_LINES), last.take)
        return last.told(at, job.id)

    async def _fetch(self, job: RayJob, lines: str, take: Callable[[bytes], bool]) -> None:
        """Give the last lines of a log, or ("-1") all of them; one that was never written has none.

        Raises:
            _NoLog: its node does not answer.
        """
        wanted = {"node_id": job.node, "filename": f"job-driver-{job.id}.log", "lines": lines, "timeout": _NODE_ANSWERS}
        async with self._dashboard.asked("GET", "/api/v0/logs/file", query=wanted) as answer:
            if answer.status == 200:
                return await answer.pieces(take)
            said = await answer.text()
        if "file is not found" not in said:
            raise _NoLog(self._dashboard.clean(last_line(said)))
        return None

    async def _is_there(self, node: str) -> bool:
        """Whether a node is there, as far as the head knows: what is not known counts as there."""
        nodes = await self._nodes({"filter_keys": "node_id", "filter_predicates": "=", "filter_values": node})
        return nodes is None or any(_is_alive(node) for node in nodes)

    async def _nodes(self, wanted: dict[str, str]) -> list[object] | None:
        """The nodes that the head knows of; None if it does not say, or knows of none at all: it has just started."""
        async with self._dashboard.asked("GET", "/api/v0/nodes", query=wanted) as answer:
            told = as_object((await answer.json()).get("data")) if answer.status == 200 else None
        found = as_object((told or {}).get("result")) or {}
        return as_list(found.get("result")) if as_number(found.get("total")) else None


def _is_alive(node: object) -> bool:
    return as_text((as_object(node) or {}).get("state")) != "DEAD"


def _first_line(message: str) -> str:
    """What a message says before the end of the log, which Ray adds and which was told already."""
    return message.strip().split("\n")[0].partition(", last available logs")[0].rstrip(".: ")
