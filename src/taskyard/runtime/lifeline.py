"""
Whose end a job ends with, if it is not to be kept.

    started inside a job       that job: its keeper takes those inside it along
    by a program               that process
    by a command line          the living instance of the agent it acts for; on wish, whoever called the command
"""

from __future__ import annotations

import os

from taskyard.disk.processes import process_start


def lifeline(
    home: str, agent: str | None, *, wish: str | None, parent: str | None, alone: bool
) -> tuple[str, list[int] | None]:
    """What happens to a job when its starter ends, and that one's process number and start, where there is one.

    `alone`: this process is a command line, which is gone before its job is.
    """
    if parent is not None:
        return wish or "kill", None
    if not alone:
        on_exit = wish or ("kill" if agent else "keep")
        return on_exit, [os.getpid(), process_start()] if on_exit == "kill" else None
    if wish == "keep":
        return "keep", None
    if agent and (living := _instance(home, agent)) is not None:
        return "kill", living
    if wish is None:
        return "keep", None  # nobody could say when such an agent ends
    return "kill", [os.getppid(), process_start(os.getppid())]


def _instance(home: str, agent: str) -> list[int] | None:
    from taskyard import instances
    from taskyard.disk.processes import this_host

    for record in instances.living(home):
        if record.name == agent and record.host == this_host():
            return [record.pid, record.start]
    return None
