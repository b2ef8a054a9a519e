"""Ids of jobs: a letter for the kind, then eight characters nobody can guess."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_LENGTH = 9

#: The largest multiple of 36 a byte can hold: bytes above would make some characters likelier.
_FAIR = 252


def new_id(letter: str) -> str:
    """A fresh id for a job of the kind with this letter."""
    found = ""
    while len(found) < _LENGTH - 1:
        found += "".join(_ALPHABET[byte % 36] for byte in os.urandom(_LENGTH) if byte < _FAIR)
    return letter + found[: _LENGTH - 1]


def is_job_id(text: object) -> TypeGuard[str]:
    """Whether `text` can be the id of a job, and so is safe as a folder's name."""
    return isinstance(text, str) and len(text) == _LENGTH and "a" <= text[0] <= "z" and not text.strip(_ALPHABET)
