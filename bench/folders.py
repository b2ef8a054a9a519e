"""Private folders to measure in, and lists of any size."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

#: In memory: here the code is measured, not the disk.
MEMORY = "/dev/shm"

#: Survives a reboot, so it is a disk.
DISK = "/var/tmp"

LIST = "bench"
DESCRIPTION = "Read the old importer, write down what it accepts, then port it; keep the tests green at every step."


@contextmanager
def scratch(base: str) -> Iterator[str]:
    """A folder of our own below `base`, gone afterwards whatever happens."""
    folder = tempfile.mkdtemp(prefix="taskyard-bench-", dir=base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def list_folder(tasks_dir: str, *, tasks: int = 0) -> str:
    """The folder of a list with that many pending tasks, as any program would have left it."""
    folder = os.path.join(tasks_dir, LIST)
    os.makedirs(folder)
    for number in range(1, tasks + 1):
        task = {
            "id": str(number),
            "subject": f"Task {number}",
            "description": DESCRIPTION,
            "status": "pending",
            "blocks": [],
            "blockedBy": [],
        }
        with open(os.path.join(folder, f"{number}.json"), "w", encoding="utf-8") as file:
            json.dump(task, file, indent=2)
    with open(os.path.join(folder, ".lock"), "w", encoding="utf-8"):
        pass
    if tasks:
        with open(os.path.join(folder, ".highwatermark"), "w", encoding="utf-8") as file:
            file.write(str(tasks))
    return folder
