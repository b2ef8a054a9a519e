"""
Message ids that sort in the order of sending.

An id is a UUID (version 8): 60 bits of microseconds, then the sender, then chance. The clock may
step back, two messages may fall into one microsecond, and a sender may be restarted in between:
so each sender's last stamp is kept in a file, and the next is always larger. Only senders of one
name ever wait for each other, and only for the microseconds it takes to write twenty bytes.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock
from functools import lru_cache

from taskyard.disk.files import storage_error
from taskyard.disk.forks import mind
from taskyard.disk.kernel_lock import RangeLock
from taskyard.names import folder_name

#: Stamps beyond 60 bits are no stamps; a mark that holds one is rubbish.
_TOO_LARGE = 1 << 60

#: The mark is held for microseconds; whoever holds it longer is stopped.
_TIMEOUT = 10.0

LENGTH = 36
_HEX = frozenset("0123456789abcdef")

#: Threads queue here, where waiting is cheap, before processes queue on the file.
_threads = allocate_lock()


def next_id(marks: str, sender: str) -> str:
    """A new id for a message of `sender`: larger than every id it got before.

    `marks` is the folder of the senders' last stamps.
    """
    mind(_fresh_lock)
    folder, who = _sender(sender)
    path = f"{marks}/{folder}"
    with _threads, RangeLock(path) as mark:
        mark.take(0, timeout=_TIMEOUT, what=f"the last stamp of {sender!r}")
        stamp = max(time.time_ns() // 1000, _last(mark.fd) + 1)
        try:
            os.pwrite(mark.fd, b"%020d" % stamp, 0)
        except OSError as error:
            raise storage_error(path, error) from error
    return _spelled(stamp, who)


def lone_id(sender: str) -> str:
    """An id for one who sends so seldom that the clock keeps its messages apart, and whose name is safe as it is."""
    return _spelled(time.time_ns() // 1000, _key(sender))


def _spelled(stamp: int, who: str) -> str:
    when = f"{stamp:015x}"
    chance = os.urandom(4).hex()[:7]
    return f"{when[:8]}-{when[8:12]}-8{when[12:]}-a{who[:3]}-{who[3:]}{chance}"


@lru_cache(maxsize=1024)
def _sender(name: str) -> tuple[str, str]:
    """The file of a sender's mark, and eight hex digits that stand for it in its ids."""
    folder = folder_name("an agent", name)
    return folder, _key(folder)


def _key(name: str) -> str:
    """The CRC-32 of a name, as `zlib` has it: that is two libraries, which every keeper of a job would carry."""
    crc = 0xFFFFFFFF
    for byte in name.encode():
        crc ^= byte
        crc = _CRC[crc & 15] ^ crc >> 4
        crc = _CRC[crc & 15] ^ crc >> 4
    return f"{crc ^ 0xFFFFFFFF:08x}"


def _after_four_bits(crc: int) -> int:
    for _ in range(4):
        crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
    return crc


_CRC = [_after_four_bits(crc) for crc in range(16)]


def sender_of(message_id: str) -> str:
    """The sender's key in `message_id`."""
    return message_id[20:23] + message_id[24:29]


def is_id(text: str) -> bool:
    """Whether `text` is an id of ours: nothing else ever becomes part of a path."""
    return len(text) == LENGTH and text[14] == "8" and _HEX.issuperset(text.replace("-", "")) and text.count("-") == 4


def _last(fd: int) -> int:
    """The stamp in the open mark; 0 if it holds none."""
    text = os.pread(fd, 32, 0)
    stamp = int(text) if text.isdigit() else 0
    return stamp if stamp < _TOO_LARGE - 1 else 0


def _fresh_lock() -> None:
    """In a forked child: a lock that some thread of the parent held would never be free."""
    global _threads
    _threads = allocate_lock()
