"""
`taskyard mcp` in a process of its own, without the second that its libraries take to load.

A process that has loaded them, and done nothing else, forks each server that a test asks for. The server is a child of
the one who asked, with the streams, the folder and the variables it was given, as if it had been started; from there on
it is `python -m taskyard mcp`. A command that says anything else of how Python starts is started as ever.
"""

from __future__ import annotations

import _posixsubprocess
import atexit
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from support.repo import SOURCE

#: What is started from here, and how many words of it.
COMMAND = (sys.executable, "-m", "taskyard", "mcp")

#: The number of clone(2), where this works. Elsewhere every server is started as ever.
_CLONE = {"x86_64": 56, "aarch64": 220}.get(platform.machine(), 0)

_LOADER = """
import ctypes, gc, json, os, runpy, signal, socket, sys
import taskyard.cli.main, taskyard.cli.server, taskyard.servers.mcp.server, taskyard.servers.mcp.http
gc.collect(); gc.freeze()
asked = socket.socket(fileno=int(sys.argv[1]))
clone, python = int(sys.argv[2]), ctypes.PyDLL(None)
CLONE_PARENT = 0x8000
signal.signal(signal.SIGINT, signal.SIG_DFL)
while True:
    request, streams, _, _ = socket.recv_fds(asked, 1_000_000, 3)
    if not request:
        os._exit(0)
    python.PyOS_BeforeFork()
    pid = python.syscall(clone, CLONE_PARENT, 0, 0, 0, 0)
    if not pid:
        python.PyOS_AfterFork_Child()
        break
    python.PyOS_AfterFork_Parent()
    for stream in streams:
        os.close(stream)
    asked.send(b"%d" % pid)
asked.close()
for place, stream in enumerate(streams):
    os.dup2(stream, place)
os.closerange(3, max(streams) + 1)
wish = json.loads(request)
if wish["session"]:
    os.setsid()
os.chdir(wish["cwd"])
os.environ.clear()
os.environ.update(wish["env"])
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["taskyard", *wish["words"]]
sys.path[0] = wish["cwd"]
runpy.run_module("taskyard", run_name="__main__", alter_sys=True)
"""


class _Loader:
    """The process that has everything loaded; it ends with this one."""

    def __init__(self, python: Mapping[str, str]) -> None:
        self.python = python
        self._ask, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _LOADER, str(theirs.fileno()), str(_CLONE)],
                env=python,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._of = os.getpid()
        atexit.register(self._end)

    @property
    def is_ours(self) -> bool:
        """Children that were forked have none."""
        return self._of == os.getpid()

    def serves(self, python: Mapping[str, str]) -> bool:
        """Whether Python, told this, would start as it did here."""
        return self.is_ours and self.python == python

    def start(self, words: list[str], env: Mapping[str, str], cwd: str, streams: list[int], *, session: bool) -> int:
        wish = {"words": words, "env": dict(env), "cwd": cwd, "session": session}
        socket.send_fds(self._ask, [json.dumps(wish).encode()], streams)
        return int(self._ask.recv(100))

    def _end(self) -> None:
        if self.is_ours:
            self._ask.close()
            self._process.wait(10)


_loaders: list[_Loader] = []


def fork_exec(*given: Any) -> int:
    """In place of what `subprocess` starts everything with: its arguments, in its order."""
    args, _, _, passed, cwd, env, stdin, _, _, stdout, _, stderr, _, tells, _, session = given[:16]
    words = list(map(os.fsdecode, args))
    around = dict(os.environ) if env is None else dict(os.fsdecode(pair).split("=", 1) for pair in env)
    python = {name: value for name, value in around.items() if name.startswith("PYTHON")}
    if not (
        _CLONE and tuple(words[:4]) == COMMAND and tuple(passed) == (tells,) and python.get("PYTHONPATH") == str(SOURCE)
    ):
        return int(_posixsubprocess.fork_exec(*given))
    loader = next((one for one in _loaders if one.serves(python)), None)
    if loader is None:
        _loaders.append(loader := _Loader(python))
    streams = [place if theirs == -1 else theirs for place, theirs in enumerate((stdin, stdout, stderr))]
    return loader.start(words[3:], around, os.fsdecode(cwd or os.getcwd()), streams, session=bool(session))
