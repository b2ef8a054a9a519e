"""The stream of events in tests: written without jobs, read whole."""

from __future__ import annotations

from pathlib import Path

from taskyard.jobs import event_log
from taskyard.jobs.events import Event, Events
from taskyard.jobs.model import system_message


def add(home: str, job_id: str = "b00000000", subtype: str = "task_progress", **more: object) -> int:
    """Tell one event; its id."""
    return event_log.append(home, system_message(subtype, job_id, None, uuid="u", session_id="me", **more))


def all_events(home: str, since: int | None = None) -> list[Event]:
    """Every event that can be read."""
    return list(Events(home, since))


def told_of(home: str, job_id: str) -> list[str]:
    """What the stream says of one job."""
    return [event.subtype for event in Events(home) if event.task_id == job_id]


def segments(home: str) -> list[Path]:
    """The files of the stream, oldest first."""
    return sorted(Path(home, "events").iterdir(), key=lambda path: int(path.stem))
