"""
Answers: data in the envelope of every `--json`, errors with the code of the command line and the status that fits it.

    usage       400        not found   404
    conflict    409        try again   503, with Retry-After
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from starlette.responses import Response

from taskyard.errors import (
    Busy,
    Cancelled,
    Conflict,
    NotFound,
    StoreAway,
    TaskyardError,
    UsageError,
)

SCHEMA_VERSION = 1

JSON = "application/json"

#: Seconds after which what was busy may be asked for again.
RETRY_AFTER = 2

#: The first that fits counts.
_STATUSES: tuple[tuple[type[TaskyardError], int], ...] = (
    (UsageError, 400),
    (NotFound, 404),
    (Conflict, 409),
    (Busy, 503),
    (Cancelled, 503),
    (StoreAway, 503),
)


class Refusal(NamedTuple):
    """A request that is not answered, for a reason of the page's server alone."""

    status: int
    code: str
    message: str

    def answer(self, **headers: str) -> Response:
        """As it is sent."""
        body: dict[str, object] = {"code": self.code, "message": self.message}
        return Response(encoded({"error": body}), self.status, headers, JSON)


READ_ONLY = Refusal(
    403, "read_only", "This page only shows. Start it with `taskyard web --allow-actions` to act from it."
)
ENDING = Refusal(503, "ending", "The server ends. Nothing more is known of this request.")
FAILED = Refusal(500, "internal", "Something went wrong in the server; what it was stands where it was started.")
NO_PAGE = Refusal(404, "not_found", "There is nothing at this address. `/docs` names what there is.")
TOO_LARGE = Refusal(413, "too_large", "The body is larger than anything this takes.")
TOO_MANY = Refusal(503, "busy", "As many listen as this server takes. Close a page, then try again.")


def encoded(body: Mapping[str, object]) -> bytes:
    """The envelope, as it is sent. Compact, and ASCII alone."""
    return dumped({"schema_version": SCHEMA_VERSION, **body})


def dumped(value: object) -> bytes:
    """JSON, as it is sent."""
    return json.dumps(value, separators=(",", ":")).encode()


def data(value: object, status: int = 200) -> Response:
    """An answer."""
    return Response(encoded({"data": value}), status, media_type=JSON)


def error_body(error: TaskyardError) -> dict[str, object]:
    """An error, as the command line prints it with `--json`."""
    facts = {name: value for name, value in error.facts().items() if name not in ("code", "message")}
    return {"error": {"code": error.code, "message": str(error), **facts}}


def status_of(error: TaskyardError) -> int:
    """The status that fits an error."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def refused(error: TaskyardError) -> Response:
    """An error, as it is sent."""
    status = status_of(error)
    headers = {"Retry-After": str(RETRY_AFTER)} if status == 503 else {}
    return Response(encoded(error_body(error)), status, headers, JSON)
