"""
Real processes that race each other, and what each of them did.

    def work(racer: Racer) -> None:
        with taskyard.open(…, agent=racer.name) as yard:
            racer.start()                                    # all wait here until all are ready
            racer.do("claim", ("1", racer.name), yard.tasks.claim, "1")

    history = race(64, work, tmp_path)

Every racer is a forked child with a journal of its own: one line per operation, times by
CLOCK_MONOTONIC, so that the journals of all of them make one history (`support.linearizable`). A racer
that was killed leaves its last operation there as one that never returned.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from support.linearizable import Event, now
from taskyard.errors import TaskyardError
from taskyard.tasks.model import Task

#: No race takes longer; one that does hangs.
LONGEST = 50.0

#: Nobody waits for a round of a race longer.
ROUND = 40.0


class Racer:
    """One process of a race, as its own code sees it."""

    def __init__(self, number: int, journal: Path, ready: int, gate: int) -> None:
        self.number = number
        self.name = f"racer-{number}"
        self._journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._ready = ready
        self._gate = gate
        self._serial = 0

    def start(self) -> None:
        """Say that we are ready, and wait for all the others."""
        os.write(self._ready, b"r")
        os.read(self._gate, 1)  # ends when the last writer closes it

    def do(self, op: str, args: tuple[Hashable, ...], act: Callable[..., Any], *given: Any, **named: Any) -> Hashable:
        """Run `act` and keep its answer: what it returns ("ok" for a task), or the code of its refusal."""
        self._serial += 1
        t0 = now()
        self._note(op, args, None, t0, None)
        try:
            result: Hashable = act(*given, **named)
            if isinstance(result, Task):
                result = "ok"
        except TaskyardError as error:
            result = error.code
        self._note(op, args, result, t0, now())
        return result

    def tell(self, op: str, args: tuple[Hashable, ...], result: Hashable) -> None:
        """Keep a fact that took no time."""
        self._serial += 1
        self._note(op, args, result, now(), now())

    def _note(self, op: str, args: tuple[Hashable, ...], result: Hashable, t0: int, t1: int | None) -> None:
        line = json.dumps([self._serial, op, args, result, t0, t1]) + "\n"
        os.write(self._journal, line.encode())


class Race:
    """Racers on their way."""

    def __init__(self, count: int, work: Callable[[Racer], object], folder: Path, *, first: int = 0) -> None:
        """Fork them; they wait in `Racer.start`. `first`: the number of the first one."""
        folder.mkdir(exist_ok=True)
        self.numbers = range(first, first + count)
        self._folder = folder
        self._hear, ready = os.pipe()
        gate, self._open = os.pipe()
        self.pids = {number: self._fork(number, work, ready, gate) for number in self.numbers}
        os.close(ready)
        os.close(gate)

    def _fork(self, number: int, work: Callable[[Racer], object], ready: int, gate: int) -> int:
        pid = fork()
        if pid:
            return pid
        code = 1
        try:
            os.close(self._open)
            os.close(self._hear)
            racer = Racer(number, self._journal(number), ready, gate)
            work(racer)
            code = 0
        except BaseException:
            self._fault(number).write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(code)

    def go(self, *, timeout: float = LONGEST) -> None:
        """Wait until all are ready, then let them run at once."""
        deadline = time.monotonic() + timeout
        heard = 0
        while heard < len(self.pids):
            readable, _, _ = select.select([self._hear], [], [], max(deadline - time.monotonic(), 0))
            data = os.read(self._hear, 4096) if readable else b""
            if not data:
                self.end()
                raise AssertionError(f"{len(self.pids) - heard} racers never were ready\n{self.faults()}")
            heard += len(data)
        os.close(self._hear)
        os.close(self._open)

    def wait(self, *, timeout: float = LONGEST, killed: Iterable[int] = ()) -> list[Event]:
        """What they did, when all have ended; the test fails if one failed or takes too long."""
        deadline = time.monotonic() + timeout
        statuses = {number: _wait(pid, deadline) for number, pid in self.pids.items()}
        late = [number for number, status in statuses.items() if status is None]
        self.end()
        assert not late, f"racers {late} did not end within {timeout} s\n{self.faults()}"
        expected = dict.fromkeys(killed, -signal.SIGKILL)
        failed = {number: status for number, status in statuses.items() if status not in (0, expected.get(number))}
        assert not failed, f"racers ended with {failed}\n{self.faults()}"
        return self.history()

    def has_ended(self) -> bool:
        """Whether one of them has ended by itself."""
        return any(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for pid in self.pids.values())

    def end(self) -> None:
        """Kill those that still run."""
        for pid in self.pids.values():
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass

    def history(self) -> list[Event]:
        """All journals as one."""
        return [event for number in self.numbers for event in journal_of(self._journal(number), f"racer-{number}")]

    def faults(self) -> str:
        """What went wrong in racers that failed."""
        found = (self._fault(number) for number in self.numbers)
        return "\n".join(path.read_text(encoding="utf-8") for path in found if path.exists())

    def _journal(self, number: int) -> Path:
        return self._folder / f"{number}.jsonl"

    def _fault(self, number: int) -> Path:
        return self._folder / f"{number}.fault"


class Rounds:
    """A gate that all of some processes pass together, again and again; made before they are forked."""

    def __init__(self, processes: int) -> None:
        self._barrier = multiprocessing.get_context("fork").Barrier(processes)

    def together(self) -> None:
        self._barrier.wait(ROUND)


def race(count: int, work: Callable[[Racer], object], folder: Path, *, timeout: float = LONGEST) -> list[Event]:
    """Let `count` processes do `work` at once; everything they did."""
    racers = Race(count, work, folder)
    racers.go(timeout=timeout)
    return racers.wait(timeout=timeout)


def fork() -> int:
    """A child of this process. Threads of the test runner stay behind; the child uses nothing of theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def answered(history: Sequence[Event], op: str, *results: Hashable) -> list[Event]:
    """The events of one operation, or those of them with one of these answers."""
    return [event for event in history if event.op == op and (not results or event.result in results)]


def journal_of(path: Path, process: str) -> list[Event]:
    """One racer's events; of an operation that never returned, that it began."""
    found: dict[int, Event] = {}
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if line.endswith(b"\n"):
            serial, op, args, result, t0, t1 = json.loads(line)
            found[serial] = Event(process, op, tuple(map(_hashable, args)), _hashable(result), t0, t1)
    return list(found.values())


def _hashable(value: Any) -> Hashable:
    found: Hashable = tuple(map(_hashable, value)) if isinstance(value, list) else value
    return found


def _wait(pid: int, deadline: float) -> int | None:
    """The exit code of a child, -signal if killed; None if it still runs at the deadline."""
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            return None
        time.sleep(0.002)
