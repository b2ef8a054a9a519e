"""
The review in what an ultrareview said. Pure.

    system/hook_progress     what a hook of the session printed comes first: between <remote-review> tags, else all
    an assistant's message   between the tags

What was printed in pieces is put together before it is looked at: a long review comes in two events, and may be cut
anywhere, in the middle of a tag too.
"""

from __future__ import annotations

from taskyard.remote.messages import messages_in, spoken
from taskyard.shapes import as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPEN, CLOSE = "<remote-review>", "</remote-review>"

#: Where a hook's message has what the hook printed.
_PRINTED = ("stdout", "output", "content", "text")


def review_in(lines: Iterable[str]) -> str:
    """The review; "" if there is none."""
    hooks, agent = list[str](), list[str]()
    for message in messages_in(lines):
        if message.get("type") == "system" and message.get("subtype") == "hook_progress":
            hooks.append(_printed(message))
        elif said := spoken(message):
            agent.append(said)
    return _tagged(hooks) or "".join(hooks).strip() or _tagged(agent)


def _tagged(pieces: list[str]) -> str:
    """What stands between tags: in the last piece that has all of it, else in all pieces together."""
    whole = next((found for piece in reversed(pieces) if (found := _between(piece))), "")
    return whole or _between("".join(pieces))


def _between(text: str) -> str:
    """What stands between the last tag that opens, and is closed, and the one that closes it."""
    end = text.rfind(CLOSE)
    start = text.rfind(OPEN, 0, end) if end >= 0 else -1
    return text[start + len(OPEN) : end].strip() if start >= 0 else ""


def _printed(message: Mapping[str, object]) -> str:
    return next((text for name in _PRINTED if (text := as_text(message.get(name)))), "")
