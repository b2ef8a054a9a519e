"""A token from the system's keyring: asked for when it is used, and missed in words."""

from __future__ import annotations

from collections.abc import Iterator

import keyring
import keyring.backend
import keyring.errors
import pytest

from taskyard.errors import RemoteRefused
from taskyard.jobs.remote.remotes import Remote, read_token


class InMemory(keyring.backend.KeyringBackend):
    """A keyring that is gone with the test."""

    priority = 1  # as every keyring that can be used

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise keyring.errors.KeyringLocked("somebody must unlock it")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring() -> Iterator[InMemory]:
    before, made = keyring.get_keyring(), InMemory()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


CLUSTER = Remote("cluster", "ray", token_keyring="ray/ada")


@pytest.mark.req("K-03")
def test_a_token_is_found_by_service_and_user(ring: InMemory) -> None:
    keyring.set_password("ray", "ada", "a token")

    assert read_token(CLUSTER) == "a token"


def test_a_token_that_is_not_there_is_missed_with_what_to_do(ring: InMemory) -> None:
    with pytest.raises(RemoteRefused, match=r"no token for ray and ada\. `keyring set ray ada` puts it there"):
        read_token(CLUSTER)


def test_a_keyring_that_is_locked_is_said_to_be(ring: InMemory) -> None:
    ring.is_locked = True

    with pytest.raises(RemoteRefused, match=r"cannot be opened \(KeyringLocked\)"):
        read_token(CLUSTER)
