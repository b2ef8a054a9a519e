"""
The rows about screens: how soon a change on disk is shown, and what fifty browsers cost beyond one.

A list of 1,000 tasks and 200 jobs. Another process changes a task, as an editor would, and says when it did;
all clocks are CLOCK_MONOTONIC, which processes share.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.folders import LIST, list_folder, scratch
from bench.processes import Failed, environment
from bench.rounds import Sample
from bench.task_list import Ground
from taskyard.core import files
from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.model import End, end_to_json, new_job_id
from taskyard.ui.live import LiveFeed
from taskyard.ui.snapshot import Snapshot
from taskyard.yard import open as open_yard

TASKS, JOBS, BROWSERS = 1_000, 200, 50

#: Seconds somebody gathers a burst who sleeps after the first sign of it.
_DEBOUNCE = 0.05

#: Any change is shown within so many seconds, or the row fails.
_LONGEST = 20.0

#: Writes the subject it is told into task 1, whole, and says when.
_WRITER = """
import json, os, sys, time
path = sys.argv[1]
task = json.load(open(path))
for line in sys.stdin:
    task["subject"] = line.strip()
    with open(path + ".new", "w") as file:
        json.dump(task, file, indent=2)
    began = time.monotonic()
    os.rename(path + ".new", path)
    print(began, flush=True)
