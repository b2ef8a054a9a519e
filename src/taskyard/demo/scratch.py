"""A place for the demo alone: lists, state and settings in one temporary folder, and nothing of the person's."""

from __future__ import annotations

import os
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

#: Variables that lead to the person's own lists, state, settings and hooks.
_OUTSIDE = ("TASKYARD_", "CLAUDE_", "XDG_")


@contextmanager
def scratch() -> Generator[str]:
    """A temporary folder; this process and its children know of no other. Removed at the end, whatever ends it."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="taskyard-demo-")
    before, here = dict(os.environ), _here()
    try:
        os.chdir(folder)  # hooks of the project around us are not the demo's
        for name in [name for name in os.environ if name.startswith(_OUTSIDE)]:
            del os.environ[name]
        os.environ |= {
            "TASKYARD_HOME": f"{folder}/home",
            "TASKYARD_TASKS_DIR": f"{folder}/tasks",
            "TASKYARD_STALL_AFTER": "1",  # nobody wants to watch 45 seconds of silence
            "CLAUDE_CONFIG_DIR": f"{folder}/claude",
            "XDG_CONFIG_HOME": f"{folder}/config",
            "PYTHONPATH": os.pathsep.join([_package(), *filter(None, [before.get("PYTHONPATH")])]),
        }
        yield folder
    finally:
        os.environ.clear()
        os.environ |= before
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"  # the current folder was removed


def _package() -> str:
    """Where the package is, so that workers find the same one."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
