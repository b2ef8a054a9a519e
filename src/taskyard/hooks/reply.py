"""What a hook answered on stdout: `{"decision": "block", "reason": "…"}`, or just text."""

from __future__ import annotations

from taskyard.errors import shown
from taskyard.typed import NamedTuple, cast


class Reply(NamedTuple):
    """The answer of a hook that ended with exit code 0."""

    blocks: bool = False
    reason: str = ""
    problem: str = ""  #: it looks like an answer but cannot be read as one: tell a person, do not obey


def read_reply(stdout: bytes, size: int) -> Reply:
    """The answer in `stdout`, of which there were `size` bytes. Text that is no JSON object is no answer."""
    if not stdout.lstrip().startswith(b"{"):
        return Reply()
    if size > len(stdout):
        return _ignored(f"it is {size:,} bytes long")
    import json

    try:
        fields = cast("dict[str, object]", json.loads(stdout))
    except (ValueError, RecursionError) as error:
        return _ignored(f"it is not JSON ({error})")
    decision, reason = fields.get("decision"), fields.get("reason")
    if decision is None or decision == "approve":
        return Reply()
    if decision != "block":
        return _ignored(f"its decision is {shown(decision)}; only 'block' is one")
    if reason is not None and not isinstance(reason, str):
        return _ignored("its reason is no text")
    from taskyard.commands import plain_text

    return Reply(blocks=True, reason=plain_text((reason or "").encode("utf-8", "replace")))


def _ignored(why: str) -> Reply:
    return Reply(problem=f"gave a reply that nobody can obey: {why}. It was ignored and the work went on.")