"""


class _Debounced(LiveFeed):
    """The same, but for a watcher that sleeps after the first sign of a change."""

    def _run(self) -> None:
        while not self._is_closed:
            if not self._has_news():
                self._bell.wait(self._patience())
                self._bell.clear()
            time.sleep(_DEBOUNCE)
            with self._lock:
                if not self._is_closed:
                    self._round(is_poll=False)


def update_ours(ground: Ground) -> Sample:
    """From a change to the snapshot that shows it, in ms: the median."""
    return _updates(ground, LiveFeed)


def update_debounced(ground: Ground) -> Sample:
    """The same with a debounce of 50 ms."""
    return _updates(ground, _Debounced)


def _updates(ground: Ground, kind: type[LiveFeed]) -> Sample:
    with _scene(ground) as folder, _writer(folder) as write, _looking(folder, kind) as live:
        seen: dict[str, float] = {}
        news = threading.Condition()

        def shown(now: Snapshot) -> None:
            at = time.monotonic()
            with news:
                seen.setdefault(next(task.subject for task in now.tasks if task.id == "1"), at)
                news.notify_all()

        view = live.watch()
        view.listen(shown)
        took = []
        for number in range(ground.size(30, 3)):
            time.sleep(0.1 + 0.0137 * (number % 7))  # not in step with anybody's clock
            word = f"Subject {number}"
            began = write(word)
            with news:
                if not news.wait_for(lambda word=word: word in seen, _LONGEST):  # type: ignore[misc]
                    raise Failed(f"{word} was not shown")
            took.append(seen[word] - began)
    return Sample(statistics.median(took) * 1000)


@contextmanager
def _looking(folder: str, kind: type[LiveFeed]) -> Iterator[LiveFeed]:
    with open_yard(tasks_dir=f"{folder}/tasks", list=LIST, foreign_writers=True) as yard, kind(yard) as live:
        yield live


def fanout_ours(ground: Ground) -> Sample:
    """From a change until the last of fifty browsers has it, in ms: the 95th percentile."""
    return _fanout(ground, ground.size(BROWSERS, 5))


def fanout_one(ground: Ground) -> Sample:
    """The same with one browser."""
    return _fanout(ground, 1)


def _fanout(ground: Ground, browsers: int) -> Sample:
    with _scene(ground) as folder, _writer(folder) as write, _served(folder) as (address, token):
        streams = [_stream(address, token) for _ in range(browsers)]
        try:
            took = []
            with selectors.DefaultSelector() as selector:
                for stream in streams:
                    selector.register(stream, selectors.EVENT_READ)
                _heard(selector, streams, b'"Task 1"')
                for number in range(ground.size(40, 3)):
                    time.sleep(0.05 + 0.0137 * (number % 7))
                    word = f"Subject {number}."
                    began = write(word)
                    took.append(_heard(selector, streams, word.encode()) - began)
        finally:
            for stream in streams:
                stream.close()
    return Sample(
        statistics.quantiles(took, n=20, method="inclusive")[-1] * 1000, {"median_ms": statistics.median(took) * 1000}
    )


def _heard(selector: selectors.BaseSelector, streams: list[socket.socket], word: bytes) -> float:
    """When the last of them had heard a word."""
    waiting = dict.fromkeys(streams, b"")
    end = time.monotonic() + _LONGEST
    at = 0.0
    while waiting:
        if time.monotonic() > end:
            raise Failed(f"{len(waiting)} did not hear {word!r}")
        for key, _ in selector.select(1.0):
            stream = key.fileobj
            assert isinstance(stream, socket.socket)
            data = stream.recv(1 << 20)
            if not data:
                raise Failed("a stream ended")
            if stream in waiting:
                waiting[stream] = waiting[stream][-100:] + data
                if word in waiting[stream]:
                    at = time.monotonic()
                    del waiting[stream]
    return at


def _stream(address: str, token: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    made = socket.create_connection((host, int(port)), _LONGEST)
    made.sendall(f"GET /api/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return made


@contextmanager
def _served(folder: str) -> Iterator[tuple[str, str]]:
    """`taskyard web` on the list; where it is, and its token."""
    env = {**environment(folder), "TASKYARD_TASKS_DIR": f"{folder}/tasks"}
    words = [sys.executable, "-m", "taskyard", "web", "--port", "0", "--list", LIST, "--json"]
    server = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = str(json.loads(server.stdout.readline())["data"]["url"])
        address, _, token = url.removeprefix("http://").partition("/#token=")
        yield address, token
    finally:
        server.terminate()
        server.communicate(timeout=_LONGEST)


@contextmanager
def _writer(folder: str) -> Iterator[Callable[[str], float]]:
    """Another process that changes a task; what is given gets the subject, and answers when it was written."""
    path = f"{folder}/tasks/{LIST}/1.json"
    words = [sys.executable, "-c", _WRITER, path]
    writer = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stdin, stdout = writer.stdin, writer.stdout
    assert stdin is not None
    assert stdout is not None

    def write(subject: str) -> float:
        stdin.write(f"{subject}\n")
        stdin.flush()
        return float(stdout.readline())

    try:
        yield write
    finally:
        writer.communicate(timeout=_LONGEST)


@contextmanager
def _scene(ground: Ground) -> Iterator[str]:
    """A home with a list and jobs that are over; this process sees it as its own."""
    before = os.environ.get("TASKYARD_HOME")
    with scratch(ground.folder) as folder:
        os.mkdir(f"{folder}/tasks")
        list_folder(f"{folder}/tasks", tasks=ground.size(TASKS, 50))
        home = environment(folder)["TASKYARD_HOME"]
        for _ in range(ground.size(JOBS, 10)):
            _ended_job(home)
        os.environ["TASKYARD_HOME"] = home
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["TASKYARD_HOME"]
            else:
                os.environ["TASKYARD_HOME"] = before


def _ended_job(home: str) -> None:
    folder = JobPaths(home, new_job_id("b"))
    files.make_private_folder(folder.path)
    record = {"id": folder.id, "type": "local_bash", "description": "npm test", "command": "npm test"}
    files.create(folder.record, json.dumps({**record, "startTime": 1, "isBackgrounded": True}).encode())
    files.create(folder.output, b"42 passed\n")
    files.create(
        folder.end, json.dumps(end_to_json(End("exited", 0, proof="proved", at=int(time.time() * 1000)))).encode()
    )
