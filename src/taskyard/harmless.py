"""
Text from outside made harmless: it is read, and never acts.

Names, subjects and output may hold escape codes, control characters and marks that reverse what is read.
"""

from __future__ import annotations

_JOINERS = "\u200c\u200d"  # zero-width, and needed by scripts and composed emoji


def safe(text: str, *, lines: bool = False) -> str:
    r"""`text` as a terminal may show it: what would act instead of being read is shown as `\x1b`, `\u202e`.

    On one line unless `lines` are wanted.

    >>> safe("red \x1b[31m\nnext")
    'red \\x1b[31m next'
    """
    if text.isprintable():  # decided in C, and nearly always true
        return text
    return "".join(char if char.isprintable() or char in _JOINERS else _shown(char, lines) for char in text)


def _shown(char: str, lines: bool) -> str:
    if char == "\n" and lines:
        return char
    if char in "\n\t" or (char >= "\xa0" and char.isspace()):  # spaces of other widths, and line separators
        return " "
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
