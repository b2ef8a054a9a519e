"""Write a job's end exactly once despite concurrent writers, and the facts of its own process.

    1. notice            the decision: how it ended, and its notice, in one file
    2. events/           the end is logged as an event
    3. end.json          linked, exclusively; then the JobEnded hooks are started, if there are any
    4. outbox/…/new/     the notice is renamed there: a second process finds no source to rename
    5. jobs/.living/     the live name is removed: nothing is left to do for this job

The writer holds `keeper.lock`: the supervisor while it runs or, once that is gone, a process that found the
job without an end. After a crash between two steps the next reader completes them: from the notice on
everything is decided. The event comes before the end, since with the end in place any process may file the
notice, and the decision with it.

`<job>/facts.json` is written by the job's own process alone: progress, the final answer and what else its
kind adds. The record is written by the supervisor, which runs no user code; readers merge both.
"""

from __future__ import annotations

import errno
import json
import os

from taskyard.core import files
from taskyard.core.files import open_plain
from taskyard.core.system import now_ms
from taskyard.core.values import as_object
from taskyard.errors import Damaged, StorageError
from taskyard.jobs import event_log
from taskyard.jobs.helper_process import start_hooks
from taskyard.jobs.job_dir import JobPaths, outbox_path, remove_live_name
from taskyard.jobs.notice_payload import is_box_name
from taskyard.jobs.rate_limit import LIMIT_FACT, WAITED_FACT
from taskyard.storage.maildir import Maildir
from taskyard.storage.message_ids import is_message_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.jobs.kind import Outcome
    from taskyard.jobs.model import End


def commit_end(
    folder: JobPaths, end: Mapping[str, object], news: Mapping[str, object] | None, *, hooks: object = ()
) -> None:
    """Write how the job ended, and send the notice `news` to its recipient; None: no notice.

    `hooks` are the files that may define JobEnded hooks. The caller holds the job's lock, and checked that
    nothing was decided before: an earlier decision stands (`complete_end`).
    """
    ended = json.dumps(end)
    decision = _write_staged(
        f'{{"end": {ended}, "news": {json.dumps(news)}}}'.encode(), folder.reserved_notice, folder.notice
    )
    try:
        os.rename(decision, folder.notice)
    except OSError as error:
        raise files.storage_error(folder.notice, error) from error
    event_log.log_ended(folder, {"end": end, "news": news}, is_new=True)
    _link_end(folder, ended.encode())
    _publish_end(folder, news, hooks)


def complete_end(folder: JobPaths, *, hooks: object = ()) -> bool:
    """Complete a decided end; return False if none was decided. The caller holds the job's lock."""
    decision = read_decision(folder)
    if decision is None:
        remove_live_name(folder)
        return False
    if not _is_end(folder.end):
        event_log.log_ended(folder, decision, is_new=False)
        _link_end(folder, json.dumps(decision["end"]).encode())
    _publish_end(folder, as_object(decision.get("news")), hooks)
    return True


def _publish_end(folder: JobPaths, news: Mapping[str, object] | None, hooks: object) -> None:
    """Start the hooks, send the notice, and remove the live name."""
    start_hooks(folder, hooks)
    files.remove(folder.elsewhere)
    if news is None:
        files.remove(folder.notice)
    else:
        Maildir(folder.home, outbox_path(folder.home, str(news["recipient"]))).adopt(folder.notice, str(news["id"]))
    remove_live_name(folder)


def read_decision(folder: JobPaths) -> dict[str, object] | None:
    """Return the decision that is not completed; None if there is none, or it is not a valid one of this job."""
    found = read_own_json(folder.notice)
    if found is None or not isinstance((as_object(found.get("end")) or {}).get("cause"), str):
        return None
    news = found.get("news")
    return found if news is None or _is_own_notice(folder, as_object(news) or {}) else None


def _is_own_notice(folder: JobPaths, news: Mapping[str, object]) -> bool:
    """Return whether a notice is of this job, and has no path that leads out of an outbox."""
    recipient, notice_id = news.get("recipient"), news.get("id")
    if not isinstance(recipient, str) or not isinstance(notice_id, str):
        return False
    return is_box_name(recipient) and is_message_id(notice_id) and news.get("taskId") == folder.id


def _is_end(path: str) -> bool:
    return isinstance((read_own_json(path) or {}).get("cause"), str)


def _link_end(folder: JobPaths, end: bytes) -> None:
    temporary = _write_staged(end, folder.reserved_end, folder.end)
    try:
        os.link(temporary, folder.end)
    except FileExistsError:
        if not _is_end(folder.end):  # unreadable: keep it for the user to inspect
            os.rename(folder.end, f"{folder.end}.{os.urandom(4).hex()}.bad")
            os.link(temporary, folder.end)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or os.path.lexists(folder.end):
            raise files.storage_error(folder.end, error) from error
        # A hard link takes an inode on some file systems. The caller holds the job's lock: no other process
        # writes an end.
        try:
            os.rename(temporary, folder.end)
        except OSError as refused:
            raise files.storage_error(folder.end, refused) from refused
        return
    os.unlink(temporary)


def write_draft(folder: JobPaths, end: Mapping[str, object]) -> None:
    """Write how the job ended into the file reserved for it, before anything else can fail.

    Raises:
        StorageError: a disk error.
    """
    _fill_reserved(folder.reserved_end, json.dumps(end).encode())


