"""What every kind checks alike: where it works, for how long, and what becomes of it when its starter ends."""

from __future__ import annotations

import os

from taskyard.errors import BadValue
from taskyard.names import check_number

#: A month: longer limits are typing errors.
LONGEST_TIME = 31 * 86_400.0


def check_on_rate_limit(value: str | None) -> None:
    """Refuse what is neither of the two.

    Raises:
        BadValue: says what would be.
    """
    if value not in (None, "wait", "stop"):
        raise BadValue("on_rate_limit", value, '"wait" or "stop"')


def check_run(*, cwd: str | None, timeout: float | None, on_parent_exit: str | None) -> None:
    """Refuse what cannot be.

    Raises:
        BadValue: says what would be.
    """
    check_number("timeout", timeout, least=0.001, most=LONGEST_TIME, unit="seconds")
    if on_parent_exit not in (None, "kill", "keep"):
        raise BadValue("on_parent_exit", on_parent_exit, '"kill" or "keep"')
    if cwd is not None and not os.path.isdir(cwd):
        raise BadValue("cwd", cwd, "a folder that exists")
