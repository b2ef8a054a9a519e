"""Which database is meant, and what of its address may be shown."""

from __future__ import annotations

import pytest

from taskyard.config import database_label, strip_password
from taskyard.integrations.clients.formats import server_env

pytestmark = pytest.mark.req("X-01")


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("postgresql://ada:geheim@db.example:5432/yard", "postgresql://ada@db.example:5432/yard"),
        (
            "postgresql://ada:ge@he:im@db.example/yard?sslmode=require",
            "postgresql://ada@db.example/yard?sslmode=require",
        ),
        ("postgres://db.example/yard?password=geheim&user=ada", "postgres://db.example/yard?user=ada"),
        ("postgresql://db.example/yard?user=ada&password=geheim", "postgresql://db.example/yard?user=ada"),
        ("postgresql://db.example/yard?sslpassword=geheim", "postgresql://db.example/yard"),
        ("postgresql://ada@[::1]:5432/yard", "postgresql://ada@[::1]:5432/yard"),
        ("postgresql:///yard?host=/run/pg", "postgresql:///yard?host=/run/pg"),
    ],
)
def test_a_password_is_taken_out_and_the_rest_stays(address: str, plain: str) -> None:
    assert strip_password(address) == plain
    assert "geheim" not in database_label(address)


def test_no_password_gets_into_another_programs_configuration() -> None:
    env = {"TASKYARD_STORE": "postgresql://ada:geheim@db.example/yard", "TASKYARD_HOME": "/h"}

    assert server_env(env, list_name=None, agent=None)["TASKYARD_STORE"] == "postgresql://ada@db.example/yard"
