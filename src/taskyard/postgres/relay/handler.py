"""Requests between relays: the client that sends them and the handler that carries them out.

A request is a row in the database. `RpcClient` inserts it and waits, with a timeout, for the reply, announced
by NOTIFY. `RequestHandler` claims the requests for its home and carries them out in parallel, as if the client
had called here. Errors are serialized and raised again on the client's side with the same class and facts.

A request is marked as begun before it is carried out, and its reply is written afterwards. If the relay is
killed in between, the next one repeats the request, except those that are not idempotent: input must not be
written twice, so the client gets `OutcomeUnknown`.
"""

from __future__ import annotations

import json
import os
import threading
from base64 import b64encode

from taskyard import errors
from taskyard.core.system import boottime
from taskyard.core.values import as_list, as_number, as_object, as_text
from taskyard.errors import BadValue, HostAway, OutcomeUnknown, StorageError, TaskyardError
from taskyard.jobs import notice_payload
from taskyard.jobs.helper_process import append_log
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.output import Output
from taskyard.jobs.query import find_folder
from taskyard.postgres.relay.records import encode_job
from taskyard.postgres.relay.uploader import LOG, Uploader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.jobs.model import Job
    from taskyard.jobs.output import OutputChunk
    from taskyard.postgres.connection import Database
    from taskyard.postgres.relay.records import Host, HostJob


def error_to_json(error: TaskyardError) -> dict[str, object]:
    """Serialize an error with all its facts."""
    return {"class": type(error).__name__, "message": str(error), "fact": error.fact, "facts": error.facts()}


def error_from_json(raw: Mapping[str, object]) -> TaskyardError:
    """Rebuild an error; a class unknown to this version becomes a `TaskyardError` with the same message."""
    found = getattr(errors, name, None) if (name := as_text(raw.get("class"))) in errors.__all__ else None
    kind = found if isinstance(found, type) and issubclass(found, TaskyardError) else TaskyardError
    error = kind.__new__(kind)
    TaskyardError.__init__(error, as_text(raw.get("message")))
    facts = as_object(raw.get("facts")) or {}
    vars(error).update({key: tuple(known) if (known := as_list(value)) else value for key, value in facts.items()})
    vars(error)["_fact"] = as_text(raw.get("fact"))
    return error


if TYPE_CHECKING:
    Arguments = Mapping[str, object]
    Verb = Callable[[Jobs, str, Arguments], dict[str, object]]

#: Maximum bytes of output in one reply.
MAX_READ = 256 * 1024

#: Maximum seconds one read waits for new output.
MAX_WAIT = 20.0

#: Verbs that must not be repeated.
NOT_IDEMPOTENT = frozenset({"answer"})


def run_request(home: str, job_id: str, verb: str, arguments: str, *, asked_by: str) -> str:
    """Carry out a request and return its reply, which may be an error."""
    jobs = Jobs(home, agent=asked_by or None)
    try:
        act = _VERBS.get(verb)
        if act is None:
            raise BadValue("request", verb, "one that this version of Taskyard knows")
        return json.dumps(act(jobs, job_id, as_object(json.loads(arguments)) or {}))
    except TaskyardError as error:
        return json.dumps({"error": error_to_json(error)})
    except Exception as error:  # a defect must not leave the client waiting
        return json.dumps({"error": error_to_json(TaskyardError(f"{type(error).__name__}: {error}"))})
    finally:
        jobs.close()


def interrupted_reply(host: str, job_id: str, verb: str) -> str:
    """Return the reply to an interrupted request that must not be repeated."""
    return json.dumps({"error": error_to_json(OutcomeUnknown(host, job_id, "type into" if verb == "answer" else verb))})


