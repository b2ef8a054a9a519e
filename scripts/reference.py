"""
Write the reference pages that follow from the code: `docs/reference/cli.md`, `errors.md` and `keys.md`.

    python scripts/reference.py            write them
    python scripts/reference.py --check    exit 1 if one of them is not current
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from argparse import Action
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
sys.path.insert(0, str(ROOT / "src"))

from taskyard import errors  # noqa: E402
from taskyard.cli.main import COMMANDS, Command, CommandEntry, ResolvedCommand, load_entry  # noqa: E402
from taskyard.cli.parser import EXIT_CODES, Parser  # noqa: E402
from taskyard.ui.tui import keys  # noqa: E402

_HEAD = "<!-- Written by scripts/reference.py from the code; `python scripts/reference.py` brings it up to date. -->\n"


def commands(table: Mapping[str, CommandEntry] = COMMANDS, words: tuple[str, ...] = ()) -> Iterator[ResolvedCommand]:
    """Every command for people, in the order of the help."""
    for name, row in table.items():
        if row.hidden or importlib.util.find_spec(row.target.partition(":")[0]) is None:
            continue
        found = load_entry(row)
        path = (*words, name) if name else words
        if isinstance(found, Command):
            yield ResolvedCommand(path, found, row.help)
        else:
            yield from commands(found, path)


def cli_page() -> str:
    """The whole command line."""
    found = list(commands())
    lines = [_HEAD, "# The command line", "", "Options may stand before or after a command's name.", ""]
    lines += ["| command | what it does |", "|---|---|"]
    lines += [f"| [`{one.prog}`](#{'-'.join(('taskyard', *one.words))}) | {one.help} |" for one in found]
    common = Parser(found[0]).common
    lines += ["", "## Options of every command", "", *_table(common), "", "## Exit codes", "", *_exits(EXIT_CODES)]
    lines += ["", "A reader that closes the pipe early ends a command with 141, as it would any other program."]
    for one in found:
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def _section(found: ResolvedCommand) -> Iterator[str]:
    parser = Parser(found)
    yield f"## {found.prog}"
    yield ""
    yield (found.command.about or found.help + ".").replace("\n", " ")
    yield ""
    yield "```"
    yield from found.command.examples
    yield "```"
    if parser.known:
        yield ""
        yield from _table(parser.known)
    if found.command.exits:
        yield ""
        yield "Exit codes of its own:"
        yield ""
        yield from _exits(found.command.exits)


def _table(actions: Sequence[Action]) -> Iterator[str]:
    yield "| argument | meaning |"
    yield "|---|---|"
    for action in actions:
        value = "" if action.nargs == 0 else _value(action)
        names = ", ".join(f"`{name}{value}`" for name in action.option_strings) or f"`{_value(action).strip()}`"
        yield f"| {names} | {action.help} |"


def _value(action: Action) -> str:
    name = str(action.metavar) if action.metavar else "/".join(action.choices or [action.dest.upper()])
    shape = {"?": f"[{name}]", "*": f"[{name}…]", "+": f"{name}…"}.get(str(action.nargs), name)
    return f" {shape}"


def _exits(codes: tuple[str, ...]) -> Iterator[str]:
    yield "| code | meaning |"
    yield "|---|---|"
    for line in codes:
        code, _, meaning = line.partition("  ")
        yield f"| {code} | {meaning} |"


def errors_page() -> str:
    """Every deliberate error."""
    found = [getattr(errors, name) for name in errors.__all__]
    classes = [one for one in found if isinstance(one, type) and issubclass(one, errors.TaskyardError)]
    lines = [
        _HEAD,
        "# Errors",
        "",
        'With `--json` a command that fails answers `{"schema_version": 1, "error": {"code", "message", …}}` and',
        "the facts listed here. In Python the same names are attributes of the exception. Match on codes and classes,",
        "never on messages.",
        "",
        "| code | class | exit code | meaning | facts |",
        "|---|---|---|---|---|",
    ]
    for one in sorted(classes, key=lambda one: (one.exit_code, one.code, one.__name__)):
        facts = ", ".join(f"`{name}`" for name in _facts(one))
        lines.append(f"| `{one.code}` | `{one.__name__}` | {one.exit_code} | {inspect.getdoc(one)} | {facts} |")
    return "\n".join(lines).replace("  |", " |") + "\n"


def _facts(error: type) -> list[str]:
    if "__init__" not in vars(error):
        return []
    found = re.findall(r"self\.([a-z]\w*) = ", inspect.getsource(error))
    return list(dict.fromkeys(found))


def keys_page() -> str:
    """Every key of the terminal view."""
    return f"{_HEAD}\n{keys.reference_page()}"


WRITTEN = {"cli.md": cli_page, "errors.md": errors_page, "keys.md": keys_page}


def main(arguments: list[str]) -> int:
    """Write the pages, or say which are not current."""
    stale = []
    for name, page in WRITTEN.items():
        path, text = PAGES / name, page()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written")
    if "--check" in arguments and stale:
        print(f"not current: {', '.join(stale)}; run python scripts/reference.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
