"""What an agent asks permission for, as a question that anybody can answer: pure."""

from __future__ import annotations

from taskyard.harmless import safe
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of what it wants to do, of the name of an option, and of all names. A name says what "always" grants: it
#: is shown whole, or the option is not offered.
_LONGEST, _LONGEST_NAME, _LONGEST_NAMES = 1_000, 600, 950

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
    named = [f"{number}. {safe(option.name)}" for number, option in enumerate(offered(options), 1)]
    return "\n".join([cut(safe(what, lines=True), _LONGEST) or "It asks for permission.", *named])


def offered(options: Sequence[Option]) -> list[Option]:
    """The options that a person is offered: those whose names can be shown whole."""
    found: list[Option] = []
    room = _LONGEST_NAMES
    for option in sorted(options[:_MOST], key=lambda option: len(option.name)):
        room -= len(safe(option.name)) + 5
        if len(safe(option.name)) <= _LONGEST_NAME and room >= 0:
            found.append(option)
    return [option for option in options if option in found]


def cut(text: str, longest: int) -> str:
    """A text that says how much of it is left out.

    >>> cut("x" * 10, 4)
    'xxxx… (6 more characters)'
    """
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"


#: Kinds of tool calls that each mode allows without asking; `all` allows every kind.
_ALLOWED = {
    "edit": frozenset({"read", "search", "think", "edit"}),
    "work": frozenset({"read", "search", "think", "edit", "delete", "move", "execute"}),
}


#: Kinds of tool calls that only look; opencode calls access to a folder `other`.
_LOOKS = ("read", "search", "other")


def allowed(mode: str, kind: str, paths: Sequence[str], folder: str, *, reads: Sequence[str] = ()) -> bool:
    """Whether a mode allows a kind of tool call on these paths without asking; edits outside the folder always ask.

    `reads`: folders beside it that may be read in every mode.
    """
    if mode == "all":
        return True
    if kind in _LOOKS and paths and all(any(_is_below(path, each) for each in reads) for path in paths):
        return True
    if kind not in _ALLOWED.get(mode, frozenset()):
        return False
    return kind in ("read", "search", "think", "execute") or all(_is_below(path, folder) for path in paths)


def _is_below(path: str, folder: str) -> bool:
    import os

    folder = os.path.realpath(folder)
    return os.path.commonpath([os.path.realpath(os.path.join(folder, path)), folder]) == folder


def once(options: Sequence[Option]) -> Option | None:
    """The option that allows a call and nothing beyond it."""
    return next((option for option in options if option.kind == "allow_once"), None)


def chosen(answer: str, options: Sequence[Option]) -> Option | None:
    """The option that an answer means, by number, id, name, or yes and no; None if it is none of them.

    >>> chosen("y", [Option("x", "Always", "allow_always"), Option("o", "Once", "allow_once")]).name
    'Once'
    """
    said = answer.strip().casefold()
    numbered = {str(number): option for number, option in enumerate(offered(options), 1)}
    if said in numbered:
        return numbered[said]
    for option in options:
        if said in (option.id.casefold(), option.name.strip().casefold()):
            return option
    lead = "allow" if said in _YES else "reject" if said in _NO else ""
    alike = [option for option in options if lead and option.kind.startswith(lead)]
    return min(alike, key=lambda option: not option.kind.endswith("_once"), default=None)
