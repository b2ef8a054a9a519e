"""`taskyard team remove --force`: it always works."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import taskyard
from support.cli import start
from support.cli import taskyard as command_line
from support.crews import members, nothing_is_left, plan
from support.tmux import said, tmux_server
from support.wait import until

__all__ = ["tmux_server"]  # a fixture


def at_work(tmp_path: Path, *words: str) -> subprocess.Popen[str]:
    """A team of two with a task each in hand."""
    text = "name: shop\ntasks: [One, Two]\n"
    child = start("team", "up", "--plan", plan(tmp_path, text), "--agents", "2", "--command", "sleep 600", *words)
    with taskyard.open(list="shop", is_person=True) as yard:
        until(lambda: sum(task.owner is not None for task in yard.tasks.list()) == 2, timeout=40)
    return child


def freeze(pid: int) -> None:
    """Stop a process and everything below it."""
    below = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout
    os.kill(pid, signal.SIGSTOP)
    for child in below.split():
        freeze(int(child))


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])


@pytest.mark.req("M-01", "L-10", "B-09")
def test_living_members_and_their_lead_are_stopped_with_proof(tmp_path: Path) -> None:
    child = at_work(tmp_path)

    refused = command_line("team", "remove", "shop", "--json")
    removed = command_line("team", "remove", "shop", "--force", "--json").data

    assert refused.error["code"] == "team_has_living_members"
    assert (sorted(removed["stopped"]), removed["partial"]) == (["ada", "ben"], [])
    out, err = child.communicate(timeout=30)
    assert (child.returncode in (1, 128 + signal.SIGTERM), "Traceback" in err) == (True, False), (out, err)
    with taskyard.open(list="shop", is_person=True) as yard:
        assert [(task.status.value, task.owner) for task in yard.tasks.list()] == [("pending", None)] * 2
    nothing_is_left("shop")


@pytest.mark.req("M-01", "L-10", "B-09")
@pytest.mark.parametrize("place", ["tmux", "inside"])
def test_members_and_a_lead_that_are_stuck_are_ended_all_the_same(
    tmux_server: Path, tmp_path: Path, place: str
) -> None:
    child = at_work(tmp_path, "--in", place)
    windows = [int(pid) for pid in said("list-panes", "-a", "-F", "#{pane_pid}").split()]
    for pid in [child.pid, *windows]:
        os.kill(pid, signal.SIGSTOP)
    for job in command_line("ps", "--json").data:
        if job["pid"]:
            freeze(parent(job["pid"]))  # its keeper too

    removed = command_line("team", "remove", "shop", "--force", "--json").data

    assert (sorted(removed["stopped"]), removed["partial"]) == (["ada", "ben"], [])
    child.communicate(timeout=30)
    until(lambda: said("list-windows", "-a") == "")
    nothing_is_left("shop")


@pytest.mark.req("M-01", "M-03", "L-10")
def test_members_whose_processes_were_killed_are_dead_at_once_and_no_obstacle(tmp_path: Path) -> None:
    command_line("team", "create", "shop", "--lead", "boss")
    command_line("task", "add", "One", "--list", "shop")
    child = start("team", "join", "shop", "ada", "--command", "sleep 600")
    with taskyard.open(list="shop", is_person=True) as yard:
        until(lambda: yard.tasks.get("1").owner == "ada", timeout=30)
        os.kill(int(str(members()[0]["pid"])), signal.SIGKILL)
        until(lambda: members() == [])
    child.communicate(timeout=30)

    assert command_line("team", "remove", "shop", "--force").code == 0
    nothing_is_left("shop")


@pytest.mark.req("M-01", "L-10")
def test_a_damaged_record_does_not_hide_its_members(tmp_path: Path) -> None:
    child = at_work(tmp_path)
    record = Path(os.environ["TASKYARD_HOME"], "teams", "shop.json")
    record.write_text("{", encoding="ascii")

    removed = command_line("team", "remove", "shop", "--force", "--json").data

    assert sorted(removed["stopped"]) == ["ada", "ben"]
    child.communicate(timeout=30)
    nothing_is_left("shop")
