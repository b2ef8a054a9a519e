"""Request parameters (kinds, checks, schemas) and JSON answers of the web API. Pure.

A parameter that its kind does not accept is refused before anything is looked up. Data is sent in the envelope of
every `--json`; errors have the code of the command line and a matching status:

    usage       400        not found   404
    conflict    409        try again   503, with Retry-After
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from starlette.responses import Response

from taskyard.core.values import (
    LARGEST_ID,
    LONGEST_NAME,
    LONGEST_SUBJECT,
    LONGEST_TEXT,
    as_list,
    check_id,
    check_name,
    check_text,
    folder_name,
)
from taskyard.errors import (
    BadJobId,
    BadText,
    BadValue,
    Busy,
    Cancelled,
    Conflict,
    NotFound,
    StoreAway,
    TaskyardError,
    UsageError,
)
from taskyard.jobs.model import is_job_id

#: Most lines of output in one answer, most blockers of a task, most characters of a search text.
MOST_LINES, MOST_IDS, LONGEST_NEEDLE = 5_000, 200, 1_000

#: Most characters typed into a job at once; `taskyard.jobs.control` refuses more.
LONGEST_INPUT = 1_000_000

#: More digits than any offset or event has.
_LONGEST_NUMBER = 18

Check = Callable[[str, object], object]


class ParamKind(NamedTuple):
    """The schema and the check of a kind of value."""

    schema: Mapping[str, object]
    check: Check  #: gets the parameter's name and value: text from an address, any JSON value from a body


class ParamSpec(NamedTuple):
    """One parameter of a request."""

    name: str
    kind: str
    about: str
    required: bool = False


def _int_check(least: int, most: int) -> Check:
    def check(name: str, value: object) -> int:
        text = str(value) if type(value) is int else value
        is_number = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER
        if not is_number or not least <= int(str(text)) <= most:
            raise BadValue(name, value, f"a whole number from {least} to {most:,}")
        return int(str(text))

    return check


def _flag(name: str, value: object) -> bool:
    known = {"0": False, "1": True, "false": False, "true": True}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value not in known:
        raise BadValue(name, value, "true or false")
    return known[value]


def _list_name(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadValue(name, value, "the name of a list")
    return folder_name("a list", value)


def _agent(name: str, value: object) -> str:
    return check_name("an agent", value)  # type: ignore[arg-type]  # it says so if it is no text


def _job_id(name: str, value: object) -> str:
    if not is_job_id(value):
        raise BadJobId(value)
    return value


def _task_id(name: str, value: object) -> str:
    return check_id(value)


def _task_ids(name: str, value: object) -> tuple[str, ...]:
    found = as_list(value)
    if found is None or len(found) > MOST_IDS:
        raise BadValue(name, value, f"a list of at most {MOST_IDS} task ids")
    return tuple(check_id(each) for each in found)


def _text_check(longest: int, *, allow_empty: bool = True) -> Check:
    def check(name: str, value: object) -> str:
        return check_text(name, value, longest=longest, allow_empty=allow_empty)

    return check


def _check_input(name: str, value: object) -> str:
    """Check terminal input: any control character is allowed, unpaired surrogates are not."""
    if not isinstance(value, str) or len(value) > LONGEST_INPUT:
        raise BadText(name, f"must be text of at most {LONGEST_INPUT:,} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadText(name, "holds half a character") from None
    return value


def _int_schema(least: int, most: int) -> Mapping[str, object]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _string_schema(longest: int, **more: object) -> Mapping[str, object]:
    return {"type": "string", "maxLength": longest, **more}


_OFFSET = 1 << 53

PARAM_KINDS: Mapping[str, ParamKind] = {
    "list": ParamKind(_string_schema(LONGEST_NAME), _list_name),
    "task": ParamKind(_string_schema(9, pattern="^[1-9][0-9]{0,8}$", examples=["12"]), _task_id),
    "tasks": ParamKind({"type": "array", "items": {"type": "string"}, "maxItems": MOST_IDS}, _task_ids),
    "job": ParamKind(_string_schema(9, pattern="^[a-z][0-9a-z]{8}$", examples=["b3k9x0q2m"]), _job_id),
    "lines": ParamKind(_int_schema(1, MOST_LINES), _int_check(1, MOST_LINES)),
    "offset": ParamKind(_int_schema(0, _OFFSET), _int_check(0, _OFFSET)),
    "event": ParamKind(_int_schema(0, _OFFSET), _int_check(0, _OFFSET)),
    "flag": ParamKind({"type": "boolean"}, _flag),
    "needle": ParamKind(_string_schema(LONGEST_NEEDLE, minLength=1), _text_check(LONGEST_NEEDLE, allow_empty=False)),
    "mark": ParamKind(_string_schema(64), _text_check(64)),
    "subject": ParamKind(_string_schema(LONGEST_SUBJECT, minLength=1), _text_check(LONGEST_SUBJECT, allow_empty=False)),
    "text": ParamKind(_string_schema(LONGEST_TEXT), _text_check(LONGEST_TEXT)),
    "name": ParamKind(_string_schema(LONGEST_NAME, minLength=1), _agent),
    "typed": ParamKind(_string_schema(LONGEST_INPUT), _check_input),
}

assert LARGEST_ID == 10**9 - 1  # the pattern of a task id relies on it


class Params(dict[str, object]):
    """The checked parameters of a request; missing ones are absent."""

    def text(self, name: str) -> str:
        """Return a text value; "" if absent."""
        return str(self.get(name, ""))

    def word(self, name: str) -> str | None:
        """Return a text value; None if absent."""
        return str(self[name]) if name in self else None

    def number(self, name: str, default: int = 0) -> int:
        """Return a number."""
        found = self.get(name, default)
        assert isinstance(found, int)
        return found

    def ids(self, name: str) -> tuple[str, ...]:
        """Return several ids."""
        found = self.get(name, ())
        assert isinstance(found, tuple)
        return tuple(str(each) for each in found)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]


def parse_params(values: Iterable[ParamSpec], pairs: Iterable[tuple[str, object]], *, where: str) -> Params:
    """Check the parameters of a request by kind; `where` names their origin in errors.

    Raises:
        UsageError: A parameter is unknown, missing, repeated or invalid.
    """
    known = {value.name: value for value in values}
    found = Params()
    for name, raw in pairs:
        if name not in known:
            expected = f"one of {', '.join(known)}" if known else "none"
            raise BadValue(f"A name in the {where}", name, expected)
        if name in found:
            raise UsageError(f"{name} is there twice.")
        if raw is not None:
            found[name] = PARAM_KINDS[known[name].kind].check(name, raw)
    if missing := [value.name for value in known.values() if value.required and value.name not in found]:
        raise UsageError(f"The {where} must have {', '.join(missing)}.")
    return found


SCHEMA_VERSION = 1

JSON = "application/json"

#: Seconds after which a client may retry what was busy.
RETRY_AFTER = 2

#: HTTP status by error class; the first match applies.
_STATUSES: tuple[tuple[type[TaskyardError], int], ...] = (
    (UsageError, 400),
    (NotFound, 404),
    (Conflict, 409),
    (Busy, 503),
    (Cancelled, 503),
    (StoreAway, 503),
)


class Refusal(NamedTuple):
    """An error that only the web server has."""

    status: int
    code: str
    message: str

    def answer(self, **headers: str) -> Response:
        """Return the response."""
        body: dict[str, object] = {"code": self.code, "message": self.message}
        return Response(encode_envelope({"error": body}), self.status, headers, JSON)


READ_ONLY = Refusal(
    403, "read_only", "This page only shows. Start it with `taskyard web --allow-actions` to act from it."
)
SHUTTING_DOWN = Refusal(503, "ending", "The server is shutting down. Whether the request was carried out is unknown.")
FAILED = Refusal(500, "internal", "Internal server error; the server's terminal or log has the reason.")
NOT_FOUND = Refusal(404, "not_found", "There is nothing at this address. `/docs` lists all addresses.")
TOO_LARGE = Refusal(413, "too_large", "The body is too large.")
TOO_MANY = Refusal(503, "busy", "The server has its maximum number of listeners. Close a page, then try again.")


def encode_envelope(body: Mapping[str, object]) -> bytes:
    """Encode an answer with its envelope: compact, ASCII only."""
    return encode_json({"schema_version": SCHEMA_VERSION, **body})


def encode_json(value: object) -> bytes:
    """Encode compact JSON."""
    return json.dumps(value, separators=(",", ":")).encode()


def data_response(value: object, status: int = 200) -> Response:
    """Return a response with data."""
    return Response(encode_envelope({"data": value}), status, media_type=JSON)


def error_body(error: TaskyardError) -> dict[str, object]:
    """Return an error as the command line prints it with `--json`."""
    facts = {name: value for name, value in error.facts().items() if name not in ("code", "message")}
    return {"error": {"code": error.code, "message": str(error), **facts}}


def status_of(error: TaskyardError) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def error_response(error: TaskyardError) -> Response:
    """Return the response of an error."""
    status = status_of(error)
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    return Response(encode_envelope(error_body(error)), status, headers, JSON)
