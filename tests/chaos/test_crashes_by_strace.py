"""The same deaths once more, by the kernel's own count: strace kills a real process at its nth call of each kind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import taskyard
from support.claude_rules import unseen
from support.crash_scene import OPERATIONS, Scene
from support.list_truth import faults
from support.repo import TESTS
from support.strace import strace_works

#: Calls that change something, and that an interpreter makes few of while it starts.
CALLS = "write,pwrite64,rename,renameat2,unlink,mkdir,rmdir,ftruncate,fcntl"

#: An operation has fewer than this of each.
MOST = 200

_WORK = """
import sys
sys.path.insert(0, sys.argv[1])
from support.crash_scene import OPERATIONS, Scene
from pathlib import Path
scene = Scene(Path("/"), foreign=sys.argv[4] == "1")
scene.folder = sys.argv[2]
OPERATIONS[sys.argv[3]].act(scene.open().tasks)
"""


@pytest.mark.req("L-11", "L-05", "L-03")
@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("foreign", [False, True], ids=["alone", "beside others"])
def test_a_process_killed_at_any_call_that_changes_something_leaves_old_or_new(
    memory: Path, name: str, foreign: bool
) -> None:
    if not strace_works():
        pytest.skip("strace cannot trace here")
    scene, deaths = Scene(memory, foreign=foreign), 0
    began = time.monotonic()
    for call in CALLS.split(","):
        for number in range(1, MOST):
            scene.build()
            OPERATIONS[name].before(scene.folder)
            if not _killed_at(call, number, scene.folder, name, foreign):
                break
            deaths += 1
            where = f"{name}, killed at {call} number {number}"
            assert unseen(scene.folder) == [], where
            with scene.open("next") as yard:
                for task in yard.tasks.list():
                    _touch(yard, task.id)
                yard.tasks.create("Last")
            assert faults(scene.folder) == [], where
    assert deaths > len(CALLS.split(","))
    print(f"{name}: {deaths} deaths by strace in {time.monotonic() - began:.1f} s")


def _killed_at(call: str, number: int, folder: str, name: str, foreign: bool) -> bool:
    inject = f"inject={call}:signal=KILL:when={number}"
    work = [sys.executable, "-c", _WORK, str(TESTS), folder, name, "1" if foreign else "0"]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject, *work],
        capture_output=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL, 128 + signal.SIGKILL), done.stderr.decode()
    return done.returncode != 0


def _touch(yard: taskyard.Yard, task_id: str) -> None:
    try:
        yard.tasks.update(task_id, metadata={"touched": yard.agent})
    except taskyard.TaskNotFound:
        pass  # a half-done removal was completed by the touch before
