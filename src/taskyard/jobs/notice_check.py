"""
Verify that a text or JSON is a genuine notice, exactly as Taskyard issued it.

A notice is looked up by its id (or its job), its check value is computed again under the user's key, and
the given text must equal the one generated from it. So a changed byte is refused, and so is an id that was
never issued.

How a notice was delivered (`redelivered`, `orphaned_from`) is not signed, since it is decided later. It is
compared with the notice's state: what is impossible is refused, and what can no longer be known is reported
as not proved.
"""

from __future__ import annotations

import json
from typing import Protocol

from taskyard.core.values import NamedTuple, as_list, as_object
from taskyard.errors import NotFound, NotGenuine, quote_value, truncate
from taskyard.jobs import outbox
from taskyard.jobs.model import is_job_id
from taskyard.jobs.notice import CLOSE, OPEN, PREAMBLE, format_body, remaining_line, to_json
from taskyard.jobs.notice_payload import check_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.jobs.notice import Notice

#: Fields about a delivery, not about the job: they may differ between deliveries.
_DELIVERY_FIELDS = ("redelivered", "orphaned_from")


class IssuedNotices(Protocol):
    """Store of issued notices."""

    def with_id(self, notice_id: str) -> Notice | None:
        """Return the notice with this id; None if none was ever issued."""
        ...

    def of_job(self, job_id: str) -> Iterable[Notice]:
        """Return every notice about a job."""
        ...

    def is_read(self, notice_id: str) -> bool:
        """Return whether it was acknowledged."""
        ...

    def is_signed(self, notice: Notice) -> bool:
        """Return whether its check value was made with the key."""
        ...


class LocalNotices(NamedTuple):
    """The notices of one home."""

    home: str

    def with_id(self, notice_id: str) -> Notice | None:
        """Return the notice with this id."""
        return outbox.find_notice(self.home, notice_id)

    def of_job(self, job_id: str) -> Iterable[Notice]:
        """Return every notice about a job."""
        return outbox.job_notices(self.home, job_id)

    def is_read(self, notice_id: str) -> bool:
        """Return whether it was acknowledged."""
        return any(box.state(notice_id) == "read" for box in outbox.boxes(self.home))

    def is_signed(self, notice: Notice) -> bool:
        """Return whether its check value was made with this home's key."""
        import hmac

        return hmac.compare_digest(str(notice.news.get("check")), check_value(self.home, notice.news))


class VerifiedNotice(NamedTuple):
    """A notice that was issued exactly as given."""

    notice: Notice
    unproved: tuple[str, ...] = ()  #: given delivery fields that are possible, and cannot be proved


def verify(home: str, given: str | Mapping[str, object]) -> list[Notice]:
    """Return the notices in `given`, if this home issued them; errors as for `verify_notices`."""
    return [one.notice for one in verify_notices(LocalNotices(home), given)]


def verify_notices(issued: IssuedNotices, given: str | Mapping[str, object]) -> list[VerifiedNotice]:
    """Return the notices in `given`: XML as for models, JSON as for programs, one or several.

    Raises:
        NotFound: an id that was never issued.
        NotGenuine: a changed byte, an impossible delivery, or something that is no notice.
    """
    if not isinstance(given, str):
        return [_verify_record(issued, given)]
    text = given.strip("\n")
    if text.startswith((OPEN, PREAMBLE)):
        return [VerifiedNotice(notice) for notice in _verify_text(issued, text)]
    try:
        found = _find_records(json.loads(text, object_pairs_hook=_reject_duplicates))
    except (ValueError, RecursionError):
        raise NotGenuine("it is neither JSON nor a notice for a model") from None
    if not found:
        raise NotGenuine("there is none in it")
    return [_verify_record(issued, record) for record in found]


def _reject_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object, refusing duplicate names: parsers differ in which of two they use."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotGenuine("a field is in it twice")
    return found


