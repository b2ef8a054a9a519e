"""`taskyard install CLIENT`: another program's configuration, changed so that it starts Taskyard."""

from __future__ import annotations

import os
import sys

from taskyard import config, paths
from taskyard.cli.command import Command
from taskyard.cli.output import answer, confirm, print_line, warn
from taskyard.errors import UsageError
from taskyard.view.text import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.clients.planning import Plan
    from taskyard.clients.starting import Start
    from taskyard.clients.target import Wanted

#: Those we know, with what they are called; kept here so that a parser costs no client's module.
CLIENTS = {"claude-code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "opencode"}

#: Those that a person sets up by hand, with what `--print` shows.
PRINTED = ("vscode",)

_OWN_LIST = (
    "Claude Code's own task tools keep a list per session. To have them share one with Taskyard, name it with --list,"
    " or install with --scope project."
)
_PERMISSION = (
    "Claude Code asks before it calls a tool of Taskyard, and `claude -p` refuses it. `taskyard install claude-code"
    " --allow` adds the rule mcp__taskyard to permissions.allow of its settings; the rule also allows Bash and Agent of"
    " Taskyard, which run commands."
)
_DREAMS = (
    "When a Claude Code session ends, a hook starts a dream in the background if one is due: it reads past sessions and"
    " updates the project's memory folder, with the engine {engine}. `dream_enabled = false` in config.toml turns that"
    " off."
)
_PROJECT = (
    "These files belong to the project and now hold paths of this machine. Whoever else gets them has to run"
    " `taskyard install` too."
)


def client_arguments(parser: Parser, *, optional: bool = False) -> None:
    """What `install` and `uninstall` have in common."""
    how: dict[str, object] = {"nargs": "?"} if optional else {}
    names = (*CLIENTS, *PRINTED) if optional else tuple(CLIENTS)
    words = ", ".join(CLIENTS) + (f"; with --print also {', '.join(PRINTED)}" if optional else "")
    parser.add("client", choices=names, help=f"The program: {words}.", **how)
    parser.add(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="In all your projects (user, the default), or in this project's own files.",
    )
    parser.add("--dry-run", action="store_true", help="Only say what would change.")
    parser.add("--yes", "-y", action="store_true", help="Do not ask.")


def _arguments(parser: Parser) -> None:
    client_arguments(parser, optional=True)
    parser.add("--print", dest="show", action="store_true", help="Print what any client needs, and touch nothing.")
    parser.add(
        "--allow",
        action="store_true",
        help="Claude Code: let it call Taskyard's tools without asking (adds mcp__taskyard to permissions.allow).",
    )
    parser.add("--no-hooks", action="store_true", help="Claude Code: without hooks; notices then wait for MCP calls.")
    parser.add("--no-share-list", action="store_true", help="Claude Code: leave its own task tools as they are.")


def _run(args: Args) -> int:
    from taskyard.clients.planning import for_install
    from taskyard.clients.starting import start

    shared = _shared_list(args)
    how = start(list_name=shared or args.list or None, agent=args.by)
    if args.show:
        return _print(args, how)
    if args.client is None:
        raise UsageError(f"Which client? One of {', '.join(CLIENTS)}; --print shows what any other needs.")
    if args.client in PRINTED:
        raise UsageError(f"{args.client} is set up by hand: `taskyard install {args.client} --print` shows how.")
    plan = for_install(args.client, _wanted(args, how, shared), os.environ, paths.home())
    return carry_out(args, plan, f"Let {CLIENTS[args.client]} start Taskyard by these changes?", _notes(args, shared))


def carry_out(args: Args, plan: Plan, question: str, notes: list[str]) -> int:
    """Show a plan, have it agreed to, carry it out and tell what was done."""
    from taskyard.clients import planning

    notes = [*plan.notes, *(notes if plan.changes else [])]
    copies: dict[str, str | None] = {}
    if plan.changes and not args.dry_run:
        if not args.as_json and not args.yes:
            _show(plan)
        confirm(args, question)
    if not args.dry_run:
        copies = planning.carry_out(plan, paths.home())
    data = _json(args, plan, copies)
    return answer(
        args,
        lambda: data,
        lambda: _lines(args, plan, copies),
        ids=(change.file.path for change in plan.changes),
        warnings=notes,
    )


def _show(plan: Plan) -> None:
    sys.stdout.flush()
    for change in plan.changes:
        print_line(f"{safe(change.file.path)}:")
        for line in change.lines:
            print_line(f"    {safe(line)}")


def _json(args: Args, plan: Plan, copies: Mapping[str, str | None]) -> dict[str, object]:
    return {
        "client": plan.client,
        "scope": args.scope,
        "changed": bool(plan.changes) and not args.dry_run,
        "dry_run": args.dry_run,
        "files": [
            {
                "path": change.file.path,
                "real_path": change.file.real,
                "changes": list(change.lines),
                "removed": change.data is None and change.file.data is not None,
                "backup": copies.get(change.file.path),
            }
            for change in plan.files
        ],
    }


def _lines(args: Args, plan: Plan, copies: Mapping[str, str | None]) -> Iterator[str]:
    if not plan.changes:
        yield f"Nothing to change for {CLIENTS[plan.client]}."
    for change in plan.changes:
        path = safe(change.file.path)
        if args.dry_run or args.yes:
            verb = "Would change" if args.dry_run else "Changed" if change.data is not None else "Removed"
            yield f"{verb} {path}:"
            yield from (f"    {safe(line)}" for line in change.lines)
        else:
            yield f"{'Changed' if change.data is not None else 'Removed'} {path}"
        if copy := copies.get(change.file.path):
            yield f"    as it was: {safe(copy)}"
    if plan.changes and not args.dry_run:
        yield f"{CLIENTS[plan.client]} goes by it from its next start on."


def _shared_list(args: Args) -> str | None:
    """The list that Claude Code's own tools are to share: the project's, or one that was named for all projects."""
    if args.client != "claude-code" or args.no_share_list:
        return None
    named = args.list or os.environ.get("TASKYARD_LIST") or os.environ.get("CLAUDE_CODE_TASK_LIST_ID")
    return paths.list_name(args.list) if named or args.scope == "project" else None


def _wanted(args: Args, how: Start, shared: str | None) -> Wanted:
    from taskyard.clients.target import Wanted

    return Wanted(how, args.scope, paths.project(os.getcwd()).root, shared, not args.no_hooks, args.allow)


def _notes(args: Args, shared: str | None) -> list[str]:
    notes = [_PROJECT] if args.scope == "project" else []
    if args.client == "claude-code" and shared is None and not args.no_share_list:
        notes.append(_OWN_LIST)
    if args.client == "claude-code" and not args.allow:
        notes.append(_PERMISSION)
    if args.client == "claude-code" and not args.no_hooks and (settings := config.load()).dream_enabled:
        from taskyard.clients.claude_code import dream_engine

        notes.append(_DREAMS.format(engine=dream_engine(settings) or safe(settings.engine)))
    return notes


def _print(args: Args, how: Start) -> int:
    """What goes into a client's configuration, for a person who does it by hand."""
    import json

    from taskyard.clients.printed import snippet

    found = snippet(args.client, how)
    if args.as_json:
        return answer(args, lambda: found, lambda: ())
    if args.client == "codex":
        from taskyard.clients.toml_text import table_text

        text = table_text(("mcp_servers", "taskyard"), found["mcp_servers"]["taskyard"]).rstrip()
    else:
        text = json.dumps(found, indent=2, ensure_ascii=False)
    if args.scope == "project":
        warn(_PROJECT)
    for line in text.split("\n"):
        print_line(safe(line))
    return 0


INSTALL = Command(
    _run,
    _arguments,
    "Change a program's configuration so that it starts Taskyard's MCP server; Claude Code also runs `taskyard hook`,\n"
    "which tells its model how background jobs ended. Shows what it will change and asks. Everything else in the\n"
    "files stays as it is, and a copy of each is kept beside it. Doing it again changes nothing.",
    examples=(
        "taskyard install claude-code --scope project",
        "taskyard install codex --dry-run",
        "taskyard install gemini --by ada --yes",
        "taskyard install --print",
    ),
    exits=(
        "1  a file cannot be changed safely: it is as it was",
        "2  nobody can be asked here: --yes",
        "130  you said no",
    ),
)
