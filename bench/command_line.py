"""The row about the command line: what `taskyard task list` costs beyond starting Python."""

from __future__ import annotations

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
