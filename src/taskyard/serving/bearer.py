"""The token, as a request brings it: `Authorization: Bearer …`, once."""

from __future__ import annotations

from starlette.datastructures import Headers

from taskyard.serving.token import Token


def brings(headers: Headers, token: Token) -> bool:
    """Whether a request may be answered."""
    given = headers.getlist("authorization")
    scheme, _, secret = (given[0] if len(given) == 1 else "").partition(" ")
    return scheme.lower() == "bearer" and token.fits(secret.strip())


def challenge(headers: Headers) -> dict[str, str]:
    """What a refusal says of how to ask."""
    problem = ', error="invalid_token"' if headers.getlist("authorization") else ""
    return {"WWW-Authenticate": f'Bearer realm="taskyard"{problem}'}
