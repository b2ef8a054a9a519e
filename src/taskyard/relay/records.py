"""Jobs as the database has them: a record each, with whose they are and whether that host is still heard of."""

from __future__ import annotations

import json

from taskyard.clock import now_ms
from taskyard.runtime.model import Job, JobStatus
from taskyard.runtime.records import end_from_json, job_from_json, job_to_json
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from taskyard.database.pool import Database

#: Characters of what a job's kind adds, as JSON: more is not for a list that everybody reads.
_MOST_FACTS = 32_000

_COLUMNS = """
    SELECT j.body, j.is_final, h.id, h.name, h.until >= clock_timestamp(),
           extract(epoch FROM clock_timestamp() - h.heard)::float8
    FROM job j JOIN host h ON h.id = j.host
"""

#: Of those that are over, the newest are listed; others are found by their ids.
MOST_ENDED = 10_000


class Far(NamedTuple):
    """A job of some host."""

    job: Job
    host: str  #: its id
    is_heard: bool  #: whether that host says something, so that it can be asked
    silence: float  #: seconds since it did


def body_of(job: Job) -> str:
    """A job as it is stored; facts that are too large are left out, the largest first."""
    facts = dict(job.facts)
    sizes = {name: len(json.dumps(value)) for name, value in facts.items()}
    while sum(sizes.values()) > _MOST_FACTS:
        largest = max(sizes, key=sizes.__getitem__)
        del sizes[largest], facts[largest]
    return json.dumps(job_to_json(job._replace(facts=facts)), sort_keys=True)


def find(database: Database, job_id: str) -> Far | None:
    """The job of this id, wherever it runs; of two that have it by chance, the one that lives, or else the newer."""
    sql = _COLUMNS + "WHERE j.id = %s ORDER BY j.is_final, j.started DESC LIMIT 1"
    return next(iter(_read(database.ask(sql, [job_id]))), None)


def find_all(database: Database, job_ids: Sequence[str]) -> dict[str, Far]:
    """Those of these ids that there are."""
    sql = _COLUMNS + "WHERE j.id = ANY(%s) ORDER BY NOT j.is_final, j.started"
    return {far.job.id: far for far in _read(database.ask(sql, [list(job_ids)]))}


def everything(database: Database, *, but: str, ended: bool) -> list[Far]:
    """The jobs of every host but one, oldest first; with `ended` also those that are over."""
    living = list(_read(database.ask(_COLUMNS + "WHERE NOT j.is_final AND j.host <> %s", [but])))
    if ended:
        sql = _COLUMNS + "WHERE j.is_final AND j.host <> %s ORDER BY j.started DESC LIMIT %s"
        living += _read(database.ask(sql, [but, MOST_ENDED]))
    return sorted(living, key=lambda far: (far.job.start_time, far.job.id))


def near(database: Database, but: str) -> list[str]:
    """Ids of jobs of other hosts, for those who mistyped one."""
    rows = database.ask("SELECT id FROM job WHERE host <> %s ORDER BY started DESC LIMIT 1000", [but])
    return [str(row[0]) for row in rows]


def from_answer(far: Far, answer: Mapping[str, object]) -> Job:
    """A job as its own home just said it is."""
    raw = as_object(answer.get("job")) or {}
    job = _job(raw)
    return far.job if job is None else job._replace(host_name=far.job.host_name, is_far=True)


def _read(rows: Iterable[Sequence[object]]) -> Iterable[Far]:
    for body, is_final, host, name, is_heard, silence in rows:
        job = _job(as_object(json.loads(str(body))) or {})
        if job is not None:
            shown = job._replace(host_name=str(name), is_far=True)
            if not is_heard and not is_final:
                shown = _cut_off(shown, float(str(silence)))
            yield Far(shown, str(host), bool(is_heard), float(str(silence)))


def _cut_off(job: Job, silence: float) -> Job:
    """A job of a machine that fell silent: as it was then, and said so."""
    why = {"since": now_ms() - round(silence * 1000), "why": f"nothing was heard of {job.host_name}"}
    return job._replace(is_disconnected=True, facts={**job.facts, "disconnected": why})


def _job(raw: Mapping[str, object]) -> Job | None:
    end = end_from_json(as_object(raw.get("end")) or {})
    status = end.status if end is not None else JobStatus.PENDING if raw.get("waitsFor") else JobStatus.RUNNING
    return job_from_json(raw, status=status, end=end)
