"""
What others ask of the jobs of this home, carried out as if they had asked here.

A request is marked as begun before anything is done, and its answer is written after. If a relay is killed in between,
the next one does it again, unless that could do harm: what was typed once must not be typed twice, so whoever asked is
told that nobody knows.
"""

from __future__ import annotations

import json
from base64 import b64encode

from taskyard.errors import BadValue, OutcomeUnknown, TaskyardError
from taskyard.relay.records import body_of
from taskyard.relay.troubles import to_json
from taskyard.runtime import seal
from taskyard.runtime.finding import find_folder
from taskyard.runtime.jobs import Jobs
from taskyard.runtime.output import Output
from taskyard.shapes import as_number, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskyard.runtime.model import Job
    from taskyard.runtime.output import Part

    Arguments = Mapping[str, object]
    Verb = Callable[[Jobs, str, Arguments], dict[str, object]]

#: Bytes of output in one answer.
MOST_READ = 256 * 1024

#: Seconds for which one answer waits until something was printed.
LONGEST_WAIT = 20.0

#: Done twice, these do harm.
ONCE = frozenset({"answer"})


def carried_out(home: str, job_id: str, verb: str, arguments: str, *, asked_by: str) -> str:
    """The answer to a request, whatever it is."""
    jobs = Jobs(home, agent=asked_by or None)
    try:
        act = _VERBS.get(verb)
        if act is None:
            raise BadValue("request", verb, "one that this version of Taskyard knows")
        return json.dumps(act(jobs, job_id, as_object(json.loads(arguments)) or {}))
    except TaskyardError as error:
        return json.dumps({"error": to_json(error)})
    except Exception as error:  # a defect of ours must not leave anybody waiting
        return json.dumps({"error": to_json(TaskyardError(f"{type(error).__name__}: {error}"))})
    finally:
        jobs.close()


def interrupted(host: str, job_id: str, verb: str) -> str:
    """The answer to a request that somebody died over, and that must not be repeated."""
    return json.dumps({"error": to_json(OutcomeUnknown(host, job_id, "type into" if verb == "answer" else verb))})


def _stop(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    grace = given.get("grace")
    (done,) = jobs.stop(job_id, grace=float(grace) if isinstance(grace, (int, float)) else None)
    return {"outcome": done.outcome, **_as_it_is(done.job)}


def _ask_to_stop(jobs: Jobs, job_id: str, _: Arguments) -> dict[str, object]:
    return _as_it_is(jobs.ask_to_stop(job_id))


def _pause(jobs: Jobs, job_id: str, _: Arguments) -> dict[str, object]:
    return {"changed": jobs.pause(job_id), **_as_it_is(jobs.get(job_id))}


def _resume(jobs: Jobs, job_id: str, _: Arguments) -> dict[str, object]:
    return {"changed": jobs.resume(job_id), **_as_it_is(jobs.get(job_id))}


def _background(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    return {"changed": jobs.to_background(job_id, keep=given.get("keep") is True), **_as_it_is(jobs.get(job_id))}


def _answer(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    return _as_it_is(jobs.answer(job_id, as_text(given.get("text")), close=given.get("close") is True))


def _read(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    """A part of the output; with `wait`, when there is something new from `offset` on, or the job is over."""
    from taskyard.runtime.follow_output import follow_output

    output = Output(find_folder(jobs.home, job_id))
    offset, wait = as_number(given.get("offset")), given.get("wait")
    most = min(as_number(given.get("most")) or MOST_READ, MOST_READ)
    is_over = jobs.get(job_id).is_final  # asked before anything is read
    part = output.read(offset, most)
    if not part.text and not is_over and isinstance(wait, (int, float)):
        news = follow_output(output, offset, timeout=min(float(wait), LONGEST_WAIT), most=most)
        part = next(news, part)
    return {**_part(part), "end": output.end(), "over": is_over, **_as_it_is(jobs.get(job_id))}


def _tail(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    output = Output(find_folder(jobs.home, job_id))
    part = output.tail(as_number(given.get("lines")), most=MOST_READ)
    return {**_part(part), "end": part.next_offset, "over": False, **_as_it_is(jobs.get(job_id))}


def _output(jobs: Jobs, job_id: str, given: Arguments) -> dict[str, object]:
    limit = given.get("limit")
    found = jobs.output(
        job_id, limit=limit if isinstance(limit, int) else None, transcript=given.get("transcript") is True
    )
    return {"output": found.output, "was_truncated": found.was_truncated, **_as_it_is(found.job)}


def _check(jobs: Jobs, _: str, given: Arguments) -> dict[str, object]:
    """Whether news was sealed here: the key never leaves this machine."""
    from hmac import compare_digest

    news = as_object(given.get("news")) or {}
    return {"genuine": compare_digest(as_text(news.get("check")), seal.check_value(jobs.home, news))}


def _part(part: Part) -> dict[str, object]:
    return {**part._asdict(), "text": b64encode(part.text).decode()}


def _as_it_is(job: Job) -> dict[str, object]:
    return {"job": json.loads(body_of(job))}


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
