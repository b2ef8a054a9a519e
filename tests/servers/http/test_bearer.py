"""The token, as a request brings it."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers

from taskyard.servers.http.access import Token, challenge, has_token

TOKEN = Token("a-secret-0123456789", None)


def headers(*given: str) -> Headers:
    return Headers(raw=[(b"authorization", text.encode()) for text in given])


@pytest.mark.parametrize(
    "given", ["Bearer a-secret-0123456789", "bearer a-secret-0123456789", "BEARER  a-secret-0123456789"]
)
def test_the_token_is_brought_once_as_a_bearers(given: str) -> None:
    assert has_token(headers(given), TOKEN)
    assert not has_token(headers(given, given), TOKEN)


@pytest.mark.parametrize("given", ["", "a-secret-0123456789", "Basic a-secret-0123456789", "Bearer", "Bearer x"])
def test_anything_else_is_not_it(given: str) -> None:
    assert not has_token(headers(given), TOKEN)
    assert "invalid_token" in challenge(headers(given))["WWW-Authenticate"]
    assert "invalid_token" not in challenge(headers())["WWW-Authenticate"]