def _stop(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    grace = given.get("grace")
    (done,) = jobs.stop(job_id, grace=float(grace) if isinstance(grace, (int, float)) else None)
    return {"outcome": done.outcome, **_job_reply(done.job)}


def _ask_to_stop(jobs: Jobs, job_id: str, _: Arguments) -> dict[str, object]:
    return _job_reply(jobs.ask_to_stop(job_id))


def _pause(jobs: Jobs, job_id: str, _: Arguments) -> dict[str, object]:
    return {"changed": jobs.pause(job_id), **_job_reply(jobs.get(job_id))}


def _resume(jobs: Jobs, job_id: str, _: Arguments) -> dict[str, object]:
    return {"changed": jobs.resume(job_id), **_job_reply(jobs.get(job_id))}


def _background(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    return {"changed": jobs.to_background(job_id, keep=given.get("keep") is True), **_job_reply(jobs.get(job_id))}


def _answer(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    return _job_reply(jobs.answer(job_id, as_text(given.get("text")), close=given.get("close") is True))


def _read(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    """Read a chunk of output; with `wait`, once there is something new from `offset` on or the job has ended."""
    from taskyard.jobs.output import follow_output

    output = Output(find_folder(jobs.home, job_id))
    offset, wait = as_number(given.get("offset")), given.get("wait")
    most = min(as_number(given.get("most")) or MAX_READ, MAX_READ)
    is_over = jobs.get(job_id).is_final  # checked before anything is read
    part = output.read(offset, most)
    if not part.text and not is_over and isinstance(wait, (int, float)):
        news = follow_output(output, offset, timeout=min(float(wait), MAX_WAIT), most=most)
        part = next(news, part)
    return {**_part_json(part), "end": output.end(), "over": is_over, **_job_reply(jobs.get(job_id))}


def _tail(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    output = Output(find_folder(jobs.home, job_id))
    part = output.tail(as_number(given.get("lines")), most=MAX_READ)
    return {**_part_json(part), "end": part.next_offset, "over": False, **_job_reply(jobs.get(job_id))}


def _output(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    limit = given.get("limit")
    found = jobs.output(
        job_id, limit=limit if isinstance(limit, int) else None, transcript=given.get("transcript") is True
    )
    return {"output": found.output, "was_truncated": found.was_truncated, **_job_reply(found.job)}


def _check(jobs: Jobs, _: str, given: Arguments) -> dict[str, object]:
    """Verify that a notice payload was signed here: the key never leaves this host."""
    from hmac import compare_digest

    news = as_object(given.get("news")) or {}
    return {"genuine": compare_digest(as_text(news.get("check")), notice_payload.check_value(jobs.home, news))}


def _part_json(part: OutputChunk) -> dict[str, object]:
    return {**part._asdict(), "text": b64encode(part.text).decode()}


def _job_reply(job: Job) -> dict[str, object]:
    return {"job": json.loads(encode_job(job))}


_VERBS: Mapping[str, Verb] = {
    "stop": _stop,
    "ask_to_stop": _ask_to_stop,
    "pause": _pause,
    "resume": _resume,
    "background": _background,
    "answer": _answer,
    "read": _read,
    "tail": _tail,
    "output": _output,
    "check": _check,
}


#: Requests carried out in parallel; more are queued. Most sleep: a stop until its job is gone, a read for
#: output.
_MAX_REQUESTS = 32

#: Includes requests this relay claimed without learning of it, because the database's answer was lost.
_CLAIM_REQUESTS = """
    UPDATE request SET state = 'begun', begun_by = %s, changed = clock_timestamp()
    WHERE id IN (
        SELECT id FROM request
        WHERE host = %s AND (state = 'asked' OR (state = 'begun' AND begun_by = %s)) AND NOT id = ANY(%s::uuid[])
        ORDER BY changed LIMIT %s FOR UPDATE
    )
    RETURNING id::text, job, verb, arguments, asked_by
"""

#: Requests begun by earlier relays: the lock proves that those have exited.
_SELECT_ABANDONED = """
    SELECT id::text, job, verb, arguments, asked_by FROM request WHERE host = %s AND state = 'begun' AND begun_by <> %s
"""

_REPLY = """
    WITH done AS (
        UPDATE request SET state = 'done', answer = %s, changed = clock_timestamp() WHERE id = %s RETURNING reply_to
    )
    SELECT pg_notify(reply_to, '') FROM done
"""


class RequestHandler:
    """The requests handled by one relay."""

    def __init__(self, host: Host, database: Database, forwarding: Uploader, wake: Callable[[], None]) -> None:
        """`forwarding` is used by this handler alone; `wake` is called when there is room for more."""
        self._uploader = forwarding
        self._host = host
        self._database = database
        self._wake = wake
        self._me = os.urandom(6).hex()
        self._hands: set[str] = set()
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._is_new = True

    @property
    def is_busy(self) -> bool:
        """Whether a request is being carried out."""
        return bool(self._hands)

    def look(self) -> None:
        """Claim and begin waiting requests."""
        if self._is_new:
            for request, job, verb, arguments, asked_by in self._database.ask(
                _SELECT_ABANDONED, [self._host.id, self._me]
            ):
                if verb in NOT_IDEMPOTENT:
                    self._answered(request, interrupted_reply(self._host.name, job, verb))
                else:
                    self._begin(request, job, verb, arguments, asked_by)
            self._is_new = False
        with self._lock:
            known = list(self._hands)
        room = _MAX_REQUESTS - len(known)
        if room > 0:
            for row in self._database.ask(_CLAIM_REQUESTS, [self._me, self._host.id, self._me, known, room]):
                self._begin(*row)

    def _begin(self, request: str, job: str, verb: str, arguments: str, asked_by: str) -> None:
        with self._lock:
            if request in self._hands:
                return
            self._hands.add(request)
        words = (request, job, verb, arguments, asked_by)
        threading.Thread(target=self._carry_out, args=words, name="taskyard-request", daemon=True).start()

    def _carry_out(self, request: str, job: str, verb: str, arguments: str, asked_by: str) -> None:
        try:
            answer = run_request(self._host.home, job, verb, arguments, asked_by=asked_by)
            with self._sending:
                self._uploader.push([job])  # the client finds the change in the record
            self._answered(request, answer)
        except TaskyardError as error:
            append_log(self._host.home, LOG, f"the answer to {verb} of {job} could not be sent: {error}")
        finally:
            with self._lock:
                self._hands.discard(request)
            self._wake()

    def _answered(self, request: str, answer: str) -> None:
        self._database.ask(_REPLY, [answer, request])


#: Reply timeout in seconds, beyond what the request itself takes.
PATIENCE = 10.0

#: Poll interval in seconds: a host going offline sends no notification.
_POLL_INTERVAL = 2.0

_INSERT_REQUEST = """
    WITH made AS (
        INSERT INTO request (id, host, job, verb, arguments, asked_by, reply_to, state, changed)
        VALUES (%s, %s, %s, %s, %s, %s, %s, 'asked', clock_timestamp()) ON CONFLICT (id) DO NOTHING
    )
    SELECT pg_notify(%s, '')
"""

_SELECT_REPLY = """
    SELECT r.state, r.answer, h.until >= clock_timestamp(), extract(epoch FROM clock_timestamp() - h.heard)::float8
    FROM request r JOIN host h ON h.id = r.host WHERE r.id = %s
"""

#: A request that was not begun will not be carried out after this.
_WITHDRAW = """
    UPDATE request SET state = 'withdrawn', changed = clock_timestamp()
    WHERE id = %s AND state IN ('asked', 'withdrawn') RETURNING id
"""


class RpcClient:
    """The client side of requests to relays of other homes."""

    def __init__(self, database: Database, agent: str | None) -> None:
        self._database = database
        self._agent = agent or ""
        self._channel = f"answers_{os.urandom(6).hex()}"

    def ask(
        self, far: HostJob, verb: str, arguments: Mapping[str, object] | None = None, *, takes: float = 0.0
    ) -> dict[str, object]:
        """Send a request to the relay of a job's host and return the reply; it may take `takes` seconds.

        Raises:
            HostAway: that host is unreachable.
            OutcomeUnknown: the request was begun and interrupted, and is not idempotent.
            TaskyardError: any error raised there.
        """
        if not far.is_reachable:
            raise HostAway(far.job.host_name, far.job.id, seconds=far.silence)
        from uuid import uuid4

        subscription = self._database.listener.subscription(self._channel)
        count, request = subscription.count, str(uuid4())
        until = boottime() + takes + PATIENCE
        words = [request, far.host, far.job.id, verb, json.dumps(dict(arguments or {})), self._agent, self._channel]
        self._database.ask(_INSERT_REQUEST, [*words, f"host_{far.host}"])
        while True:
            state, answer, is_reachable, silence = self._database.ask(_SELECT_REPLY, [request])[0]
            if state == "done":
                return _parse_reply(str(answer))
            left = until - boottime()
            if left <= 0 or not is_reachable:
                return self._given_up(far, verb, request, float(silence))
            count = subscription.wait(count, min(left, _POLL_INTERVAL))

    def _given_up(self, far: HostJob, verb: str, request: str, silence: float) -> dict[str, object]:
        """Withdraw the request; return the reply if it arrived at the last moment.

        Raises:
            HostAway, OutcomeUnknown: it did not.
        """
        if self._database.ask(_WITHDRAW, [request]):
            raise HostAway(far.job.host_name, far.job.id, seconds=silence)
        state, answer, _, _ = self._database.ask(_SELECT_REPLY, [request])[0]
        if state == "done":
            return _parse_reply(str(answer))
        if verb in NOT_IDEMPOTENT:
            raise OutcomeUnknown(far.job.host_name, far.job.id, "type into")
        raise HostAway(far.job.host_name, far.job.id, seconds=silence, is_withdrawn=False)


def _parse_reply(text: str) -> dict[str, object]:
    answer = as_object(json.loads(text))
    if answer is None:
        raise StorageError("the answer of another machine", "it cannot be read")
    if (error := as_object(answer.get("error"))) is not None:
        raise error_from_json(error)
    return answer
