"""Names of the living where the store is shared: each once, on whatever machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import taskyard
from support.wait import until
from taskyard.config import Settings
from taskyard.postgres import heartbeat
from taskyard.postgres.connection import database
from taskyard.storage import process_registry

pytestmark = pytest.mark.req("X-01", "L-09")

OTHER = """
import os, sys
from taskyard.postgres import heartbeat as presence
from taskyard.config import Settings
home, store, silence = sys.argv[1:]
print(presence.register(home, "writer", Settings(store=store, holder_silence=float(silence))).name, flush=True)
sys.stdin.read()
os._exit(9)
"""


def on_another_machine(home: Path, address: str, *, silence: float) -> tuple[subprocess.Popen[str], str]:
    """A process of another home that is alive as "writer", and the name it got."""
    started = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(home), address, str(silence)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    return started, started.stdout.readline().strip()


def test_a_second_living_instance_of_a_name_gets_a_number_on_whatever_machine(address: str, tmp_path: Path) -> None:
    shared = Settings(store=address)
    with heartbeat.register(str(tmp_path / "a"), "writer", shared) as first:
        with heartbeat.register(str(tmp_path / "b"), "writer", shared) as second:
            assert (first.name, second.name) == ("writer", "writer-2")
            assert [record.name for record in process_registry.live_instances(str(tmp_path / "b"))] == ["writer-2"]
        with heartbeat.register(str(tmp_path / "c"), "writer", shared) as third:
            assert third.name == "writer-2", "a name is free again when its instance left"


def test_the_name_of_one_that_was_killed_is_free_after_its_silence(address: str, tmp_path: Path) -> None:
    other, name = on_another_machine(tmp_path / "other", address, silence=1)
    try:
        assert name == "writer"
        with heartbeat.register(str(tmp_path / "here"), "writer", Settings(store=address)) as mine:
            assert mine.name == "writer-2"
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()

    def freed() -> bool:
        with heartbeat.register(str(tmp_path / "here"), "writer", Settings(store=address)) as mine:
            return mine.name == "writer"

    until(freed)


def test_many_that_enter_at_once_all_get_names_of_their_own(address: str, tmp_path: Path) -> None:
    entered: list[process_registry.Instance] = []

    def register(number: int) -> None:
        entered.append(heartbeat.register(str(tmp_path / str(number)), "writer", Settings(store=address)))

    threads = [threading.Thread(target=register, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(one.name for one in entered) == ["writer", *(f"writer-{n}" for n in range(2, 9))]
    for one in entered:
        one.leave()
    assert database(address).ask("SELECT name FROM living") == []


def test_in_files_no_database_is_asked(tmp_path: Path) -> None:
    memory = Settings(store="memory:")
    with (
        heartbeat.register(str(tmp_path), "ada", Settings()) as first,
        heartbeat.register(str(tmp_path), "ada", memory) as other,
    ):
        assert (first.name, other.name) == ("ada", "ada-2")
    with heartbeat.register_unnamed(str(tmp_path), memory) as unnamed:
        assert unnamed.name == ""


def test_yards_of_two_machines_act_under_different_names(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, name = on_another_machine(tmp_path / "other", address, silence=30)
    try:
        monkeypatch.setenv("TASKYARD_STORE", address)
        with taskyard.open(list="crew", agent="writer") as yard:
            assert (name, yard.agent) == ("writer", "writer-2")
            assert yard.mail.known() == ["writer", "writer-2"]
            assert yard.mail.send("writer-2", "writer", "hi").state == "stored"
    finally:
        other.kill()
        other.communicate()


def test_a_forked_child_is_somebody_else(address: str, tmp_path: Path) -> None:
    with heartbeat.register(str(tmp_path), "writer", Settings(store=address)) as first:
        child = os.fork()
        if child == 0:
            first.leave()
            os._exit(0)
        os.waitpid(child, 0)
        with heartbeat.register(str(tmp_path), "writer", Settings(store=address)) as second:
            assert second.name == "writer-2"
