"""`taskyard install` and `uninstall`: edit another program's configuration to use Taskyard."""

from __future__ import annotations

import os
import sys

from taskyard import config
from taskyard.cli.main import Command
from taskyard.cli.output import answer, confirm, print_line, warn
from taskyard.core.text import escape_control
from taskyard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.cli.main import Args
    from taskyard.cli.parser import Parser
    from taskyard.integrations.clients.formats import StartCommand
    from taskyard.integrations.clients.programs import SetupOptions
    from taskyard.integrations.clients.setup import SetupPlan


#: Known clients and their names; here so that the parser imports no client module.
CLIENTS = {"claude-code": "Claude Code", "codex": "Codex", "gemini": "Gemini CLI", "opencode": "opencode"}

#: Clients set up by hand, with the output of `--print`.
PRINT_ONLY = ("vscode",)

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
    "These files belong to the project and now contain paths of this machine. Other users of the project have "
    "to run `taskyard install` too."
)


def client_arguments(parser: Parser, *, optional: bool = False) -> None:
    """Add the options common to `install` and `uninstall`."""
    how: dict[str, object] = {"nargs": "?"} if optional else {}
    names = (*CLIENTS, *PRINT_ONLY) if optional else tuple(CLIENTS)
    words = ", ".join(CLIENTS) + (f"; with --print also {', '.join(PRINT_ONLY)}" if optional else "")
    parser.add("client", choices=names, help=f"Client to configure: {words}.", **how)
    parser.add(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="Configure all your projects (user, the default), or this project's files.",
    )
    parser.add("--dry-run", action="store_true", help="Only print what would change.")
    parser.add("--yes", "-y", action="store_true", help="Skip the confirmation.")


def _arguments(parser: Parser) -> None:
    client_arguments(parser, optional=True)
    parser.add(
        "--print",
        dest="show",
        action="store_true",
        help="Print the settings that any client needs, and change nothing.",
    )
    parser.add(
        "--allow",
        action="store_true",
        help="Claude Code: allow Taskyard's tools without asking (adds mcp__taskyard to permissions.allow).",
    )
    parser.add(
        "--no-hooks",
        action="store_true",
        help="Claude Code: install no hooks; notices are then delivered with MCP calls.",
    )
    parser.add("--no-share-list", action="store_true", help="Claude Code: keep its own task tools unchanged.")


def _run_install(args: Args) -> int:
    from taskyard.integrations.clients.formats import make_start_command
    from taskyard.integrations.clients.setup import plan_install

    shared = _shared_list(args)
    how = make_start_command(list_name=shared or args.list or None, agent=args.by)
    if args.show:
        return _print(args, how)
    if args.client is None:
        raise UsageError(
            f"No client given. Use one of {', '.join(CLIENTS)}; --print shows what any other client needs."
        )
    if args.client in PRINT_ONLY:
        raise UsageError(
            f"{args.client} has to be configured manually: `taskyard install {args.client} --print` shows how."
        )
    plan = plan_install(args.client, _setup_options(args, how, shared), os.environ, config.home())
    return apply_plan(
        args, plan, f"Configure {CLIENTS[args.client]} to start Taskyard with these changes?", _notes(args, shared)
    )


def apply_plan(args: Args, plan: SetupPlan, question: str, notes: list[str]) -> int:
    """Show a plan, ask for confirmation, apply it and print what was done."""
    from taskyard.integrations.clients import setup

    notes = [*plan.notes, *(notes if plan.changes else [])]
    copies: dict[str, str | None] = {}
    if plan.changes and not args.dry_run:
        if not args.as_json and not args.yes:
            _show_plan(plan)
        confirm(args, question)
    if not args.dry_run:
        copies = setup.apply_plan(plan, config.home())
    data = _json(args, plan, copies)
    return answer(
        args,
        lambda: data,
        lambda: _lines(args, plan, copies),
        ids=(change.file.path for change in plan.changes),
        warnings=notes,
    )


def _show_plan(plan: SetupPlan) -> None:
    sys.stdout.flush()
    for change in plan.changes:
        print_line(f"{escape_control(change.file.path)}:")
        for line in change.lines:
            print_line(f"    {escape_control(line)}")


def _json(args: Args, plan: SetupPlan, copies: Mapping[str, str | None]) -> dict[str, object]:
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


