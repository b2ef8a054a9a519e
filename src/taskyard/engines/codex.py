"""
Codex by its command line: `codex exec --json`, the engine `codex`.

It cannot ask anyone: its sandbox decides. `ask` is `read-only`, `edit` and `work` are `workspace-write` (files and
commands in its folder, no network unless its configuration allows it), `all` is no sandbox.
"""

from __future__ import annotations

import glob
import json
import os
import re

from taskyard.engines import own_server
from taskyard.engines.engine import Said
from taskyard.engines.json_lines import Reader, count, run
from taskyard.plain_file import open_plain
from taskyard.shapes import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.engines.engine import Brief, Watcher

#: What is run if no program is named.
DEFAULT = ("codex",)

_SANDBOX = {"ask": "read-only", "edit": "workspace-write", "work": "workspace-write", "all": "danger-full-access"}

#: Seconds for our own tools to be there: Codex begins without them otherwise.
_TOOLS_START = 60

#: Bytes of the end of a conversation's file that are looked at.
_LONGEST_TAIL = 2_000_000

#: What a command prints that the sandbox kept from writing.
_DENIED = re.compile(r"Read-only file system|Operation not permitted", re.IGNORECASE)


class Codex:
    """A run of `codex exec` for each turn."""

    def check(self, brief: Brief) -> None:
        """Nothing is needed beyond the program, which is looked for when it is started."""

    async def work(self, brief: Brief, watcher: Watcher) -> Said:
        """Run it to the end of the turn."""
        brief = own_server.permitted(brief)
        mode = _SANDBOX[brief.permissions or "work"]
        argv = [*(brief.command or DEFAULT), "exec", "--json", "--skip-git-repo-check", "-c", f'sandbox_mode="{mode}"']
        argv += [f"--model={brief.model}"] if brief.model else []
        argv += _own_tools(brief)
        argv += ["resume", brief.session, "-"] if brief.session else ["-"]
        reader = _Events(watcher, spent_before=_spent(brief, brief.session) if brief.session else 0)
        said = await run(argv, brief, reader)
        if mode == "read-only" and reader.thread and _was_denied(brief, reader.thread):
            return said._replace(refused=(*said.refused, "exec_command"))
        return said


class _Events(Reader):
    provider = "openai"

    def __init__(self, watcher: Watcher, *, spent_before: int) -> None:
        super().__init__(watcher)
        self.thread = ""
        self._spent_before = spent_before
        self._started: set[str] = set()

    def event(self, event: Mapping[str, object]) -> None:
        kind = event.get("type")
        if kind == "thread.started":
            self.thread = as_text(event.get("thread_id"))
            self.begins(self.thread)
        elif kind in ("item.started", "item.completed"):
            self._item(as_object(event.get("item")) or {}, is_done=kind == "item.completed")
        elif kind == "turn.completed":
            self.is_over = True
            self.error, self.rate_limit = "", None  # what it reported on the way was tried again, with success
            usage = as_object(event.get("usage")) or {}
            total = count(usage.get("input_tokens")) + count(usage.get("output_tokens"))  # of the whole conversation
            self.watcher.used_tokens({"spent_tokens": max(total - self._spent_before, 0)})
        elif kind == "turn.failed":
            self.fails(as_text((as_object(event.get("error")) or {}).get("message")) or "its turn failed")
        elif kind == "error":
            self._trouble(as_text(event.get("message")))

    def log(self, line: str) -> None:
        if "reject command" in line:
            self.refuses("exec_command")

    def _trouble(self, message: str) -> None:
        self.watcher.record({"type": "note", "text": message})
        self.fails(message or "it failed")
        if self.rate_limit is not None and message.startswith("Reconnecting"):
            self.watcher.limited(0.0, message)

    def _item(self, item: Mapping[str, object], *, is_done: bool) -> None:
        kind, call = as_text(item.get("type")), as_text(item.get("id"))
        if kind == "agent_message":
            if is_done:
                self.speech.says(as_text(item.get("text")))
                self.speech.pause()
            return
        if kind == "reasoning":
            self.speech.says(as_text(item.get("text")), kind="thought")
            return
        if kind in ("error", "todo_list", ""):
            return
        name, given = _tool(kind, item)
        if call not in self._started:
            self._started.add(call)
            self.uses(name, given, call)
        if is_done:
            status = as_text(item.get("status"))
            self.result(call, status, as_text(item.get("aggregated_output")))
            if status == "declined":
                self.refuses(name)


def _tool(kind: str, item: Mapping[str, object]) -> tuple[str, dict[str, object]]:
    """A tool as people know it, and what it was given."""
    if kind == "command_execution":
        return "exec_command", {"command": as_text(item.get("command"))}
    if kind == "mcp_tool_call":
        name = f"mcp__{as_text(item.get('server'))}__{as_text(item.get('tool'))}"
        return name, as_object(item.get("arguments")) or {}
    if kind == "file_change":
        changes = [as_object(one) or {} for one in as_list(item.get("changes")) or []]
        return "apply_patch", {"path": ", ".join(as_text(one.get("path")) for one in changes)}
    return kind, {"query": as_text(item.get("query"))} if "query" in item else {}


def _own_tools(brief: Brief) -> list[str]:
    """Our own MCP server for this run; of the environment, it is told names alone: values stay out of `ps`."""
    if not (brief.own_tools and own_server.is_there()):
        return []
    command, *args = own_server.words(brief)
    table = {
        "command": command,
        "args": args,
        "env_vars": sorted(own_server.environment(brief)),
        "required": True,  # else Codex asks the model before our server has answered
        "startup_timeout_sec": _TOOLS_START,
        "default_tools_approval_mode": "approve",
    }
    return [word for key, value in table.items() for word in ("-c", f"mcp_servers.taskyard.{key}={json.dumps(value)}")]


def _spent(brief: Brief, thread: str) -> int:
    """Tokens of a conversation so far: what Codex reports at the end of a turn includes them."""
    total = 0
    for record in _records(brief, thread):
        payload = as_object(record.get("payload")) or {}
        if payload.get("type") == "token_count":
            info = as_object(payload.get("info")) or {}
            usage = as_object(info.get("total_token_usage")) or {}
            total = count(usage.get("input_tokens")) + count(usage.get("output_tokens")) or total
    return total


def _was_denied(brief: Brief, thread: str) -> bool:
    """Whether the sandbox kept a command of the last turn from writing: Codex reports no event for it."""
    denied = False
    for record in _records(brief, thread):
        payload = as_object(record.get("payload")) or {}
        if payload.get("type") == "user_message":
            denied = False
        elif as_text(payload.get("type")).endswith("_call_output"):
            denied = denied or _DENIED.search(json.dumps(payload.get("output"))) is not None
    return denied


def _records(brief: Brief, thread: str) -> Iterator[dict[str, object]]:
    """The last records of a conversation, as Codex keeps it; none where it keeps none."""
    home = brief.env.get("CODEX_HOME") or os.path.join(brief.env.get("HOME", ""), ".codex")
    pattern = os.path.join(glob.escape(home), "sessions", "*", "*", "*", f"rollout-*-{glob.escape(thread)}.jsonl")
    for path in sorted(glob.glob(pattern))[-1:]:
        try:
            with os.fdopen(open_plain(path), "rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - _LONGEST_TAIL, 0))
                lines = file.read(_LONGEST_TAIL).split(b"\n")
        except OSError:
            return
        for line in lines:
            try:
                found = as_object(json.loads(line))
            except (ValueError, RecursionError):
                continue  # the first is cut
            if found is not None:
                yield found
