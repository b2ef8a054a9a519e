"""
Every key of the terminal view, in one table: what it does, where, and what people read about it.

Bindings, the footer, the palette, the help of a pane and `docs/reference/keys.md` all come from here. The ids are what
`[keys]` in config.toml names.
"""

from __future__ import annotations

from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Where a key means something: everywhere, or while one of these has the focus.
PLACES = {
    "": "Everywhere",
    "tasks": "On a task",
    "jobs": "On a background job",
    "people": "On somebody of the team",
    "output": "In an output",
    "details": "In the details",
    "graph": "In the graph",
}


class KeyRow(NamedTuple):
    """One key, or several that do the same."""

    id: str
    keys: str  #: as config.toml has them: `x`, `ctrl+p`, several with commas
    action: str
    short: str  #: a word for the footer
    full: str  #: the same with more room
    about: str  #: what it does
    places: tuple[str, ...] = ("",)
    hint: int = 0  #: the smaller, the sooner it is in the footer; 0: never


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
    KeyRow("start", "s", "start", "start", "start", "Say that work on the task begins", _TASK, 7),
    KeyRow("done", "d", "done", "done", "done", "Say that the task is done", _TASK, 3),
    KeyRow("block", "b", "block", "block", "block by…", "Let the task wait for others", _TASK),
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

#: Keys by the names that bindings use, as people say them.
_SAID = {
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


def at(place: str, kind: str = "") -> Iterator[KeyRow]:
    """The keys that work in a place, its own first, then those that work everywhere.

    `kind`: what is shown in the details, a "task" or a "job": the keys of the other do nothing there.
    """
    other = {"task": "jobs", "job": "tasks"}.get(kind, "")
    own = {"task": "tasks", "job": "jobs"}.get(kind, "")
    for row in KEYS:
        if place and place in row.places and not (place == "details" and other in row.places and own not in row.places):
            yield row
    yield from (row for row in KEYS if "" in row.places)


def hints(place: str, kind: str = "") -> list[KeyRow]:
    """Those worth a word in the footer, most useful first."""
    found = sorted((row for row in at(place, kind) if row.hint), key=lambda row: row.hint)
    return [
        row._replace(short="find", full="find") if row.id == "filter" and place == "output" else row for row in found
    ]


def said(keys: str) -> str:
    """Keys as people say them.

    >>> said("slash"), said("j,down"), said("ctrl+right_square_bracket")
    ('/', 'j ↓', 'Ctrl+]')
    """
    return " ".join(_said(key.strip()) for key in keys.split(",") if key.strip())


def _said(key: str) -> str:
    *held, last = key.split("+") if key != "+" else ["+"]
    last = _SAID.get(last, last)
    return "+".join([*(word.capitalize() for word in held), last.upper() if held else last])


def page() -> str:
    """`docs/reference/keys.md`, but for its head."""
    lines = ["# Keys of the terminal view", ""]
    lines += ["`taskyard tui` shows those of a pane with `?`, and all of them with `Ctrl+P`. Each can be another:", ""]
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
    return " ".join(f"`{_said(key)}`" for key in row.keys.split(","))
