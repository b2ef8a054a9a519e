"""The rows about starting: what `taskyard task list` and `taskyard mcp` cost beyond starting Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from bench.folders import LIST, list_folder
from bench.processes import Failed, environment
from bench.rounds import Sample
from bench.task_list import Ground


class CommandLine:
    """Both commands, in the same clean environment, with the same interpreter."""

    def __init__(self, ground: Ground) -> None:
        self.tasks_dir = os.path.join(ground.folder, "command-line")
        self.env = environment(ground.folder)
        self.env.update(TASKYARD_TASKS_DIR=self.tasks_dir, TASKYARD_LIST=LIST)

    def list_tasks(self) -> Sample:
        if not os.path.isdir(self.tasks_dir):
            list_folder(self.tasks_dir, tasks=10)
            self._timed(self._command())  # once, so that compiled files are there
        return self._timed(self._command())

    def bare_interpreter(self) -> Sample:
        return self._timed([sys.executable, "-c", "pass"])

    def _command(self) -> list[str]:
        script = os.path.join(os.path.dirname(sys.executable), "taskyard")
        start = [script] if os.access(script, os.X_OK) else [sys.executable, "-m", "taskyard"]
        return [*start, "task", "list"]

    def _timed(self, command: Sequence[str]) -> Sample:
        began = time.monotonic()
        done = subprocess.run(
            command, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        took = time.monotonic() - began
        if done.returncode:
            raise Failed(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
        return Sample(took * 1000)


#: What a client sends before it can use a tool.
_HANDSHAKE: tuple[dict[str, object], ...] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


class McpStart:
    """From the start of `taskyard mcp` to the list of its tools, against an interpreter that imports asyncio."""

    def __init__(self, ground: Ground) -> None:
        self.env = environment(ground.folder)

    def tools(self) -> Sample:
        said = b"".join(json.dumps(message).encode() + b"\n" for message in _HANDSHAKE)
        command = [sys.executable, "-m", "taskyard", "mcp", "--list", LIST]
        began = time.monotonic()
        with subprocess.Popen(command, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(said)
            process.stdin.flush()
            answers = [process.stdout.readline() for _ in range(2)]
            took = time.monotonic() - began
            process.kill()
        if b'"tools"' not in answers[1]:
            raise Failed(f"`taskyard mcp` answered {answers[1][:200]!r}")
        return Sample(took * 1000)

    def bare_asyncio(self) -> Sample:
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", "import asyncio"], env=self.env, timeout=60, check=True)
        return Sample((time.monotonic() - began) * 1000)
