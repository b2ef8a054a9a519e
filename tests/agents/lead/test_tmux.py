"""Windows of a real tmux, on a socket of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.tmux import said, tmux_server
from support.wait import until
from taskyard.agents.lead import members
from taskyard.agents.lead.members import end_process
from taskyard.core.system import process_alive
from taskyard.errors import UsageError

__all__ = ["tmux_server"]  # a fixture

WAITS = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.mark.req("M-01")
def test_a_window_runs_a_program_directly_and_closes_with_it(tmux_server: Path) -> None:
    one = members.open_window("crew", "ada", WAITS)
    two = members.open_window("crew", "ben", WAITS)

    assert (one.session, two.session) == ("taskyard-crew", "taskyard-crew")
    assert process_alive(one.pid, one.start)
    assert Path(f"/proc/{one.pid}/cmdline").read_bytes().split(b"\0")[:-1] == [os.fsencode(word) for word in WAITS]
    assert said("list-windows", "-t", "taskyard-crew", "-F", "#{window_name}").split() == ["ada", "ben"]

    assert end_process(one.pid, one.start)
    until(lambda: said("list-windows", "-t", "taskyard-crew", "-F", "#{window_name}") == "ben")
    assert end_process(two.pid, two.start)


@pytest.mark.req("M-01")
def test_inside_tmux_a_window_is_added_and_the_layout_stays(tmux_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said("new-session", "-d", "-s", "mine", *WAITS)
    said("split-window", "-d", "-t", "mine", *WAITS)
    layout = said("list-windows", "-t", "mine", "-F", "#{window_layout} #{window_active}")
    socket, server_pid = said("display-message", "-p", "-t", "mine", "#{socket_path} #{pid}").split()
    monkeypatch.setenv("TMUX", f"{socket},{server_pid},0")
    monkeypatch.setenv("TMUX_PANE", said("list-panes", "-t", "mine", "-F", "#{pane_id}").split()[0])

    window = members.open_window("crew", "ada", WAITS)

    assert window.session == "mine"
    assert said("list-windows", "-t", "mine", "-F", "#{window_layout} #{window_active}").splitlines()[0] == layout
    assert said("list-windows", "-t", "mine", "-F", "#{window_name}").splitlines()[1] == "ada"


@pytest.mark.req("M-01")
@pytest.mark.parametrize("name", ["#(touch made)", "a;b;", "x:1.0", "C-c", "$(touch made)", "-d", "a b\u2028c"])
def test_names_from_outside_are_never_interpreted(
    tmux_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    window = members.open_window(name, name, WAITS)
    again = members.open_window(name, name, WAITS)

    assert process_alive(window.pid, window.start)
    assert process_alive(again.pid, again.start)
    assert set(window.session) <= set("abcdefghijklmnopqrstuvwxyzC0123456789-")
    assert not (tmp_path / "made").exists()


def test_words_that_tmux_would_cut_are_refused(tmux_server: Path) -> None:
    with pytest.raises(UsageError, match="semicolon"):
        members.open_window("crew", "ada", [*WAITS, "kill-server;"])
    assert said("list-sessions") == ""


def test_without_tmux_it_is_said_what_else_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="--in process"):
        members.open_window("crew", "ada", WAITS)
