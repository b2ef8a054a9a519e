"""
A notice: what a receiver is told of a background job, as read from an outbox.

On disk it is `{"end": …, "news": {…}}`; the news is what was signed (`news.py`). A field of the wrong type reads
as if it were not there; without an id, a job and a summary there is no notice.
"""

from __future__ import annotations

import json

from taskyard import message_ids
from taskyard.errors import Damaged
from taskyard.runtime.ids import is_job_id
from taskyard.shapes import as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Whose box it is where nobody is named: the person's.
PERSON = "me"

#: No number of ours is larger: neither a time in milliseconds nor an exit code.
_LARGEST = 1 << 53

#: First thing in the next turn; all else comes after the messages the user has queued.
NEXT = "next"


class Notice(NamedTuple):
    """One piece of news about a job."""

    id: str
    recipient: str  #: whom it was meant for, as the name of a box (`recipients`)
    priority: str  #: next, later
    task_id: str  #: the job
    summary: str  #: what happened, in a sentence
    status: str | None = None  #: completed, failed, killed; None: the job goes on
    tool_use_id: str | None = None
    output_file: str = ""
    exit_code: int | None = None
    at: int = 0  #: epoch ms
    tail: str = ""  #: of one that waits for an answer: the last it said
    hint: str = ""  #: and how to answer
    news: Mapping[str, object] = {}  #: all that was signed, as it stands on disk
    redelivered: bool = False  #: a receiver had it before, and died
    orphaned_from: str | None = None  #: whom it was meant for, where somebody else in line got it

    @property
    def is_end(self) -> bool:
        """Whether the job is over."""
        return self.status is not None

    def as_user_message(self) -> dict[str, str]:
        """It as one message of a conversation with a model."""
        from taskyard.runtime.notice_text import for_model

        return {"role": "user", "content": for_model([self])}


def decoded(path: str, data: bytes, *, redelivered: bool = False) -> Notice:
    """The notice in the bytes of the file `path`.

    Raises:
        Damaged: there is none.
    """
    try:
        body = as_object(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, "it is not JSON") from error
    news = as_object((body or {}).get("news"))
    if news is None:
        raise Damaged(path, "it holds no news")
    notice = from_news(news)
    if notice is None:
        raise Damaged(path, "its news has no id, no job or no summary")
    return notice._replace(redelivered=redelivered)


def from_news(news: Mapping[str, object]) -> Notice | None:
    """The notice that signed news makes; None if it makes none."""
    notice_id, task_id, summary = _text(news, "id"), _text(news, "taskId"), _text(news, "summary")
    if not message_ids.is_id(notice_id) or not is_job_id(task_id) or not summary:
        return None
    return Notice(
        notice_id,
        _text(news, "recipient") or PERSON,
        NEXT if news.get("priority") == NEXT else "later",
        task_id,
        summary,
        _text(news, "status") or None,
        _text(news, "toolUseId") or None,
        _text(news, "outputFile"),
        _number(news, "exitCode"),
        _number(news, "at") or 0,
        _text(news, "tail"),
        _text(news, "hint"),
        news,
    )


def to_json(notice: Notice) -> dict[str, object]:
    """A notice for programs; what has no value is null. `check` proves it (`taskyard notices verify`)."""
    return {
        "id": notice.id,
        "recipient": notice.recipient,
        "priority": notice.priority,
        "task_id": notice.task_id,
        "tool_use_id": notice.tool_use_id,
        "output_file": notice.output_file,
        "status": notice.status,
        "summary": notice.summary,
        "exit_code": notice.exit_code,
        "at": notice.at,
        "tail": notice.tail or None,
        "hint": notice.hint or None,
        **{name: notice.news.get(name) for name in ADDED},
        "check": notice.news.get("check"),
        "redelivered": notice.redelivered,
        "orphaned_from": notice.orphaned_from,
    }


#: What kinds of jobs may add to their news: an agent's last words, what it cost, where it worked; a monitor's event.
ADDED = ("result", "usage", "worktree", "transcript", "event")


def _text(news: Mapping[str, object], name: str) -> str:
    value = news.get(name)
    return value if isinstance(value, str) else ""


def _number(news: Mapping[str, object], name: str) -> int | None:
    value = news.get(name)
    return value if type(value) is int and abs(value) < _LARGEST else None