def _find_records(value: object) -> list[Mapping[str, object]]:
    """Return the notices in JSON: one, a list, or an answer of the command line."""
    one = as_object(value)
    if one is not None and "data" in one:
        return _find_records(one["data"])
    found = [one] if one is not None else [as_object(item) for item in as_list(value) or [None]]
    if None in found:
        raise NotGenuine("it is not an object with the fields of a notice")
    return [record for record in found if record is not None]


def _verify_record(issued: IssuedNotices, record: Mapping[str, object]) -> VerifiedNotice:
    notice_id = record.get("id")
    if not isinstance(notice_id, str):
        raise NotGenuine("it has no id")
    notice = issued.with_id(notice_id)
    if notice is None:
        raise NotFound(f"No notice {quote_value(notice_id)} was ever issued here.")
    _check_signature(issued, notice)
    said = {name: value for name, value in record.items() if name not in _DELIVERY_FIELDS}
    genuine = {name: value for name, value in to_json(notice).items() if name not in _DELIVERY_FIELDS}
    for expected in (genuine, notice.news):
        if _same_json(said, expected):
            return VerifiedNotice(notice, _unproved_delivery(issued, notice, record))
    changed = [name for name in genuine if name not in said or not _same_json(said[name], genuine[name])]
    raise NotGenuine(f"it differs from notice {notice_id} in {', '.join(changed) or 'a field that no notice has'}")


def _unproved_delivery(issued: IssuedNotices, notice: Notice, record: Mapping[str, object]) -> tuple[str, ...]:
    """Return the given delivery fields that cannot be proved.

    Raises:
        NotGenuine: one of them is impossible.
    """
    unproved: list[str] = []
    if "redelivered" in record:
        said = record["redelivered"]
        is_read = issued.is_read(notice.id)  # the read state does not keep how it was delivered
        if type(said) is not bool or (said and not notice.redelivered and not is_read):
            raise NotGenuine(f"notice {notice.id} was never delivered a second time")
        if is_read or said != notice.redelivered:  # a returned notice was delivered before as not redelivered
            unproved.append("redelivered")
    if "orphaned_from" in record:
        said = record["orphaned_from"]
        if said not in (None, notice.recipient):
            raise NotGenuine(f"notice {notice.id} was meant for {notice.recipient!r}, not for {quote_value(str(said))}")
        unproved.append("orphaned_from")  # the line of recipients at that time is not recorded
    return tuple(unproved)


def _check_signature(issued: IssuedNotices, notice: Notice) -> None:
    """Refuse a notice on disk that was not signed with the key."""
    if not issued.is_signed(notice):
        raise NotGenuine(f"the check value of notice {notice.id} does not fit")


def _verify_text(issued: IssuedNotices, text: str) -> list[Notice]:
    """Return the notices in a text for a model, which must have nothing else in it."""
    left = text.removeprefix(PREAMBLE + "\n")
    found: list[Notice] = []
    while left.startswith(OPEN):
        notice = _first_notice(issued, left)
        found.append(notice)
        left = left.removeprefix(format_body(notice)).removeprefix("\n")
    if not found:
        raise NotGenuine(f"there is no {OPEN} in it")
    if left and not _is_remaining_line(left):
        raise NotGenuine(f"{quote_value(truncate(left))} is not part of one")
    return found


def _first_notice(issued: IssuedNotices, text: str) -> Notice:
    """Return the genuine notice that the text begins with."""
    job_id = text[: text.find(CLOSE)].partition("<task-id>")[2].partition("</task-id>")[0]
    about = list(issued.of_job(job_id)) if is_job_id(job_id) else []
    if not about:
        raise NotFound(f"No notice about a job {quote_value(job_id)} was ever issued here.")
    for notice in about:
        words = format_body(notice)
        if text == words or text.startswith(words + "\n"):
            _check_signature(issued, notice)
            return notice
    raise NotGenuine(f"its words are not those of any notice about job {job_id}")


def _is_remaining_line(text: str) -> bool:
    number = text.removeprefix("[").partition(" ")[0]
    return number.isdecimal() and len(number) < 10 and text == remaining_line(int(number))


def _same_json(one: object, other: object) -> bool:
    """Return whether two values are the same JSON: 1 is neither 1.0 nor true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
