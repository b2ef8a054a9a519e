"""The key table of the terminal view, user key bindings, the help screen, and styled text for Textual.

`KEYS` lists every key: what it does, where, and its description. Bindings, the footer, the command palette, the help of
a pane and `docs/reference/keys.md` are generated from it. The ids are those of `[keys]` in config.toml, which is
checked before anything is shown:

    [keys]
    claim = "C"
    stop = "ctrl+x,delete"

Colours are chosen by meaning from the sixteen that the terminal defines, so the view is readable on dark and light
backgrounds. Textual implements `NO_COLOR`: it removes all colours and keeps bold, reverse and underline.
"""

from __future__ import annotations

import os
from functools import lru_cache

from rich.cells import chop_cells
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget

from taskyard import config
from taskyard.core.text import width
from taskyard.core.values import NamedTuple, as_object, nearest
from taskyard.errors import BadValue
from taskyard.ui.ansi import PLAIN, Pen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from textual import events
    from textual.app import ComposeResult

    from taskyard.ui.ansi import Run


#: Prefix of a team colour in a look: `team-purple`.
TEAM_COLOUR = "team-"

#: The colours that a team assigns to its members, as terminal colours.
_TEAM_COLOURS = {
    "red": "red",
    "blue": "blue",
    "green": "green",
    "yellow": "yellow",
    "purple": "magenta",
    "orange": "bright_red",
    "pink": "bright_magenta",
    "cyan": "cyan",
}

#: The five tokens, and the team colours; "default" keeps the terminal's own colour.
COLOURS = {
    "accent": "blue",
    "pass": "green",
    "warn": "yellow",
    "fail": "red",
    "muted": "bright_black",
    **{f"{TEAM_COLOUR}{name}": colour for name, colour in _TEAM_COLOURS.items()},
}

_COLOUR_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


class Piece(NamedTuple):
    """Some text in one look: a token, and marks such as `bold`, separated by spaces."""

    text: str
    look: str = ""


@lru_cache(maxsize=512)
def style_of(look: str) -> RichStyle:
    """Return `accent bold` as a style."""
    words = look.split()
    colour = next((COLOURS[word] for word in words if word in COLOURS), None)
    marks = {mark: True for mark in ("bold", "reverse", "underline", "italic") if mark in words}
    return RichStyle(color=colour, **marks)  # type: ignore[arg-type]  # the names of its own marks


@lru_cache(maxsize=512)
def style_of_pen(pen: Pen) -> RichStyle:
    """Return a pen (a command's own colours) as a style."""
    marks = {mark: True for mark in pen.marks if mark != "strike"}
    return RichStyle(
        color=None if pen.fg is None else _colour_name(pen.fg),
        bgcolor=None if pen.bg is None else _colour_name(pen.bg),
        strike="strike" in pen.marks or None,
        **marks,  # type: ignore[arg-type]  # the same
    )


def _colour_name(colour: int) -> str:
    return f"bright_{_COLOUR_NAMES[colour - 8]}" if colour > 7 else _COLOUR_NAMES[colour]


def strip_of(pieces: Iterable[Piece], width: int, look: str = "") -> Strip:
    """Return pieces as one line of `width` cells; `look` is laid over all of it."""
    over = style_of(look) if look else RichStyle.null()
    if over.reverse:  # one bar, whatever colours its pieces have
        pieces = [Piece(piece.text, "bold" if "bold" in piece.look else "") for piece in pieces]
    segments = [Segment(piece.text, style_of(piece.look) + over) for piece in pieces if piece.text]
    return Strip(segments).adjust_cell_length(width, over)


@lru_cache(maxsize=8_192)
def folded(text: str, columns: int) -> tuple[str, ...]:
    """Fold a text into lines of at most `columns` cells; wide characters are not split.

    >>> folded("a\u65e5\u672c", 4) == ("a\u65e5", "\u672c")
    True
    """
    return tuple(chop_cells(text, columns)) or (text,)


def blank(width: int) -> Strip:
    """Return an empty line."""
    return Strip.blank(width, RichStyle.null())


def strip_of_runs(runs: Sequence[Run]) -> Strip:
    """Return a line of an output."""
    return Strip([Segment(run.text, style_of_pen(run.pen) if run.pen != PLAIN else RichStyle.null()) for run in runs])


#: Where a key works: everywhere, or while one of these has the focus.
PLACES = {
    "": "Everywhere",
    "tasks": "On a task",
    "jobs": "On a background job",
    "people": "On a team member",
    "output": "In an output",
    "details": "In the details",
    "graph": "In the graph",
}


