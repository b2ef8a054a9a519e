"""
The seal on news: a check value over all of it (HMAC-SHA256) under a key that only its user can read.

Made by keepers, of which there may be hundreds: so without OpenSSL, whose 600 kB each of them would carry.
"""

from __future__ import annotations

import json
import os

from taskyard.disk import files
from taskyard.errors import Damaged, StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from hashlib import sha256
else:

    def _lightest():
        """SHA-256 of the interpreter itself, by its name since 3.12 and before; not every distribution has it."""
        for module in ("_sha2", "_sha256"):
            try:
                return __import__(module).sha256
            except ImportError:
                continue
        return __import__("hashlib").sha256

    sha256 = _lightest()

_KEY_SIZE = 32

#: What SHA-256 works on at once; HMAC fills keys up to it.
_BLOCK = 64

#: What is signed: the same text for the same news, however it was written down.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


def signed(home: str, news: Mapping[str, object]) -> dict[str, object]:
    """The news with its check value."""
    return {**news, "check": check_value(home, news)}


def check_value(home: str, news: Mapping[str, object]) -> str:
    """The check value over every field but itself."""
    if "check" in news:
        news = {name: value for name, value in news.items() if name != "check"}
    return hmac_sha256(_key(home), _canonical(news).encode())


def hmac_sha256(key: bytes, text: bytes) -> str:
    """The HMAC of `text` (RFC 2104), in hexadecimal digits."""
    if len(key) > _BLOCK:
        key = sha256(key).digest()
    key = key.ljust(_BLOCK, b"\0")
    return sha256(key.translate(_OUTER) + sha256(key.translate(_INNER) + text).digest()).hexdigest()


def ensure_key(home: str) -> None:
    """Make the user's key if there is none.

    Raises:
        StorageError: the disk refused.
    """
    _key(home)


def _key(home: str) -> bytes:
    """The user's key, made by the first who needs it."""
    path = f"{home}/notice.key"
    while (data := _read_key(path)) is None:
        temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        files.create(temporary, os.urandom(_KEY_SIZE))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(temporary)
    return data


def _read_key(path: str) -> bytes | None:
    """The key; None if there is none. What is in its place and is none is kept apart: nothing was sealed with it."""
    try:
        data = files.read(path, most=4096)
        if data is None or len(data) >= _KEY_SIZE:
            return data
    except Damaged:
        pass
    except StorageError:
        if os.path.isfile(path) and not os.path.islink(path):
            raise
    try:
        os.rename(path, f"{path}.{os.urandom(4).hex()}.bad")
    except FileNotFoundError:
        pass  # somebody was quicker
    except OSError as error:
        raise files.storage_error(path, error) from error
    return None