def read_draft(folder: JobPaths) -> dict[str, object] | None:
    """Return the end drafted by a supervisor that did not get to decide it; None: there is none."""
    found = read_own_json(folder.reserved_end)
    return found if found is not None and isinstance(found.get("cause"), str) else None


def _write_staged(data: bytes, reserved: str, target: str) -> str:
    """Return the path of a file with `data` that is to become `target`: the reserved one, if it exists."""
    if _fill_reserved(reserved, data):
        return reserved
    temporary = f"{target}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    files.create(temporary, data)
    return temporary


def _fill_reserved(path: str, data: bytes) -> bool:
    """Write `data` into a file of ours without other hard links; return False if there is no such file."""
    try:
        fd = open_plain(path, os.O_WRONLY)
    except OSError:
        return False
    try:
        found = os.fstat(fd)
        if found.st_nlink != 1 or found.st_uid != os.geteuid():
            return False
        os.ftruncate(fd, 0)
        files.write_all(fd, data)
    except OSError as error:
        raise files.storage_error(path, error) from error
    finally:
        os.close(fd)
    return True


def read_json(path: str) -> dict[str, object] | None:
    """Return the object in a JSON file; None if there is none that can be parsed."""
    try:
        data = files.read(path)
        return None if data is None else as_object(json.loads(data))
    except (Damaged, ValueError, RecursionError):
        return None


def read_own_json(path: str) -> dict[str, object] | None:
    """Return the object as `read_json` does; also None if something else is in its place, such as a link."""
    try:
        return read_json(path)
    except StorageError:
        if os.path.isfile(path) and not os.path.islink(path):
            raise
        return None


#: Set with a handler's outcome: without it, the process exited before the work was done.
_DONE_KEY = "isDone"

#: Facts of remote work: its process confirmed that it was stopped, or why it cannot confirm that.
STOP_CONFIRMED, STOP_ERROR = "stopConfirmed", "stopError"


class FactsFile:
    """The facts of one job, for the process that does its work."""

    def __init__(self, folder: JobPaths) -> None:
        self._path = folder.facts
        self.known: dict[str, object] = dict(read_json(folder.facts) or {})
        self.known.pop(_DONE_KEY, None)  # of an earlier attempt

    def change(self, changes: Mapping[str, object]) -> bool:
        """Write changed facts; return False, without writing, if nothing changed."""
        if all(name in self.known and self.known[name] == value for name, value in changes.items()):
            return False
        self.known.update(changes)
        files.replace(self._path, json.dumps(self.known).encode("utf-8", "surrogatepass"))
        return True

    def close(self, outcome: Outcome) -> None:
        """Record the outcome of the work."""
        self.change({**outcome.facts, "result": outcome.result, "error": outcome.error, _DONE_KEY: True})


def read_facts(folder: JobPaths) -> dict[str, object]:
    """Return the facts of a job, without empty values."""
    known = read_json(folder.facts) or {}
    return {name: value for name, value in known.items() if name != _DONE_KEY and value not in ("", None)}


def rate_limited_seconds(folder: JobPaths) -> tuple[float, bool]:
    """Return how many seconds a job has waited for rate limits, and whether it does so now."""
    known = read_json(folder.facts) or {}
    waited, flag = known.get(WAITED_FACT), as_object(known.get(LIMIT_FACT))
    total = waited if type(waited) is int and waited > 0 else 0
    since = (flag or {}).get("waitsSinceMs")
    if type(since) is int:
        total += max(now_ms() - since, 0)
    return total / 1000, flag is not None


def is_work_done(folder: JobPaths) -> bool:
    """Return whether a handler recorded its outcome."""
    return (read_json(folder.facts) or {}).get(_DONE_KEY) is True


def resolve_end(folder: JobPaths, end: End) -> End:
    """Return the end of a job with a handler: it succeeds only if the handler recorded success."""
    if end.cause != "exited":
        return end
    known = read_json(folder.facts) or {}
    error = known.get("error")
    if isinstance(error, str) and error:
        return end._replace(cause="error", error=error)
    if end.exit_code == 0 and known.get(_DONE_KEY) is not True:
        return end._replace(cause="error", error="it ended without reporting a result")
    return end


#: Most characters of an answer in a notice; the transcript has all of it.
_MAX_RESULT = 16_000


def agent_notice_fields(folder: JobPaths) -> dict[str, object]:
    """Return the extra fields of an agent's notice."""
    facts = read_facts(folder)
    found: dict[str, object] = {"transcript": folder.transcript} if os.path.lexists(folder.transcript) else {}
    if isinstance(result := facts.get("result"), str):
        found["result"] = result[-_MAX_RESULT:]
    for name in ("usage", "worktree"):
        if (value := as_object(facts.get(name))) is not None:
            found[name] = value
    return found


def agent_summary(record: Mapping[str, object], end: End) -> str:
    """Return how an agent ended, in a sentence."""
    what = f'Agent "{record.get("description")}"'
    if end.status == "completed":
        return f"{what} finished"
    if end.cause in ("stopped", "timeout", "output_cap"):
        return f"{what} was stopped"
    return f"{what} failed: {_failure_reason(end)}"


def _failure_reason(end: End) -> str:
    if end.error:
        return end.error
    if end.cause == "signal":
        return f"killed by signal {end.signal}"
    return {"oom": "out of memory", "exited": f"exit code {end.exit_code}"}.get(end.cause, "Unknown error")