class KeyRow(NamedTuple):
    """One action and its keys."""

    id: str
    keys: str  #: as in config.toml: `x`, `ctrl+p`; several separated by commas
    action: str
    short: str  #: a word for the footer
    full: str  #: a longer label, if there is room
    about: str  #: what it does
    places: tuple[str, ...] = ("",)
    hint: int = 0  #: footer order, smallest first; 0: not in the footer


_LISTS = ("tasks", "jobs", "people")
_ALL = (*_LISTS, "output", "details", "graph")
_FIND = (*_LISTS, "output")
_TASK, _JOB = ("tasks", "details"), ("jobs", "output", "details")

KEYS: tuple[KeyRow, ...] = (
    KeyRow("open", "enter", "open", "open", "open", "Open what is selected, or go where a line leads", _ALL, 1),
    KeyRow("back", "escape", "step_back", "back", "one step back", "One step back", hint=8),
    KeyRow("tasks", "1", "focus_pane(1)", "tasks", "to the tasks", "To the tasks"),
    KeyRow("background", "2", "focus_pane(2)", "background", "to the jobs", "To the background jobs"),
    KeyRow("detail", "3", "focus_pane(3)", "detail", "to the detail", "To the detail"),
    KeyRow("down", "j,down", "move(1)", "down", "down", "One down"),
    KeyRow("up", "k,up", "move(-1)", "up", "up", "One up"),
    KeyRow("page_down", "pagedown", "page(1)", "page down", "page down", "One page down"),
    KeyRow("page_up", "pageup", "page(-1)", "page up", "page up", "One page up"),
    KeyRow("first", "g,home", "edge(-1)", "first", "to the first", "To the first"),
    KeyRow("last", "G,end", "edge(1)", "last", "to the last", "To the last; in an output, to its end, and follow it"),
    KeyRow("left", "h,left", "sideways(-1)", "left", "left", "To the left; in the graph, to what a task waits for"),
    KeyRow("right", "l,right", "sideways(1)", "right", "right", "To the right; in the graph, to what waits for a task"),
    KeyRow("tab_before", "left_square_bracket", "turn_tab(-1)", "tab", "tab before", "The tab before of the detail"),
    KeyRow("tab_next", "right_square_bracket", "turn_tab(1)", "tab", "next tab", "The next tab of the detail"),
    KeyRow("claim", "c", "claim", "claim", "claim for me", "Claim the task for yourself", _TASK, 2),
    KeyRow("start", "s", "start", "start", "start", "Start work on the task", _TASK, 7),
    KeyRow("done", "d", "done", "done", "done", "Mark the task completed", _TASK, 3),
    KeyRow("block", "b", "block", "block", "block by…", "Make the task wait for others", _TASK),
    KeyRow("release", "u", "release", "release", "release", "Put the task back into the pool", _TASK),
    KeyRow("add", "a", "add", "add", "add a task", "Add a task", hint=6),
    KeyRow("run", "r", "run", "run", "run a command", "Run a command in the foreground of this view", hint=7),
    KeyRow("to_background", "", "to_background", "leave", "leave it", "Move the foreground job to the background"),
    KeyRow("stop", "x", "stop", "stop", "stop", "Stop the job: twice within two seconds", (*_JOB, "people"), 4),
    KeyRow("pause", "p", "pause", "pause", "pause or resume", "Pause the job, or let it go on", _JOB),
    KeyRow("dismiss", "D", "dismiss", "dismiss", "dismiss", "Leave the ended job out of every view", _JOB),
    KeyRow("everywhere", "E", "everywhere", "all", "every project", "Jobs of every project, or of this one", ("jobs",)),
    KeyRow("mail", "m", "mail", "mail", "mail", "Write to the agent", ("tasks", "jobs", "people", "details"), 9),
    KeyRow("filter", "slash", "search", "filter", "filter", "Filter rows (`!` inverts); find in an output", _FIND, 5),
    KeyRow("next", "n", "find(1)", "next", "next match", "The next match in the output", ("output",), 6),
    KeyRow("previous", "N", "find(-1)", "previous", "match before", "The match before it", ("output",)),
    KeyRow("follow", "f", "follow", "follow", "follow", "Follow the output, or stop following", ("output",), 2),
    KeyRow("wrap", "w", "wrap", "wrap", "wrap", "Wrap long lines", ("output",), 3),
    KeyRow("times", "t", "times", "times", "times", "Show when lines came, where you saw them come", ("output",)),
    KeyRow("copy", "y", "copy", "copy", "copy id or path", "Copy the id; in an output, the path of its file", _ALL),
    KeyRow("pager", "o", "pager", "pager", "open in $PAGER", "Open the output in $PAGER", _JOB),
    KeyRow("palette", "ctrl+p", "command_palette", "palette", "palette", "Everything that can be done, to search in"),
    KeyRow("keys", "question_mark", "help", "keys", "keys", "The keys that work here", hint=10),
    KeyRow("quit", "q,ctrl+q", "quit", "quit", "quit", "Leave; jobs keep running", hint=11),
)  # fmt: skip

