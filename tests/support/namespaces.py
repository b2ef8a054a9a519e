"""
Machines of a test's own: each a network namespace with a name and an address, joined by a switch that leads nowhere.

    with machines(3) as (a, b, c):
        server = a.popen(["postgres", …])         # runs on the first; only these three can reach it
        b.run(["taskyard", …], check=True)
        b.cut()                                   # what b sends is lost from now on, silently
        b.mend()
        c.power_off()                             # everything that runs on c is killed at once
        with b.entered():                         # this thread is on b: sockets it makes are b's
            …

Files and process ids are shared; network and host name are not. No interface, address or route is made outside, so any
number of tests may do this side by side. When the block is left, or whoever entered it dies in whatever way, everything
that still runs on a machine is killed, and with its last process a namespace is gone. It takes root; where that is not
given the test is skipped.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from support.wait import until

#: The first three parts of every address. Seen only inside the namespaces.
_NETWORK = "10.77.0"

_CLONE_NEWNET = 0x40000000

#: Says that it is there, and stays until its input ends: with whoever holds the other end.
_HOLD = 'hostname "$0" && ip link set lo up && echo ready && exec cat'

#: Kills whatever is in the namespaces it is told, as soon as its input ends: also where nobody is left to ask for it.
_SWEEP = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))!r})
sys.stdin.read()
from support.namespaces import sweep
sweep(sys.argv[1:])
"""


class Machine:
    """One of them."""

    def __init__(self, name: str, address: str, holder: int, switch: int) -> None:
        self.name = name
        self.address = address
        self._holder = holder
        self._switch = switch
        self._started: list[subprocess.Popen[Any]] = []

    def popen(self, command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen[Any]:
        """Start a process there, as `subprocess.Popen` does; its pid is the command's own."""
        process: subprocess.Popen[Any] = subprocess.Popen([*_entering(self._holder), *command], **options)
        self._started.append(process)
        return process

    def run(
        self, command: Sequence[str | os.PathLike[str]], *, timeout: float = 30, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a command there to its end, as `subprocess.run` does, and capture what it prints."""
        entered = [*_entering(self._holder), *command]
        return subprocess.run(entered, timeout=timeout, capture_output=True, text=True, **options)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This thread is on that machine: the sockets, threads and processes it makes are."""
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            inside = os.open(f"/proc/{self._holder}/ns/net", os.O_RDONLY)
            try:
                _set_namespace(inside)
            finally:
                os.close(inside)
            try:
                yield
            finally:
                _set_namespace(outside)
        finally:
            os.close(outside)

    def cut(self) -> None:
        """Lose every packet to and from it; neither side is told, as when a switch between them fails."""
        self._plug("nomaster")

    def mend(self) -> None:
        """Let packets through again."""
        self._plug("master", "yard")

    def power_off(self) -> None:
        """Kill everything that runs on it, at once. It can be used again, as a machine that was switched on."""
        sweep([_namespace(self._holder)], spare=self._holder)
        for process in self._started:
            process.wait()

    def forget(self) -> None:
        """Let go of what is left of the processes that were started there."""
        for process in self._started:
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
                with suppress(OSError):  # what was never sent does not get there any more
                    pipe.close()

    def _plug(self, *where: str) -> None:
        _do([*_entering(self._switch), "ip", "link", "set", self.name, *where])


@contextmanager
def machines(count: int) -> Iterator[tuple[Machine, ...]]:
    """So many machines that reach each other and nothing else; a skipped test where it is not ours to make them."""
    if os.geteuid() != 0:
        pytest.skip("machines of their own network are root's to make")
    with ExitStack() as stack:
        switch = stack.enter_context(_held("switch"))
        _do([*_entering(switch), "ip", "link", "add", "yard", "type", "bridge"])
        _do([*_entering(switch), "ip", "link", "set", "yard", "up"])
        made = [_joined(stack, f"machine-{n}", f"{_NETWORK}.{n}", switch) for n in range(1, count + 1)]
        yield tuple(made)


def sweep(namespaces: Sequence[str], *, spare: int = 0) -> None:
    """Kill every process in these network namespaces but one, and us, and return when none of them runs."""

    def left() -> list[int]:
        return [pid for pid in _pids() if pid not in (spare, os.getpid()) and _namespace(pid) in namespaces]

    def kill() -> bool:
        found = left()
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not found

    until(kill, what="nothing runs on the machine")


def _joined(stack: ExitStack, name: str, address: str, switch: int) -> Machine:
    holder = stack.enter_context(_held(name))
    inside, outside = [*_entering(holder), "ip"], [*_entering(switch), "ip"]
    _do([*inside, "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", str(switch)])
    _do([*inside, "address", "add", f"{address}/24", "dev", "eth0"])
    _do([*inside, "link", "set", "eth0", "up"])
    _do([*outside, "link", "set", name, "master", "yard", "up"])
    machine = Machine(name, address, holder, switch)
    stack.callback(machine.forget)  # after nothing runs any more
    stack.enter_context(_swept(_namespace(holder)))
    return machine


@contextmanager
def _held(name: str) -> Iterator[int]:
    """A namespace, held by a process that ends with us; its pid."""
    command = ["unshare", "--net", "--uts", "--", "sh", "-c", _HOLD, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stderr is not None and holder.stdin is not None
        if holder.stdout.readline() != b"ready\n":
            pytest.skip(f"this machine makes no network namespace for us: {holder.stderr.read().decode().strip()}")
        try:
            yield holder.pid
        finally:
            holder.kill()


@contextmanager
def _swept(namespace: str) -> Iterator[None]:
    """At the end, ours or of the whole process, nothing runs in a namespace any more."""
    command = [sys.executable, "-I", "-c", _SWEEP, namespace]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as sweeper:
        assert sweeper.stdin is not None
        try:
            yield
        finally:
            sweep([namespace])
            sweeper.kill()


def _entering(holder: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{holder}/ns/net", f"--uts=/proc/{holder}/ns/uts", "--"]


def _namespace(pid: int) -> str:
    """Which network namespace a process is in; "" if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _set_namespace(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):  # os.setns comes with Python 3.12
        raise OSError(ctypes.get_errno(), "this thread cannot go there")


def _do(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
