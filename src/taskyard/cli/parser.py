"""Command-line parser for the named command, and types for durations, ids, sizes and pairs.

Beyond argparse: the common options may precede or follow the command's name; lists of ids and words may be
given as `1 2`, `1,2` or by repeating the option, and never consume a subject after them; errors are raised, not
printed.
"""

from __future__ import annotations

import argparse
import os

from taskyard.core.values import check_id
from taskyard.errors import BadValue, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from taskyard.cli.main import ResolvedCommand


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Maximum duration in seconds: a claim or a wait of more than ten years is a typo.
MAX_SECONDS = 3_650 * 86_400.0


def task_id(text: str) -> str:
    """Parse a task id; a leading `#` is allowed."""
    return check_id(text.removeprefix("#"))


def id_list(text: str) -> list[str]:
    """Parse `1,2` as ids."""
    return [task_id(part.strip()) for part in text.split(",") if part.strip()] or [task_id(text)]


def is_id_list(text: str) -> bool:
    """Return whether a word could be one or more ids."""
    parts = [part.strip().removeprefix("#") for part in text.split(",") if part.strip()]
    return bool(parts) and all(part.isascii() and part.isdigit() for part in parts)


def word_list(text: str) -> list[str]:
    """Parse `a,b` as words."""
    return [word.strip() for word in text.split(",") if word.strip()]


def seconds(text: str, *, most: float = MAX_SECONDS) -> float:
    """Parse `90`, `90s`, `30m`, `1h30m`, `2d` as seconds; `most` is the maximum, whole days in seconds.

    >>> [seconds(text) for text in ("90", "1.5h", "1h30m", "2d")]
    [90.0, 5400.0, 5400.0, 172800.0]
    """
    if text.strip().startswith("-"):
        raise BadValue("A duration", text, "no less than nothing, such as 90s or 30m")
    total, number = 0.0, ""
    for char in text.strip().lower().replace(" ", ""):
        if char.isascii() and (char.isdigit() or char == "."):
            number += char
            continue
        if char not in _UNITS:
            raise _bad_duration(text)
        total += _number(number, text) * _UNITS[char]
        number = ""
    if number:
        if total:
            raise _bad_duration(text)  # `1h30`: minutes or seconds?
        total = _number(number, text)
    if not 0 < total <= most:
        raise BadValue("A duration", text, f"more than 0 and at most {most / 86_400:,.0f}d, such as 90s or 30m")
    return total


def seconds_or_none(text: str) -> float:
    """Parse a duration that may be zero: `0`, `3s`."""
    return 0.0 if text.strip().lower() in ("0", "0s") else seconds(text)


_SIZES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "k": 1024, "m": 1024**2, "g": 1024**3}


def size(text: str) -> int:
    """Parse `500000`, `32MB`, `1.5g` as bytes; single letters count in 1,024s.

    >>> [size(text) for text in ("4096", "32MB", "1.5g")]
    [4096, 32000000, 1610612736]
    """
    word = text.strip().lower().replace("ib", "")
    digits = word.rstrip("bkmg")
    unit = word[len(digits) :] or "b"
    try:
        return int(float(digits) * _SIZES[unit])
    except (KeyError, ValueError, OverflowError):
        raise BadValue("The size", text, "a number of bytes, such as 500000 or 32MB") from None


def metadata_pair(text: str) -> tuple[str, object]:
    """Parse `KEY=JSON` as key and value; a value that is not JSON is text."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise BadValue("--metadata", text, "KEY=VALUE, where VALUE is JSON or text; KEY=null removes the key")
    import json

    try:
        return key.strip(), json.loads(value)
    except (ValueError, RecursionError):
        return key.strip(), value


def assignment(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE` as a variable."""
    name, sign, value = text.partition("=")
    if not sign or not name or "\0" in text:
        raise BadValue("--env", text, "NAME=VALUE, such as LANG=C")
    return name, value


def external_ref(text: str) -> dict[str, str]:
    """Parse `SYSTEM:ID[:URL]` as a reference into another system."""
    system, _, rest = text.partition(":")
    its_id, _, url = rest.partition(":")
    if not system or not its_id:
        raise BadValue("--external", text, "SYSTEM:ID or SYSTEM:ID:URL, such as github:42:https://example.org/42")
    return {"system": system, "id": its_id, **({"url": url} if url else {})}


def integer(text: str) -> int:
    """Parse a whole number."""
    if not text.strip().removeprefix("-").isdecimal():
        raise UsageError(f"{text!r} is not a whole number.")
    return int(text)


def dollars(text: str) -> float:
    """Parse an amount of money: `0.50`, `$2`."""
    try:
        amount = float(text.strip().removeprefix("$"))
    except ValueError:
        amount = -1.0
    if not 0 < amount < float("inf"):
        raise BadValue("The amount", text, "dollars, such as 0.50 or 2")
    return amount


def _number(digits: str, text: str) -> float:
    try:
        return float(digits)
    except ValueError:
        raise _bad_duration(text) from None


def _bad_duration(text: str) -> BadValue:
    return BadValue("A duration", text, "seconds, or a number with s, m, h or d, such as 90s, 30m or 1h30m")


#: Exit codes of every command.
EXIT_CODES = (
    "0  done",
    "1  failed",
    "2  the request is malformed",
    "4  not found",
    "5  conflict: claimed, blocked, busy, refused",
    "75  locked by another process; try again",
    "130  interrupted",
)


