"""Whether jobs may run in the background: two environment variables turn that off."""

from __future__ import annotations

import os

from taskyard.errors import BackgroundDisabled

_DISABLED = ("TASKYARD_DISABLE_BACKGROUND_TASKS", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
_YES = ("1", "true", "yes", "on")


def check_background() -> None:
    """Refuse a background start where background jobs are turned off.

    Raises:
        BackgroundDisabled: they are.
    """
    if (variable := _disabled_by()) is not None:
        raise BackgroundDisabled(variable)


def is_background_disabled() -> bool:
    """Whether background jobs are turned off."""
    return _disabled_by() is not None


def _disabled_by() -> str | None:
    return next((name for name in _DISABLED if os.environ.get(name, "").strip().lower() in _YES), None)
