"""Message ids that sort in the order of sending.

An id is a UUID (version 8): 60 bits of microseconds, then the sender, then random bits. The clock may step
back, two messages may fall into one microsecond, and a sender may restart in between: so each sender's last
timestamp is kept in a file, and the next is always larger. Only senders of one name ever wait for each
other, and only for the microseconds it takes to write twenty bytes.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from functools import lru_cache

from taskyard.core.files import storage_error
from taskyard.core.values import folder_name
from taskyard.storage.locks import RangeLock, after_fork_in_child

#: Timestamps must fit into 60 bits; a file with a larger one is ignored.
_TOO_LARGE = 1 << 60

#: Seconds. The lock is held for microseconds; a process that holds it longer is stopped.
_TIMEOUT = 10.0

LENGTH = 36
_HEX = frozenset("0123456789abcdef")

#: Threads queue here, where waiting is cheap, before processes queue on the file.
_thread_mutex = allocate_lock()


def next_id(marks: str, sender: str) -> str:
    """Return a new message id for `sender`, larger than all its earlier ones.

    `marks` is the folder of the senders' last timestamps.
    """
    after_fork_in_child(_reset_in_child)
    folder, who = _sender_file_and_key(sender)
    path = f"{marks}/{folder}"
    with _thread_mutex, RangeLock(path) as mark:
        mark.take(0, timeout=_TIMEOUT, what=f"the last stamp of {sender!r}")
        stamp = max(time.time_ns() // 1000, _read_stamp(mark.fd) + 1)
        try:
            os.pwrite(mark.fd, b"%020d" % stamp, 0)
        except OSError as error:
            raise storage_error(path, error) from error
    return _format_id(stamp, who)


def clock_id(sender: str) -> str:
    """Return an id without a file: for a sender with a safe name that sends too seldom for clock collisions."""
    return _format_id(time.time_ns() // 1000, _crc32(sender))


def _format_id(stamp: int, who: str) -> str:
    when = f"{stamp:015x}"
    chance = os.urandom(4).hex()[:7]
    return f"{when[:8]}-{when[8:12]}-8{when[12:]}-a{who[:3]}-{who[3:]}{chance}"


@lru_cache(maxsize=1024)
def _sender_file_and_key(name: str) -> tuple[str, str]:
    """Return the file of a sender's last timestamp, and its key of eight hex digits in message ids."""
    folder = folder_name("an agent", name)
    return folder, _crc32(folder)


#: CRC-32 table for four bits, polynomial 0xEDB88320.
_CRC = (
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
)  # fmt: skip


def _crc32(name: str) -> str:
    """Return the CRC-32 of a name, as `zlib` does: importing that loads two libraries into every supervisor."""
    crc = 0xFFFFFFFF
    for byte in name.encode():
        crc ^= byte
        crc = _CRC[crc & 15] ^ crc >> 4
        crc = _CRC[crc & 15] ^ crc >> 4
    return f"{crc ^ 0xFFFFFFFF:08x}"


def sender_of(message_id: str) -> str:
    """Return the sender's key in `message_id`."""
    return message_id[20:23] + message_id[24:29]


def is_message_id(text: str) -> bool:
    """Return whether `text` is a message id; nothing else ever becomes part of a path."""
    return len(text) == LENGTH and text[14] == "8" and _HEX.issuperset(text.replace("-", "")) and text.count("-") == 4


def _read_stamp(fd: int) -> int:
    """Return the timestamp in the open file; 0 if it has none."""
    text = os.pread(fd, 32, 0)
    stamp = int(text) if text.isdigit() else 0
    return stamp if stamp < _TOO_LARGE - 1 else 0


def _reset_in_child() -> None:
    """Replace the mutex in a forked child, because a thread of the parent may have held it."""
    global _thread_mutex
    _thread_mutex = allocate_lock()