BY_ID: Mapping[str, KeyRow] = {row.id: row for row in KEYS}

#: Display form of Textual's key names.
_KEY_SYMBOLS = {
    "slash": "/",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "exclamation_mark": "!",
    "escape": "esc",
    "pagedown": "page down",
    "pageup": "page up",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


def keys_at(place: str, kind: str = "") -> Iterator[KeyRow]:
    """Yield the keys that work in a place, its own first, then those that work everywhere.

    `kind`: what the details show, a "task" or a "job": keys of the other kind are left out there.
    """
    other = {"task": "jobs", "job": "tasks"}.get(kind, "")
    own = {"task": "tasks", "job": "jobs"}.get(kind, "")
    for row in KEYS:
        if place and place in row.places and not (place == "details" and other in row.places and own not in row.places):
            yield row
    yield from (row for row in KEYS if "" in row.places)


def hints(place: str, kind: str = "") -> list[KeyRow]:
    """Return the keys for the footer, most useful first."""
    found = sorted((row for row in keys_at(place, kind) if row.hint), key=lambda row: row.hint)
    return [
        row._replace(short="find", full="find") if row.id == "filter" and place == "output" else row for row in found
    ]


def format_keys(keys: str) -> str:
    """Return keys in display form.

    >>> format_keys("slash"), format_keys("j,down"), format_keys("ctrl+right_square_bracket")
    ('/', 'j ↓', 'Ctrl+]')
    """
    return " ".join(_format_key(key.strip()) for key in keys.split(",") if key.strip())


def _format_key(key: str) -> str:
    *held, last = key.split("+") if key != "+" else ["+"]
    last = _KEY_SYMBOLS.get(last, last)
    return "+".join([*(word.capitalize() for word in held), last.upper() if held else last])


def reference_page() -> str:
    """Return `docs/reference/keys.md` without its header."""
    lines = ["# Keys of the terminal view", ""]
    lines += ["`taskyard tui` shows those of a pane with `?`, and all of them with `Ctrl+P`. Each can be changed:", ""]
    lines += [
        "```toml",
        "# ~/.config/taskyard/config.toml",
        "[keys]",
        'claim = "C"',
        'stop = "ctrl+x,delete"',
        "```",
        "",
    ]
    lines += ["A key is a character or a name such as `escape`, `f2` or `ctrl+g`; several are parted by commas."]
    lines += ["`to_background` is set by `background_key`: `Ctrl+B`, in tmux `Ctrl+]`."]
    for place, title in PLACES.items():
        lines += ["", f"## {title}", "", "| key | id | what it does |", "|---|---|---|"]
        lines += [f"| {_cell(row)} | `{row.id}` | {row.about} |" for row in KEYS if place in row.places]
    return "\n".join(lines) + "\n"


def _cell(row: KeyRow) -> str:
    if row.id == "to_background":
        return "`Ctrl+B`"
    return " ".join(f"`{_format_key(key)}`" for key in row.keys.split(","))


#: Modifiers that may precede a key.
_MODIFIERS = ("ctrl", "shift", "alt", "super")

#: Keys that have a name and no character.
_NAMED_KEYS = frozenset(
    ["enter", "escape", "tab", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"]
    + ["up", "down", "left", "right"]
    + [f"f{number}" for number in range(1, 25)]
)

#: Characters whose name in Textual is not their Unicode name.
_TEXTUAL_NAMES = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}


def load_keymap(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the keys that differ from the table, by id, in Textual's notation.

    Raises:
        Damaged: The settings file is not TOML.
        BadValue: There is no such id or key, or one key would have two actions.
    """
    return check_keymap(_keys_table(os.environ if environ is None else environ))


def check_keymap(table: Mapping[str, object]) -> dict[str, str]:
    """Check a user's `[keys]` table and convert it to Textual's notation; see `load_keymap`."""
    found: dict[str, str] = {}
    for name, value in table.items():
        if name not in BY_ID or name == "to_background":
            near = nearest(name, BY_ID)
            known = f"one of {', '.join(row.id for row in KEYS)}"
            if name == "to_background":
                known = "the setting background_key, which is for `taskyard run` too"
            raise BadValue("[keys]", name, f"{near[0]!r}" if near and near[0] != name else known)
        found[name] = _keys(name, value)
    _check_duplicates(found)
    return found


def _keys(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue(f"keys.{name}", value, 'a key such as "x", "ctrl+g" or "f2"')
    return ",".join(_key(name, part.strip()) for part in value.split(","))


def _key(name: str, text: str) -> str:
    if len(text) == 1 and text.isprintable() and text != " ":
        return _char_name(text)
    *held, last = text.lower().split("+")
    if len(last) == 1 and held:
        last = _char_name(last)
    elif last not in _NAMED_KEYS:
        last = text.split("+")[-1] if not held else last
        near = nearest(last.lower(), [*_NAMED_KEYS, *_char_names()])
        if last not in _char_names():
            expected = f'"{"+".join([*held, near[0]])}"' if near else 'a key such as "x", "ctrl+g" or "f2"'
            raise BadValue(f"keys.{name}", text, expected)
    if wrong := [word for word in held if word not in _MODIFIERS]:
        near = nearest(wrong[0], _MODIFIERS)
        raise BadValue(f"keys.{name}", text, f"{near[0] if near else ', '.join(_MODIFIERS)} and a key")
    return "+".join([*held, last])


def _char_name(char: str) -> str:
    """Return Textual's name of a character."""
    if char.isalnum():
        return char
    import unicodedata

    name = unicodedata.name(char, char).lower().replace("-", "_").replace(" ", "_")
    return _TEXTUAL_NAMES.get(name, name)


def _char_names() -> frozenset[str]:
    return frozenset(_char_name(chr(code)) for code in range(0x21, 0x7F) if not chr(code).isalnum())


def _check_duplicates(found: Mapping[str, str]) -> None:
    """Check that each key has one action, whatever has the focus."""
    owner: dict[str, str] = {}
    for row in KEYS:
        for key in filter(None, found.get(row.id, row.keys).split(",")):
            if key in owner:
                mine = row.id if row.id in found else owner[key]
                other = owner[key] if mine == row.id else row.id
                raise BadValue(f"keys.{mine}", format_keys(key), f"another key: that one is {other}'s")
            owner[key] = row.id


def _keys_table(env: Mapping[str, str]) -> Mapping[str, object]:
    table = config.read_config_file(env).get("keys", {})
    if (keys := as_object(table)) is None:
        raise BadValue("keys", table, 'a table: `[keys]` and lines such as `claim = "C"`')
    return keys


_SCROLL_KEYS = ("up", "down", "pageup", "pagedown", "home", "end", "j", "k")


class _Lines(Widget):
    DEFAULT_CSS = "_Lines { width: 100%; }"

    def __init__(self, lines: list[list[Piece]]) -> None:
        super().__init__()
        self._lines = lines
        self.styles.height = len(lines)

    def render_line(self, y: int) -> Strip:
        return strip_of(self._lines[y] if y < len(self._lines) else [], self.size.width)


class HelpScreen(ModalScreen[None]):
    """The keys of a place; shown over everything else until a key is pressed."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: transparent; }
    HelpScreen > VerticalScroll {
        width: 76; max-width: 100%; max-height: 90%; height: auto;
        border: solid ansi_blue; background: ansi_default; padding: 0 1; scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, place: str, keymap: Mapping[str, str], kind: str = "") -> None:
        super().__init__()
        self._place, self._keymap, self._kind = place, keymap, kind

    def compose(self) -> ComposeResult:
        """Yield a table of two columns."""
        with VerticalScroll() as table:
            table.border_title = f" Keys: {PLACES[self._place].lower()} "
            table.border_subtitle = " any key closes "
            yield _Lines(help_lines(self._place, self._keymap, self._kind))

    def on_key(self, event: events.Key) -> None:
        """Close on any key except those that scroll."""
        if event.key not in _SCROLL_KEYS:
            event.stop()
            event.prevent_default()
            self.dismiss()


def help_lines(place: str, keymap: Mapping[str, str], kind: str = "") -> list[list[Piece]]:
    """Return keys and what they do, those of the place first."""
    lines: list[list[Piece]] = []
    was_own = True
    for row in keys_at(place, kind):
        is_own = "" not in row.places
        if was_own and not is_own and lines:
            lines.append([])
        was_own = is_own
        if keys := format_keys(keymap.get(row.id, row.keys)):
            lines.append([Piece(f" {keys}{' ' * max(13 - width(keys), 1)}", "accent"), Piece(row.about)])
    return lines
