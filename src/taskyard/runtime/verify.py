"""
Whether what looks like a notice is one: word for word what Taskyard says of a notice that it issued.

A notice is looked up by its id (or its job), its check value is worked out anew under the user's key, and what
was given must equal what is made of it. So a changed byte is refused, and so is an id that was never issued.

How a notice was delivered (`redelivered`, `orphaned_from`) is not signed, since it comes after. It is compared with
where the notice is: what cannot be is refused, and what cannot be known any more is named as not proved.
"""

from __future__ import annotations

import json
from typing import Protocol

from taskyard.errors import NotFound, NotGenuine, clipped, shown
from taskyard.runtime import outboxes
from taskyard.runtime.ids import is_job_id
from taskyard.runtime.notice import to_json
from taskyard.runtime.notice_text import CLOSE, OPEN, PREAMBLE, body, more
from taskyard.runtime.seal import check_value
from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskyard.runtime.notice import Notice

#: What is said about a delivery, not about the job: it may differ from one time to the next.
_OF_DELIVERY = ("redelivered", "orphaned_from")


class Issued(Protocol):
    """Where the notices are that were issued."""

    def with_id(self, notice_id: str) -> Notice | None:
        """The notice with this id; None if none was ever issued."""
        ...

    def of_job(self, job_id: str) -> Iterable[Notice]:
        """Every notice about a job."""
        ...

    def is_read(self, notice_id: str) -> bool:
        """Whether somebody acknowledged it."""
        ...

    def is_sealed(self, notice: Notice) -> bool:
        """Whether its check value was made by one who has the key."""
        ...


class IssuedHere(NamedTuple):
    """The notices of one home."""

    home: str

    def with_id(self, notice_id: str) -> Notice | None:
        """The notice with this id."""
        return outboxes.with_id(self.home, notice_id)

    def of_job(self, job_id: str) -> Iterable[Notice]:
        """Every notice about a job."""
        return outboxes.of_job(self.home, job_id)

    def is_read(self, notice_id: str) -> bool:
        """Whether somebody acknowledged it."""
        return any(box.state(notice_id) == "read" for box in outboxes.boxes(self.home))

    def is_sealed(self, notice: Notice) -> bool:
        """Whether its check value was made with this home's key."""
        import hmac

        return hmac.compare_digest(str(notice.news.get("check")), check_value(self.home, notice.news))


class Verified(NamedTuple):
    """A notice that was issued, word for word."""

    notice: Notice
    unproved: tuple[str, ...] = ()  #: what was said of its delivery that may be so, and that nobody can prove


def verify(home: str, given: str | Mapping[str, object]) -> list[Notice]:
    """The notices in what was given, if this home issued them; the errors are those of `verified`."""
    return [one.notice for one in verified(IssuedHere(home), given)]


def verified(issued: Issued, given: str | Mapping[str, object]) -> list[Verified]:
    """The notices in what was given: XML as models get it, JSON as programs get it, one or several.

    Raises:
        NotFound: an id that was never issued.
        NotGenuine: a changed byte, a delivery that never was, or something that is no notice.
    """
    if not isinstance(given, str):
        return [_verified(issued, given)]
    text = given.strip("\n")
    if text.startswith((OPEN, PREAMBLE)):
        return [Verified(notice) for notice in _in_text(issued, text)]
    try:
        found = _records(json.loads(text, object_pairs_hook=_each_once))
    except (ValueError, RecursionError):
        raise NotGenuine("it is neither JSON nor a notice for a model") from None
    if not found:
        raise NotGenuine("there is none in it")
    return [_verified(issued, record) for record in found]


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of JSON in which no name comes twice: readers differ in which of two they believe."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotGenuine("a field is in it twice")
    return found


def _records(value: object) -> list[Mapping[str, object]]:
    """The notices in JSON: one, a list, or an answer of the command line."""
    one = as_object(value)
    if one is not None and "data" in one:
        return _records(one["data"])
    found = [one] if one is not None else [as_object(item) for item in as_list(value) or [None]]
    if None in found:
        raise NotGenuine("it is no object with the fields of one")
    return [record for record in found if record is not None]


def _verified(issued: Issued, record: Mapping[str, object]) -> Verified:
    notice_id = record.get("id")
    if not isinstance(notice_id, str):
        raise NotGenuine("it has no id")
    notice = issued.with_id(notice_id)
    if notice is None:
        raise NotFound(f"No notice {shown(notice_id)} was ever issued here.")
    _check(issued, notice)
    said = {name: value for name, value in record.items() if name not in _OF_DELIVERY}
    genuine = {name: value for name, value in to_json(notice).items() if name not in _OF_DELIVERY}
    for expected in (genuine, notice.news):
        if _same(said, expected):
            return Verified(notice, _unproved_delivery(issued, notice, record))
    changed = [name for name in genuine if name not in said or not _same(said[name], genuine[name])]
    raise NotGenuine(f"it differs from notice {notice_id} in {', '.join(changed) or 'a field that no notice has'}")


def _unproved_delivery(issued: Issued, notice: Notice, record: Mapping[str, object]) -> tuple[str, ...]:
    """What is said of its delivery, as far as it cannot be known.

    Raises:
        NotGenuine: it cannot be.
    """
    unproved: list[str] = []
    if "redelivered" in record:
        said = record["redelivered"]
        is_read = issued.is_read(notice.id)  # which forgets how it came
        if type(said) is not bool or (said and not notice.redelivered and not is_read):
            raise NotGenuine(f"notice {notice.id} was never delivered a second time")
        if is_read or said != notice.redelivered:  # one that came back was delivered before, and not a second time
            unproved.append("redelivered")
    if "orphaned_from" in record:
        said = record["orphaned_from"]
        if said not in (None, notice.recipient):
            raise NotGenuine(f"notice {notice.id} was meant for {notice.recipient!r}, not for {shown(str(said))}")
        unproved.append("orphaned_from")  # who was in line at the time is written nowhere
    return tuple(unproved)


def _check(issued: Issued, notice: Notice) -> None:
    """Refuse a notice on disk that was not made by one who has the key."""
    if not issued.is_sealed(notice):
        raise NotGenuine(f"the check value of notice {notice.id} does not fit")


def _in_text(issued: Issued, text: str) -> list[Notice]:
    """The notices in a text for a model, which must hold nothing else."""
    left = text.removeprefix(PREAMBLE + "\n")
    found: list[Notice] = []
    while left.startswith(OPEN):
        notice = _first(issued, left)
        found.append(notice)
        left = left.removeprefix(body(notice)).removeprefix("\n")
    if not found:
        raise NotGenuine(f"there is no {OPEN} in it")
    if left and not _is_count(left):
        raise NotGenuine(f"{shown(clipped(left))} is not part of one")
    return found


def _first(issued: Issued, text: str) -> Notice:
    """The genuine notice that the text begins with."""
    job_id = text[: text.find(CLOSE)].partition("<task-id>")[2].partition("</task-id>")[0]
    about = list(issued.of_job(job_id)) if is_job_id(job_id) else []
    if not about:
        raise NotFound(f"No notice about a job {shown(job_id)} was ever issued here.")
    for notice in about:
        words = body(notice)
        if text == words or text.startswith(words + "\n"):
            _check(issued, notice)
            return notice
    raise NotGenuine(f"its words are not those of any notice about job {job_id}")


def _is_count(text: str) -> bool:
    number = text.removeprefix("[").partition(" ")[0]
    return number.isdecimal() and len(number) < 10 and text == more(int(number))


def _same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: 1 is neither 1.0 nor true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
