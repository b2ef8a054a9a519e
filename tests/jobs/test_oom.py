"""Out of memory: said only where the kernel's own count of such kills has risen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.cgroups import little_memory
from taskyard.jobs.jobs import Jobs
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.supervisor import kernel

V1 = "sys/fs/cgroup/memory"
V2 = "sys/fs/cgroup"


@pytest.mark.req("B-08")
@pytest.mark.parametrize(
    ("cgroup", "counts", "kills"),
    [
        ("4:memory:/a\n0::/\n", {f"{V1}/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}, 3),
        ("4:cpu,memory:/a\n", {f"{V1}/a/memory.oom_control": "oom_kill 4\n"}, 4),
        ("4:memory:/docker/1\n", {f"{V1}/memory.oom_control": "oom_kill 5\n"}, 5),
        ("0::/user.slice/1\n", {f"{V2}/user.slice/1/memory.events": "oom 9\noom_kill 6\noom_group_kill 8\n"}, 6),
        ("0::/../outside\n", {f"{V2}/memory.events": "oom_kill 7\n"}, 7),
        ("0::/\n", {"proc/vmstat": "nr_free_pages 1\noom_kill 8\n"}, 8),
        ("4:memory:/a\n", {f"{V1}/a/memory.oom_control": "under_oom 1\n", "proc/vmstat": "oom_kill many\n"}, 0),
        ("garbage\0\n::::\n4\n", {}, 0),
        ("", {}, 0),
    ],
)
def test_the_count_is_that_of_our_own_cgroup_or_else_of_the_machine(
    tmp_path: Path, cgroup: str, counts: dict[str, str], kills: int
) -> None:
    for path, text in {"proc/self/cgroup": cgroup, **counts}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="ascii")

    assert kernel.oom_kills(str(tmp_path)) == kills


def test_where_the_kernel_says_nothing_the_count_is_none(tmp_path: Path) -> None:
    assert kernel.oom_kills(str(tmp_path / "nowhere")) == 0


HOG = f"{sys.executable} -c 'bytearray(400_000_000)'"


@pytest.mark.req("B-08")
def test_a_shell_whose_command_ran_out_of_memory_says_so_and_one_that_was_killed_beside_it_does_not(jobs: Jobs) -> None:
    starter = f"""
import json
from taskyard.jobs.kinds.shell import Shell
from taskyard.jobs.jobs import Jobs
jobs = Jobs({jobs.home!r}, alone=True)
ends = [jobs.run(Shell(text), timeout=20).end for text in ({HOG + "; exit $?"!r}, "kill -KILL $$", "exit 137")]
print(json.dumps([[end.cause, end.exit_code, end.signal] for end in ends]))
"""
    with little_memory() as limited:
        done = subprocess.run(
            [*limited, sys.executable, "-c", starter], capture_output=True, text=True, timeout=40, check=True
        )

    assert json.loads(done.stdout) == [["oom", 137, None], ["signal", None, 9], ["exited", 137, None]]


@pytest.mark.req("B-08")
def test_a_command_that_was_refused_memory_or_killed_by_hand_is_not_called_out_of_memory(jobs: Jobs) -> None:
    refused = jobs.run(Shell(f"ulimit -v 300000; {HOG} 2>&1"), timeout=20)
    killed = jobs.run(Shell("kill -KILL $$"), timeout=20)

    assert refused.end is not None and killed.end is not None
    assert (refused.end.cause, refused.end.exit_code) == ("exited", 1)
    assert "MemoryError" in Path(refused.output_file).read_text(encoding="utf-8")
    assert (killed.end.cause, killed.end.signal) == ("signal", 9)