class Parser(argparse.ArgumentParser):
    """The arguments of one command."""

    def __init__(self, found: ResolvedCommand) -> None:
        command = found.command
        super().__init__(
            prog=found.prog,
            description=command.about or found.help + ".",
            epilog=_epilog(command.examples, command.exits),
            formatter_class=_formatter,
            allow_abbrev=False,
        )
        self.known: list[argparse.Action] = []  #: its own arguments, in the order of its help
        self._id_options: set[str] = set()
        if command.arguments is not None:
            command.arguments(self)
        self._add_common()

    def add(self, *names: str, **how: object) -> argparse.Action:
        """Add an argument, as `add_argument` would."""
        action = self.add_argument(*names, **how)  # type: ignore[arg-type]  # passed on as given
        self.known.append(action)
        return action

    def add_ids(self, *names: str, help: str, dest: str | None = None) -> None:
        """Add an option for ids: `1 2`, `1,2`, or repeated."""
        how: dict[str, object] = {"dest": dest} if dest else {}
        self.add(*names, action="extend", type=id_list, metavar="ID", default=[], help=help, **how)
        self._id_options.update(names)

    def add_words(self, *names: str, metavar: str, help: str, dest: str, default: object = None) -> None:
        """Add an option for words: `a,b`, or repeated."""
        self.add(*names, action="extend", type=word_list, metavar=metavar, default=default, help=help, dest=dest)

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Every option by each of its names, including the common ones."""
        return {name: action for action in (*self.known, *self.common) for name in action.option_strings}

    def takes_ids(self, action: argparse.Action) -> bool:
        """Return whether several ids may follow an option."""
        return not self._id_options.isdisjoint(action.option_strings)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse `words`.

        Raises:
            UsageError: they are invalid.
        """
        return self.parse_args(self._options_first(self._joined(self._with_values(words))))

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing: `main` reports it."""
        raise UsageError(f"{message[:1].upper()}{message[1:]}. See `{self.prog} -h`.")

    def _with_values(self, words: Sequence[str]) -> list[str]:
        """Turn `--timeout -5s` into `--timeout=-5s`: a negative number is a value, refused by its type.

        The words of a command within the command are unchanged.
        """
        joined: list[str] = []
        known, at = self.options, 0
        has_command = any(action.nargs == argparse.REMAINDER for action in self.known)
        while at < len(words):
            word = words[at]
            if word == "--" or (has_command and not word.startswith("-")):
                break
            at += 1
            joined.append(word)
            action = known.get(word)
            if action is not None and action.nargs is None and at < len(words):
                joined[-1:] = [f"{word}={words[at]}"] if _is_negative(words[at]) else [word, words[at]]
                at += 1
        return [*joined, *words[at:]]

    def _joined(self, words: Sequence[str]) -> list[str]:
        """Turn `--blocked-by 1 2,3 Subject` into `--blocked-by=1,2,3 Subject`."""
        joined: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            at += 1
            if word == "--":
                return [*joined, *words[at - 1 :]]
            if word in self._id_options:
                first = at
                while at < len(words) and is_id_list(words[at]):
                    at += 1
                if at > first:
                    word = f"{word}={','.join(words[first:at])}"
            joined.append(word)
        return joined

    def _options_first(self, words: list[str]) -> list[str]:
        """Turn `JOB --eof TEXT` into `--eof JOB TEXT`: argparse takes no optional positional after an option.

        Words stay unchanged where that could change the meaning: for a command within the command, and for
        options that are unknown or take a variable number of words.
        """
        if any(action.nargs == argparse.REMAINDER for action in self.known):
            return words
        options: list[str] = []
        others: list[str] = []
        known, at = self.options, 0
        while at < len(words) and words[at] != "--":
            word = words[at]
            action = known.get(word.partition("=")[0]) if word.startswith("-") and len(word) > 1 else None
            if action is None:
                if word.startswith("-") and len(word) > 1:
                    return words
                others.append(word)
            elif action.nargs in ("?", "*", "+"):
                return words
            else:
                takes = action.nargs is None and "=" not in word
                if takes and (at + 1 == len(words) or words[at + 1] in known or words[at + 1] == "--"):
                    return words  # its value is missing, and no other word must become it
                options += words[at : at + 1 + takes]
                at += takes
            at += 1
        return [*options, *others, *words[at:]]

    def _add_common(self) -> None:
        add = self.add_argument_group("options of every command").add_argument
        self.common = (
            add("--list", metavar="LIST", help="Task list to use; default: the project's."),
            add("--by", metavar="AGENT", help="Agent to act as; default: TASKYARD_AGENT."),
            add("--tasks-dir", metavar="DIR", help="Directory of the task lists; default: Claude Code's."),
            add("--json", dest="as_json", action="store_true", help="Print JSON, also for errors."),
            add("-q", "--quiet", action="store_true", help="Print only ids."),
            add("-v", "--verbose", action="store_true", help="Print which list is used, and why."),
            add("--no-color", action="store_true", help="Disable colours, like NO_COLOR=1."),
        )


def _is_negative(word: str) -> bool:
    return word.startswith("-") and word[1:2].isdigit()


def _formatter(prog: str) -> argparse.HelpFormatter:
    # The width is given because argparse would import shutil to find it, for each argument.
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() else 100
    return argparse.RawDescriptionHelpFormatter(prog, width=max(40, min(width, 100)), max_help_position=28)


def _epilog(examples: Sequence[str], exits: Sequence[str]) -> str:
    own = {line.partition("  ")[0]: line for line in exits}
    codes = [own.pop(line.partition("  ")[0], line) for line in EXIT_CODES]
    lines = ["exit codes:", *(f"  {line}" for line in (*codes, *own.values()))]
    if examples:
        lines = ["examples:", *(f"  {example}" for example in examples), "", *lines]
    return "\n".join(lines)
