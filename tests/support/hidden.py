"""A process list that hides other users' processes, and programs that become another user's (root's to set up)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

#: Whose processes are hidden.
_OTHER = 65534

#: A `/proc` of its own that hides processes of other users, and neither the group nor a capability to look past that.
_HIDE = (
    "mount -t proc -o hidepid=2 proc /proc && "
    'exec setpriv --regid=65533 --clear-groups --bounding-set=-all --inh-caps=-all -- "$@"'
)


def taskyard_without_sight(*words: str) -> dict[str, Any]:
    """What `taskyard WORDS --json` answers where `/proc` is mounted with hidepid=2."""
    entered = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", _HIDE, "sh"]
    command = [*entered, sys.executable, "-m", "taskyard", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["data"])


def setuid_program(folder: Path, name: str) -> Path:
    """A copy of an installed program that runs as another user, whoever starts it."""
    found = shutil.which(name)
    if os.geteuid() != 0 or found is None or shutil.which("unshare") is None:
        pytest.skip("only root has programs run as another user")
    folder.chmod(0o777)
    copy = folder / f"{name}-as-other"
    shutil.copyfile(found, copy)
    os.chown(copy, _OTHER, _OTHER)
    copy.chmod(0o4755)
    return copy


def as_other(setpriv: Path, *words: str) -> list[str]:
    """The words that run a command as the other user altogether: no signal of ours reaches it."""
    return [str(setpriv), f"--reuid={_OTHER}", "--", *words]
