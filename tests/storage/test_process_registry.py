"""Living instances: unique names, death by the kernel's word, nothing kept alive by a fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from taskyard.core.system import process_alive, process_start, this_host
from taskyard.errors import BadName, StorageError
from taskyard.storage import process_registry
from taskyard.storage.locks import folder_identity

if TYPE_CHECKING:
    from pathlib import Path

ENTER = """
import sys
from taskyard.storage import process_registry as instances
me = instances.register(sys.argv[1], sys.argv[2])
print(me.id, me.name, flush=True)
sys.stdin.read()
"""


def start(home: Path, agent: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ENTER, str(home), agent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=10)


@pytest.mark.req("L-09")
def test_a_second_living_instance_of_a_name_gets_a_number(tmp_path: Path) -> None:
    entered = [process_registry.register(str(tmp_path), "writer") for _ in range(3)]
    assert [me.name for me in entered] == ["writer", "writer-2", "writer-3"]
    for me in entered:
        me.leave()
    with process_registry.register(str(tmp_path), "writer") as again:
        assert again.name == "writer"


@pytest.mark.req("L-09")
def test_names_that_share_a_mail_folder_count_as_one(tmp_path: Path) -> None:
    with process_registry.register(str(tmp_path), "a-b"), process_registry.register(str(tmp_path), "a b") as second:
        assert second.name == "a b-2"


@pytest.mark.req("L-09")
def test_a_name_at_the_limit_still_gets_a_number(tmp_path: Path) -> None:
    with (
        process_registry.register(str(tmp_path), "x" * 200),
        process_registry.register(str(tmp_path), "x" * 200) as second,
    ):
        assert second.name == "x" * 198 + "-2"


@pytest.mark.req("L-09")
def test_racing_processes_never_get_the_same_name(tmp_path: Path) -> None:
    processes = [start(tmp_path, "writer") for _ in range(6)]
    try:
        names = sorted(said(process)[1] for process in processes)
        assert names == ["writer", "writer-2", "writer-3", "writer-4", "writer-5", "writer-6"]
        assert sorted(record.name for record in process_registry.live_instances(str(tmp_path))) == names
    finally:
        for process in processes:
            end(process)


@pytest.mark.req("M-03", "L-10")
def test_a_killed_instance_is_dead_at_once_and_its_file_is_swept(tmp_path: Path) -> None:
    home = str(tmp_path)
    process = start(tmp_path, "writer")
    path = process_registry.lock_path(home, said(process)[0])
    place = folder_identity(process_registry.registry_dir(home))
    assert process_registry.is_holder_alive(path, this_host(), place) is True

    end(process)

    assert process_registry.is_holder_alive(path, this_host(), place) is False
    assert process_registry.live_instances(home) == []
    assert not os.path.exists(path)


@pytest.mark.req("M-03")
def test_a_forked_child_neither_keeps_an_instance_alive_nor_ends_it(tmp_path: Path) -> None:
    me = process_registry.register(str(tmp_path), "writer")
    child = os.fork()
    if child == 0:
        me.leave()
        signal.pause()
        os._exit(0)
    try:
        assert me.is_ours
        assert process_registry.is_holder_alive(me.lock_path, me.host, me.record.place) is True
        path = me.lock_path
        me.leave()
        assert process_registry.is_holder_alive(path, me.host, me.record.place) is False
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.req("L-09")
def test_liveness_across_machines_and_boots(tmp_path: Path) -> None:
    me = process_registry.register(str(tmp_path), "writer")
    machine, _, boot = me.host.partition("/")
    place = me.record.place
    assert process_registry.is_holder_alive(me.lock_path, f"elsewhere/{boot}", place) is None
    assert process_registry.is_holder_alive(me.lock_path, f"{machine}/another-boot", place) is False
    assert (
        process_registry.is_holder_alive(
            me.lock_path, f"{machine}/another-boot", place.replace(place[:8], "another0", 1)
        )
        is None
    )
    assert process_registry.is_holder_alive(str(tmp_path / "instances" / "nobody.lock"), me.host, place) is False
    assert process_registry.is_holder_alive(str(tmp_path / "instances" / "nobody.lock"), me.host, "") is None
    me.leave()


@pytest.mark.req("L-09")
def test_a_holder_is_not_dead_because_its_path_leads_to_another_folder_here(tmp_path: Path) -> None:
    """As in a second container: the same path, the same machine, another state folder."""
    with process_registry.register(str(tmp_path), "writer") as me:
        instances_folder = tmp_path / "instances"
        instances_folder.rename(tmp_path / "elsewhere")
        instances_folder.mkdir()
        moved = str(tmp_path / "elsewhere" / os.path.basename(me.lock_path))
        os.utime(moved)  # still there, and still held, where we cannot see it

        fresh = (
            "import sys; from taskyard.storage.process_registry import is_holder_alive;"
            " print(is_holder_alive(*sys.argv[1:]))"
        )
        asked = [sys.executable, "-c", fresh, me.lock_path, me.host, me.record.place]
        assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() == "None"


@pytest.mark.req("L-09")
def test_asking_about_liveness_leaves_our_own_lock_in_place(tmp_path: Path) -> None:
    me = process_registry.register(str(tmp_path), "writer")
    for _ in range(3):
        assert process_registry.is_holder_alive(me.lock_path, me.host, me.record.place) is True
        assert [record.id for record in process_registry.live_instances(str(tmp_path))] == [me.id]
    me.leave()


@pytest.mark.req("L-09")
@pytest.mark.serial
def test_asking_about_liveness_is_cheap(tmp_path: Path) -> None:
    with process_registry.register(str(tmp_path), "writer") as me:
        rounds: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            for _ in range(100):
                process_registry.is_holder_alive(me.lock_path, me.host, me.record.place)
            rounds.append((time.perf_counter() - began) / 100)
    assert min(rounds) < 20e-6


@pytest.mark.req("L-09")
def test_threads_entering_at_once_get_different_names(tmp_path: Path) -> None:
    entered: list[process_registry.Instance] = []
    threads = [
        threading.Thread(target=lambda: entered.append(process_registry.register(str(tmp_path), "writer")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len({me.name for me in entered}) == 8
    for me in entered:
        me.leave()


@pytest.mark.req("L-09")
def test_files_are_private_and_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    target = tmp_path / "target"
    target.mkdir()
    with process_registry.register(str(tmp_path / "home"), "writer") as me:
        assert os.stat(me.lock_path).st_mode & 0o777 == 0o600
        assert os.stat(os.path.dirname(me.lock_path)).st_mode & 0o777 == 0o700
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "instances").symlink_to(target)
    with pytest.raises(StorageError):
        process_registry.register(str(tmp_path / "trap"), "writer")
    assert list(target.iterdir()) == []


@pytest.mark.req("L-09")
@pytest.mark.parametrize("name", ["", " ", "a\0b", "x" * 201, "\ud800"])
def test_a_name_that_cannot_be_one_is_refused_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadName):
        process_registry.register(str(tmp_path / "home"), name)
    assert not (tmp_path / "home").exists()


@pytest.mark.req("M-03")
def test_a_pid_counts_only_with_its_start_time_and_a_zombie_is_dead() -> None:
    start_time = process_start()
    assert process_alive(os.getpid(), start_time)
    assert not process_alive(os.getpid(), start_time + 1)
    child = os.fork()
    if child == 0:
        os._exit(0)
    child_start = process_start(child)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert child_start > 0
    assert not process_alive(child, child_start)
    os.waitpid(child, 0)
    assert not process_alive(child, child_start)


@pytest.mark.req("L-09")
def test_rubbish_in_the_folder_is_swept_and_harms_nobody(tmp_path: Path) -> None:
    me = process_registry.register(str(tmp_path), "writer")
    (tmp_path / "instances" / "zzz.lock").write_bytes(b"\xff{")
    assert [record.name for record in process_registry.live_instances(str(tmp_path))] == ["writer"]
    assert sorted(os.listdir(tmp_path / "instances")) == sorted([".names", ".place", f"{me.id}.lock"])
    me.leave()
