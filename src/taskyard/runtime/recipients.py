"""
Whose box a notice goes to: a folder for every name, and for every name its own.

Letters, digits, `_` and `-` stay as they are; the rest is written as in addresses: `a b` waits in `a%20b`. Claude
Code's rule, by which `a b`, `a.b` and `a-b` share a folder, is for folders it shares with us, and nobody shares these.
"""

from __future__ import annotations

from taskyard.errors import BadName
from taskyard.names import check_name, is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The box of notices that are for people and no model: `taskyard notices` shows it, no agent is delivered from it.
#: No name is written like that, since `%` in a name becomes `%25`.
PEOPLE = "%people"

#: A longer name is cut, and told apart by its check sum: file systems take 255 bytes.
_LONGEST = 200
_CUT = "%-"  #: which no name is written with


def box_name(name: str) -> str:
    """The folder that stands for a recipient, and for nobody else.

    Raises:
        BadName: nobody can be called so.
    """
    check_name("an agent", name)
    text = "".join(char if is_plain(char) else _written(char) for char in name)
    if len(text) <= _LONGEST:
        return text
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{text[: _LONGEST - len(_CUT) - len(digest)]}{_CUT}{digest}"


def is_box_name(text: str) -> bool:
    """Whether it leads to a box, and to nothing else."""
    return 0 < len(text) <= _LONGEST and is_plain(text.replace("%", ""))


def recipient_of(record: Mapping[str, object]) -> str:
    """Whose box news of a job go to, by its record, which may hold anything."""
    recipient = str(record.get("recipient") or "me")
    try:
        return recipient if is_box_name(recipient) else box_name(recipient)
    except BadName:
        return "me"


def _written(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())
