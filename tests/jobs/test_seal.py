"""The check value on news is HMAC-SHA256, as everybody else computes it."""

from __future__ import annotations

import hmac
import os

import pytest

from taskyard.jobs.notice_payload import hmac_sha256


@pytest.mark.req("N-07")
@pytest.mark.parametrize("size", [0, 1, 32, 63, 64, 65, 200])
def test_a_check_value_is_what_any_library_makes_of_the_same_key_and_text(size: int) -> None:
    key, text = os.urandom(size), os.urandom(3 * size + 1)

    assert hmac_sha256(key, text) == hmac.digest(key, text, "sha256").hex()