def _lines(args: Args, plan: SetupPlan, copies: Mapping[str, str | None]) -> Iterator[str]:
    if not plan.changes:
        yield f"Nothing to change for {CLIENTS[plan.client]}."
    for change in plan.changes:
        path = escape_control(change.file.path)
        if args.dry_run or args.yes:
            verb = "Would change" if args.dry_run else "Changed" if change.data is not None else "Removed"
            yield f"{verb} {path}:"
            yield from (f"    {escape_control(line)}" for line in change.lines)
        else:
            yield f"{'Changed' if change.data is not None else 'Removed'} {path}"
        if copy := copies.get(change.file.path):
            yield f"    backup: {escape_control(copy)}"
    if plan.changes and not args.dry_run:
        yield f"{CLIENTS[plan.client]} uses this after its next start."


def _shared_list(args: Args) -> str | None:
    """Return the list that Claude Code's own tools should share: the project's, or one named for all projects."""
    if args.client != "claude-code" or args.no_share_list:
        return None
    named = args.list or os.environ.get("TASKYARD_LIST") or os.environ.get("CLAUDE_CODE_TASK_LIST_ID")
    return config.list_name(args.list) if named or args.scope == "project" else None


def _setup_options(args: Args, how: StartCommand, shared: str | None) -> SetupOptions:
    from taskyard.integrations.clients.programs import SetupOptions

    return SetupOptions(how, args.scope, config.project(os.getcwd()).root, shared, not args.no_hooks, args.allow)


def _notes(args: Args, shared: str | None) -> list[str]:
    notes = [_PROJECT] if args.scope == "project" else []
    if args.client == "claude-code" and shared is None and not args.no_share_list:
        notes.append(_OWN_LIST)
    if args.client == "claude-code" and not args.allow:
        notes.append(_PERMISSION)
    if args.client == "claude-code" and not args.no_hooks and (settings := config.load_settings()).dream_enabled:
        from taskyard.integrations.clients.programs import dream_engine

        notes.append(_DREAMS.format(engine=dream_engine(settings) or escape_control(settings.engine)))
    return notes


def _print(args: Args, how: StartCommand) -> int:
    """Print a client's configuration, for a user who edits it by hand."""
    import json

    from taskyard.integrations.clients.programs import snippet

    found = snippet(args.client, how)
    if args.as_json:
        return answer(args, lambda: found, lambda: ())
    if args.client == "codex":
        from taskyard.integrations.clients.formats import table_text

        text = table_text(("mcp_servers", "taskyard"), found["mcp_servers"]["taskyard"]).rstrip()
    else:
        text = json.dumps(found, indent=2, ensure_ascii=False)
    if args.scope == "project":
        warn(_PROJECT)
    for line in text.split("\n"):
        print_line(escape_control(line))
    return 0


INSTALL = Command(
    _run_install,
    _arguments,
    "Configure a client to start Taskyard's MCP server; Claude Code also runs `taskyard hook`, which tells "
    "its model how\n"
    "background jobs ended. Shows the changes and asks for confirmation. Other content of the files is not "
    "changed, and\n"
    "a backup of each file is kept beside it. Repeating the command changes nothing.",
    examples=(
        "taskyard install claude-code --scope project",
        "taskyard install codex --dry-run",
        "taskyard install gemini --by ada --yes",
        "taskyard install --print",
    ),
    exits=(
        "1  a file cannot be changed safely; it was not changed",
        "2  no terminal to ask on: use --yes",
        "130  you declined",
    ),
)


def _run_uninstall(args: Args) -> int:
    from taskyard.integrations.clients.formats import StartCommand
    from taskyard.integrations.clients.programs import SetupOptions
    from taskyard.integrations.clients.setup import plan_uninstall

    where = SetupOptions(StartCommand(("taskyard",), {}), args.scope, config.project(os.getcwd()).root)
    plan = plan_uninstall(args.client, where, os.environ, config.home())
    return apply_plan(args, plan, f"Remove Taskyard from {CLIENTS[args.client]} with these changes?", [])


UNINSTALL = Command(
    _run_uninstall,
    client_arguments,
    "Remove what `taskyard install` added to a client's configuration, and restore what it replaced. Your "
    "later changes\n"
    "are kept. Shows the changes and asks for confirmation; a backup of each file is kept beside it.",
    examples=("taskyard uninstall claude-code", "taskyard uninstall codex --scope project --dry-run"),
    exits=(
        "1  a file cannot be changed safely; it was not changed",
        "2  no terminal to ask on: use --yes",
        "130  you declined",
    ),
)
