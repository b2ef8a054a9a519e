"""What an agent asks permission for, as a question that anybody can answer: pure."""

from __future__ import annotations

from taskyard.harmless import safe
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of what it wants to do, and of the name of an option.
_LONGEST, _LONGEST_NAME = 800, 80

#: Options that are named; an agent has four or five.
_MOST = 12

_YES, _NO = ("y", "yes", "allow", "ok"), ("n", "no", "deny", "reject")


class Option(NamedTuple):
    """One of the answers an agent takes."""

    id: str
    name: str
    kind: str  #: "allow_once", "allow_always", "reject_once" or "reject_always"


def question(what: str, options: Sequence[Option]) -> str:
    """What a person is asked.

    >>> print(question("Run make", [Option("a", "Allow", "allow_once"), Option("r", "Reject", "reject_once")]))
    Run make
    1. Allow
    2. Reject
    """
    named = [f"{number}. {safe(option.name)[:_LONGEST_NAME]}" for number, option in enumerate(options[:_MOST], 1)]
    return "\n".join([safe(what, lines=True)[:_LONGEST] or "It asks for permission.", *named])


def chosen(answer: str, options: Sequence[Option]) -> Option | None:
    """The option that an answer means, by number, id, name, or yes and no; None if it is none of them.

    >>> chosen("y", [Option("x", "Always", "allow_always"), Option("o", "Once", "allow_once")]).name
    'Once'
    """
    said = answer.strip().casefold()
    numbered = {str(number): option for number, option in enumerate(options[:_MOST], 1)}
    if said in numbered:
        return numbered[said]
    for option in options:
        if said in (option.id.casefold(), option.name.strip().casefold()):
            return option
    lead = "allow" if said in _YES else "reject" if said in _NO else ""
    alike = [option for option in options if lead and option.kind.startswith(lead)]
    return min(alike, key=lambda option: not option.kind.endswith("_once"), default=None)
