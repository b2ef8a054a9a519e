"""Who a home is to other machines: always the same, unless it was copied."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from support.hosts import Machine
from taskyard.config import Settings
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.postgres.relay.records import Host, ensure_host

pytestmark = pytest.mark.req("X-01")


def test_a_home_keeps_its_id_whoever_asks_first(tmp_path: Path) -> None:
    found: list[Host] = []
    asking = [
        threading.Thread(target=lambda: found.append(ensure_host(str(tmp_path / "home"), Settings(host="forge"))))
        for _ in range(8)
    ]
    for one in asking:
        one.start()
    for one in asking:
        one.join()

    assert len({host.id for host in found}) == 1
    assert (found[0].name, found[0].channel) == ("forge", f"host_{found[0].id}")
    assert ensure_host(str(tmp_path / "home"), Settings()).id == found[0].id
    assert (tmp_path / "home" / "host.json").stat().st_mode & 0o777 == 0o600


def test_a_home_that_was_copied_to_another_machine_is_another_host(tmp_path: Path) -> None:
    before = ensure_host(str(tmp_path), Settings())
    path = tmp_path / "host.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "machine": "elsewhere"}), encoding="ascii")

    assert ensure_host(str(tmp_path), Settings()).id != before.id


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"id": 3}'])
def test_what_cannot_be_read_is_made_anew(tmp_path: Path, damage: str) -> None:
    (tmp_path / "host.json").write_text(damage, encoding="ascii")

    made = ensure_host(str(tmp_path), Settings())

    assert ensure_host(str(tmp_path), Settings()) == made


def test_what_happened_before_a_home_had_a_database_is_its_own_affair(forge: Machine) -> None:
    alone = Jobs(forge.home)
    alone.run(Shell("true"), timeout=20)
    alone.close()
    forge.jobs().run(Shell("true"), timeout=20)

    assert len(list(forge.events(0))) == 2
