"""
A secret that requests over HTTP must bring: made once, kept where only its owner can read it.

It is never written anywhere else: no log, no argument of a process, no environment of a job. Commands of the same user
can still read its file, and the environment that a server was started with (/proc): against them nothing is secret.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from typing import NamedTuple

from taskyard.disk import files
from taskyard.errors import BadText, StorageError

#: A token of fewer characters can be guessed.
SHORTEST = 16

_LARGEST = 4096


class Token(NamedTuple):
    """The secret, and where it is from."""

    text: str
    file: str | None  #: None: from the environment

    def __repr__(self) -> str:
        """Not the secret: this is what ends up in logs."""
        return f"Token(file={self.file!r})"

    def fits(self, given: str) -> bool:
        """Whether `given` is the secret; takes as long whatever the answer is."""
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self.text.encode())


def kept_in(path: str, *, anew: bool = False) -> Token:
    """The token in the file `path`; made if it is not there, and `anew` also if it is.

    Raises:
        BadText: it is too short, or cannot stand in a header.
        StorageError: others can read its file, or it cannot be made.
    """
    if anew:
        files.replace(path, _fresh())
    return Token(_read(path) or _made(path), path)


def checked(text: str, field: str) -> str:
    """`text`, if it can be a token; `field` says where it is from, for the error.

    Raises:
        BadText: it cannot; it is not repeated.
    """
    if len(text) < SHORTEST:
        raise BadText(field, f"is too short: at least {SHORTEST} characters")
    if not all("!" <= char <= "~" for char in text):
        raise BadText(field, "cannot stand in a header: letters, digits and signs of ASCII alone, without spaces")
    return text


def _fresh() -> bytes:
    return f"{secrets.token_urlsafe(32)}\n".encode()


def _made(path: str) -> str:
    try:
        files.create(path, _fresh())
    except FileExistsError:
        pass  # another server was faster: that is the one
    found = _read(path)
    if found is None:
        raise StorageError(path, "it was removed while it was made", advice="Try again.")
    return found


def _read(path: str) -> str | None:
    data = files.read(path, most=_LARGEST)
    if data is None:
        return None
    found = os.lstat(path)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise StorageError(
            path, "others can read this secret", advice=f"Make a new one: remove it, or `chmod 600 {path}`."
        )
    return checked(data.decode("ascii", "replace").strip(), f"token in {path}")
