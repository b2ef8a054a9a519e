"""Jobs as a person at a shell has them."""

from __future__ import annotations

from typing import Any

from support.cli import taskyard
from support.wait import until


def started(*words: str) -> str:
    """Start a job in the background; its id."""
    ran = taskyard("run", "-d", "--json", *words)
    assert ran.code == 0, ran
    job_id: str = ran.data["id"]
    return job_id


def job(job_id: str) -> dict[str, Any]:
    """A job as `ps --all` tells it."""
    (found,) = [row for row in taskyard("ps", "--all", "--json").data if row["id"] == job_id]
    return dict(found)


def is_running(job_id: str) -> bool:
    """Whether its command was started."""
    found = job(job_id)
    return found["status"] == "running" and found["pid"] is not None


def prints(job_id: str, text: str) -> None:
    """Wait until a job printed something."""
    until(lambda: text in taskyard("logs", job_id).out, what=f"{text!r} from {job_id}")


def ended(job_id: str) -> dict[str, Any]:
    """A job at its end."""
    ran = taskyard("wait", job_id, "--timeout", "20s", "--json")
    assert ran.code != 124, ran
    return dict(ran.data)
