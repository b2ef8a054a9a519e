"""Job records as stored in the database, and the identity of this home as a host.

A record has the id of its host and whether that host is reachable (its lease has not expired). A host is one
home on one machine, with a random id and a name for people.
"""

from __future__ import annotations

import json
import os

from taskyard.core import files
from taskyard.core.system import now_ms, this_host
from taskyard.core.values import NamedTuple, as_number, as_object, as_text
from taskyard.errors import Damaged
from taskyard.jobs.events import Events
from taskyard.jobs.model import Job, JobStatus, end_from_json, job_from_json, job_to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskyard.config import Settings
    from taskyard.postgres.connection import Database


#: Maximum characters of a job's facts as JSON: every list of jobs carries them.
_MAX_FACTS = 32_000

_SELECT_JOBS = """
    SELECT j.body, j.is_final, h.id, h.name, h.until >= clock_timestamp(),
           extract(epoch FROM clock_timestamp() - h.heard)::float8
    FROM job j JOIN host h ON h.id = j.host
"""

#: Only the newest ended jobs are listed; older ones are found by id.
MAX_ENDED = 10_000


class HostJob(NamedTuple):
    """A job with its host."""

    job: Job
    host: str  #: id of the host
    is_reachable: bool  #: whether the lease of the host's relay is valid, so that it can be asked
    silence: float  #: seconds since its last contact


def encode_job(job: Job) -> str:
    """Serialize a job; oversized facts are left out, the largest first."""
    facts = dict(job.facts)
    sizes = {name: len(json.dumps(value)) for name, value in facts.items()}
    while sum(sizes.values()) > _MAX_FACTS:
        largest = max(sizes, key=sizes.__getitem__)
        del sizes[largest], facts[largest]
    return json.dumps(job_to_json(job._replace(facts=facts)), sort_keys=True)


def find_job(database: Database, job_id: str) -> HostJob | None:
    """Return the job with this id on any host; if two share it by chance, the running one, else the newer."""
    sql = _SELECT_JOBS + "WHERE j.id = %s ORDER BY j.is_final, j.started DESC LIMIT 1"
    return next(iter(_parse_rows(database.ask(sql, [job_id]))), None)


def find_jobs(database: Database, job_ids: Sequence[str]) -> dict[str, HostJob]:
    """Return the jobs that exist among these ids."""
    sql = _SELECT_JOBS + "WHERE j.id = ANY(%s) ORDER BY NOT j.is_final, j.started"
    return {far.job.id: far for far in _parse_rows(database.ask(sql, [list(job_ids)]))}


def list_jobs(database: Database, *, exclude: str, ended: bool) -> list[HostJob]:
    """Return the jobs of every host but `exclude`, oldest first; with `ended` also the ended ones."""
    living = list(_parse_rows(database.ask(_SELECT_JOBS + "WHERE NOT j.is_final AND j.host <> %s", [exclude])))
    if ended:
        sql = _SELECT_JOBS + "WHERE j.is_final AND j.host <> %s ORDER BY j.started DESC LIMIT %s"
        living += _parse_rows(database.ask(sql, [exclude, MAX_ENDED]))
    return sorted(living, key=lambda far: (far.job.start_time, far.job.id))


def recent_job_ids(database: Database, exclude: str) -> list[str]:
    """Return ids of jobs of other hosts, for suggestions after a typo."""
    rows = database.ask("SELECT id FROM job WHERE host <> %s ORDER BY started DESC LIMIT 1000", [exclude])
    return [str(row[0]) for row in rows]


def job_from_reply(far: HostJob, answer: Mapping[str, object]) -> Job:
    """Return a job as its own home just reported it."""
    raw = as_object(answer.get("job")) or {}
    job = _parse_job(raw)
    return far.job if job is None else job._replace(host_name=far.job.host_name, is_on_other_host=True)


def _parse_rows(rows: Iterable[Sequence[object]]) -> Iterable[HostJob]:
    for body, is_final, host, name, is_reachable, silence in rows:
        job = _parse_job(as_object(json.loads(str(body))) or {})
        if job is not None:
            shown = job._replace(host_name=str(name), is_on_other_host=True)
            if not is_reachable and not is_final:
                shown = _mark_disconnected(shown, float(str(silence)))
            yield HostJob(shown, str(host), bool(is_reachable), float(str(silence)))


def _mark_disconnected(job: Job, silence: float) -> Job:
    """Return a job of an unreachable host in its last known state, marked as disconnected."""
    why = {"since": now_ms() - round(silence * 1000), "why": f"{job.host_name} does not respond"}
    return job._replace(is_disconnected=True, facts={**job.facts, "disconnected": why})


def _parse_job(raw: Mapping[str, object]) -> Job | None:
    end = end_from_json(as_object(raw.get("end")) or {})
    status = end.status if end is not None else JobStatus.PENDING if raw.get("waitsFor") else JobStatus.RUNNING
    return job_from_json(raw, status=status, end=end)


_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"

#: Longest name that fits beside a job.
_MAX_NAME = 40


class Host(NamedTuple):
    """One home as other hosts see it."""

    home: str
    id: str
    name: str
    since: int  #: events up to this id predate the home's use of a database

    @property
    def channel(self) -> str:
        """The channel that notifies its relay of requests."""
        return f"host_{self.id}"


def ensure_host(home: str, settings: Settings) -> Host:
    """Return this home's identity, created once; it changes only if the home was copied to another machine."""
    path = f"{home}/host.json"
    name = (settings.host or os.uname().nodename)[:_MAX_NAME]
    machine = this_host().partition("/")[0]
    while True:
        raw = _read_host(path)
        if as_text(raw.get("id")) and raw.get("machine") == machine:
            return Host(home, as_text(raw["id"]), name, as_number(raw.get("since")))
        files.make_private_folder(home)
        made = {
            "id": "".join(_ALPHABET[byte % 36] for byte in os.urandom(12)),
            "machine": machine,
            "since": Events(home).skip(),
        }
        _write_host(path, json.dumps(made).encode(), instead=bool(raw))


def _write_host(path: str, data: bytes, *, instead: bool) -> None:
    """Create the file unless another process was faster; `instead`: replace one written on another machine."""
    if instead:
        files.replace(path, data)
        return
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        if not _read_host(path):
            os.replace(temporary, path)  # the existing file is empty or unreadable
            return
    os.unlink(temporary)


def _read_host(path: str) -> dict[str, object]:
    try:
        return as_object(json.loads(files.read(path, most=4096) or b"{}")) or {}
    except (Damaged, ValueError, RecursionError):
        return {}
