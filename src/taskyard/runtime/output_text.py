r"""
From the bytes of an output to text that only can be read: for a terminal, and for a model.

What would act instead of being read is taken out: escape sequences (titles, links, cursor movement, clipboard), control
characters, NUL. Marks that reorder or hide what follows are shown as `\u202e`. Nothing here touches a file.
"""

from __future__ import annotations

import codecs
import os
import re

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Characters a model is given, and the most it can be set to: a few pages, and what no context bears twice.
MODEL_LIMIT = 32_000
LARGEST_MODEL_LIMIT = 160_000
LIMIT_VARIABLE = "TASK_MAX_OUTPUT_LENGTH"

_COLOUR = r"\x1b\[[0-9;:]{0,64}m"
_ESCAPES = re.compile(
    rf"(?P<colour>{_COLOUR})"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # cursor movement, modes, questions to the terminal
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, other strings
    r"|\x1b[ -/]*[0-~]?"
)

#: An escape sequence, a line break or a string that may go on in the next piece.
_UNFINISHED = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*\x1b?\Z"
    r"|\x1b[ -/]*\Z"
    r"|\r\Z"
)

#: A sequence longer than this is none; it is not waited for, only taken out.
_LONGEST_ESCAPE = 4096

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")

#: What reorders, hides or breaks the text around it; joiners are not among them, scripts and emoji need those.
_TRICKS = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_RESET = "\x1b[0m"


class ModelText(NamedTuple):
    """An output as a model is given it."""

    text: str
    was_truncated: bool


class TerminalText:
    """An output made safe for a terminal, piece by piece: characters and sequences may be cut anywhere."""

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._is_coloured = False

    def feed(self, data: bytes) -> str:
        """What can be shown of `data` and what was held back before."""
        return self._made_safe(self._held + self._decoder.decode(data), is_last=False)

    def finish(self) -> str:
        """What was held back, and the end of any colour."""
        text = self._made_safe(self._held + self._decoder.decode(b"", final=True), is_last=True)
        self._decoder.reset()
        reset = _RESET if self._is_coloured else ""
        self._is_coloured = False
        return text + reset

    def _made_safe(self, text: str, *, is_last: bool) -> str:
        self._held = ""
        found = None if is_last else _UNFINISHED.search(text, _last_start(text))
        if found is not None:
            text, self._held = text[: found.start()], text[found.start() :]
        return self._cleaned(text)

    def _cleaned(self, text: str) -> str:
        if text.replace("\n", "").isprintable():  # decided in C, and nearly always true
            return text
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _ESCAPES.sub(self._colour, text)
        return _TRICKS.sub(_shown, _CONTROLS.sub("", text))

    def _colour(self, found: re.Match[str]) -> str:
        colour = found["colour"] if self._colours else None
        if not colour:
            return ""
        self._is_coloured = colour not in (_RESET, "\x1b[m")
        return colour


def _last_start(text: str) -> int:
    """Where the first sequence that may go on behind `text` can begin.

    None goes on past a bell, the end of a string, a line break or another escape, except an escape at the very end.
    A search from there meets no character twice.
    """
    start = max(len(text) - _LONGEST_ESCAPE, 0)
    ended = max(text.rfind(end, start) for end in "\x07\x9c\n")
    escape = text.rfind("\x1b", start, len(text) - 1)
    return max(start, ended + 1, escape)


def for_terminal(data: bytes, *, colours: bool = False) -> str:
    r"""`data` as a terminal may show it; colours survive if wanted, and end where the text does.

    >>> for_terminal(b"a\x1b[2Jb\x1b]0;title\x07c\x00")
    'abc'
    """
    text = TerminalText(colours=colours)
    return text.feed(data) + text.finish()


def for_model(data: bytes, *, path: str, limit: int, is_all: bool = True) -> ModelText:
    """The end of `data` as plain text of at most `limit` characters, the line that says it was cut included.

    `is_all` is False where more came before `data`. A limit too small for that line leaves it out.
    """
    text = for_terminal(data if is_all else _from_a_character(data))
    if is_all and len(text) <= limit:
        return ModelText(text, was_truncated=False)
    header = f"[Truncated. Full output: {path}]\n\n"
    if len(header) >= limit:
        header = ""
    room = limit - len(header)
    return ModelText(header + (text[-room:] if room > 0 else ""), was_truncated=True)


def model_limit(env: Mapping[str, str] | None = None) -> int:
    """How many characters a model is given: `TASK_MAX_OUTPUT_LENGTH`, within reason; rubbish there counts as unset."""
    given = (os.environ if env is None else env).get(LIMIT_VARIABLE, "").strip()
    if not (given.isascii() and given.isdigit()) or len(given) > 18 or int(given) == 0:
        return MODEL_LIMIT
    return min(int(given), LARGEST_MODEL_LIMIT)


def whole_characters(data: bytes) -> int:
    """How many bytes of `data` to take so that no character is cut in two at its end."""
    for back in range(1, min(4, len(data) + 1)):
        lead = data[-back]
        if lead < 0x80:
            break
        if lead >= 0xC0:
            size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return len(data) - back if size > back else len(data)
    return len(data)


def _from_a_character(data: bytes) -> bytes:
    """`data` without the rest of a character that was cut in two at its beginning."""
    at = 0
    while at < min(3, len(data)) and 0x80 <= data[at] < 0xC0:
        at += 1
    return data[at:]


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
