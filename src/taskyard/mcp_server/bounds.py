"""How much one answer may hold: what others wrote can be of any length, and a model's context cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping

from taskyard.tasklist.model import Task
from taskyard.view.records import task_json

#: Characters of one text in an answer, as much as a model is given of a job's output.
LONGEST_TEXT = 32_000

#: Of what the caller has just written itself it needs no more than the beginning.
LONGEST_ECHO = 2_000

#: Characters of data that somebody attached, as JSON.
_LONGEST_DATA = 8_000


def shortened(text: str, longest: int = LONGEST_TEXT) -> str:
    """`text`, of a long one the beginning and how much was left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}\n[… {len(text) - longest:,} more characters were left out.]"


def bounded(data: Mapping[str, object]) -> dict[str, object]:
    """Data that somebody attached; of too much, its names alone."""
    size = len(json.dumps(dict(data), default=str))
    if size <= _LONGEST_DATA:
        return dict(data)
    return {"left_out": f"{size:,} characters", "keys": [key[:100] for key in list(data)[:50]]}


def task_data(task: Task, *, longest: int = LONGEST_TEXT) -> dict[str, object]:
    """A task as data, in bounds."""
    return {
        **task_json(task),
        "description": shortened(task.description, longest),
        "metadata": bounded(task.metadata),
    }
