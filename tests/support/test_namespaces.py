"""Machines in network namespaces are what they say, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.namespaces import Machine, machines
from support.repo import TESTS
from support.wait import until

#: Answers every line with itself.
ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 7777))
print("ready", flush=True)
while True:
    peer, _ = server.accept()
    with peer, peer.makefile("rw") as lines:
        for line in lines:
            lines.write(line)
            lines.flush()
"""

#: A machine with something on it that a session of its own protects; waits to be killed.
HELD = """
from support.namespaces import machines
with machines(1) as (a,):
    print(a.popen(["setsid", "sleep", "600"]).pid, flush=True)
    a.popen(["cat", "/dev/zero"], stdout=-3).wait()
"""


def echo_on(machine: Machine) -> None:
    server = machine.popen([sys.executable, "-c", ECHO, machine.address], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stdout.readline() == "ready\n"


def links() -> str:
    return subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0")  # not `nsenter … sleep` any more
    except OSError:
        return False


def test_machines_have_names_and_addresses_and_reach_each_other_alone() -> None:
    before = links()
    with machines(2) as (a, b):
        echo_on(a)

        assert [a.run(["hostname"]).stdout, b.run(["hostname"]).stdout] == ["machine-1\n", "machine-2\n"]
        assert b.run(["ip", "route"]).stdout.strip() == f"10.77.0.0/24 dev eth0 proto kernel scope link src {b.address}"
        with b.entered(), socket.create_connection((a.address, 7777), timeout=5) as peer:
            peer.sendall(b"hello\n")
            assert peer.recv(100) == b"hello\n"
        with pytest.raises(OSError), a.entered():
            socket.create_connection((a.address.replace(".77.", ".78."), 7777), timeout=5)
        assert links() == before, "nothing of it is seen outside"


def test_a_cut_link_loses_packets_silently_until_it_is_mended() -> None:
    with machines(2) as (a, b):
        echo_on(a)
        with b.entered(), socket.create_connection((a.address, 7777), timeout=10) as peer:
            a.cut()
            peer.sendall(b"hello\n")
            peer.settimeout(0.1)
            with pytest.raises(TimeoutError):
                peer.recv(100)
            a.mend()
            peer.settimeout(10)
            assert peer.recv(100) == b"hello\n", "TCP sends again"


def test_a_machine_that_is_switched_off_runs_nothing_any_more_and_can_be_used_again() -> None:
    with machines(2) as (a, b):
        gone, stays = (machine.popen(["setsid", "--wait", "sleep", "600"]) for machine in (a, b))
        echo_on(a)

        a.power_off()

        assert gone.returncode == -signal.SIGKILL and stays.poll() is None
        assert a.run(["hostname"]).stdout == "machine-1\n"


def test_whatever_happens_nothing_runs_on_afterwards() -> None:
    with pytest.raises(ZeroDivisionError), machines(1) as (a,):
        process = a.popen(["sleep", "600"])
        until(lambda: is_running(process.pid), what="the process runs there")
        raise ZeroDivisionError

    assert process.returncode == -signal.SIGKILL


def test_nothing_runs_on_either_when_whoever_made_the_machines_is_killed() -> None:
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen([sys.executable, "-c", HELD], env=env, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        pid = int(maker.stdout.readline())
        until(lambda: is_running(pid), what="the process runs")

        maker.kill()

        until(lambda: not is_running(pid), what="the process was swept away")
