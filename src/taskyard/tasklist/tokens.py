"""Fencing tokens."""

from __future__ import annotations

import os


def new_token() -> str:
    """A token no other claim has or will have."""
    return os.urandom(9).hex()
