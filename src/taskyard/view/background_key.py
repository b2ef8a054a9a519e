"""Which key moves an attached run to the background."""

from __future__ import annotations

import os

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Key(NamedTuple):
    """A key as a terminal sends it, and as people say it."""

    byte: bytes
    name: str


def background_key(setting: str, env: Mapping[str, str] | None = None) -> Key | None:
    r"""The key, by the setting `background_key`; Ctrl+B is tmux's own, so inside it another is the default.

    >>> background_key("", {}), background_key("", {"TMUX": "/tmp/x"}), background_key("ctrl+g", {})
    (Key(byte=b'\x02', name='Ctrl+B'), Key(byte=b'\x1d', name='Ctrl+]'), Key(byte=b'\x07', name='Ctrl+G'))
    """
    if setting == "off":
        return None
    env = os.environ if env is None else env
    letter = setting.rpartition("+")[2].upper() or ("]" if env.get("TMUX") else "B")
    return Key(bytes([ord(letter) & 0x1F]), f"Ctrl+{letter}")
