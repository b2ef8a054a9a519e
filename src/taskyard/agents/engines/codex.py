"""Engine `codex`: Codex CLI by `codex exec --json`.

It cannot ask the user: its sandbox decides. `ask` is `read-only`, `edit` and `work` are `workspace-write`
(files and commands in its folder, no network unless its configuration allows it), `all` is no sandbox.
"""

from __future__ import annotations

import glob
import json
import os
import re

from taskyard.agents.engines import provider as engines_provider
from taskyard.agents.engines.engine import TurnResult
from taskyard.agents.engines.process import EventReader, run, token_count
from taskyard.core.files import open_plain
from taskyard.core.values import as_list, as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskyard.agents.engines.engine import Brief, Recorder

#: The default program.
DEFAULT = ("codex",)

_SANDBOX = {"ask": "read-only", "edit": "workspace-write", "work": "workspace-write", "all": "danger-full-access"}

#: Seconds for our own tools to start: Codex begins without them otherwise.
_TOOLS_START = 60

#: Bytes read from the end of a conversation's file.
_LONGEST_TAIL = 2_000_000

#: Output of a command that the sandbox kept from writing.
_DENIED = re.compile(r"Read-only file system|Operation not permitted", re.IGNORECASE)


class Codex:
    """Runs `codex exec` for each turn."""

    def check(self, brief: Brief) -> None:
        """Check nothing: the program is looked up when it is started."""

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run it to the end of the turn."""
        brief = engines_provider.restrict_tools(brief)
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


class _Events(EventReader):
    provider = "openai"

    def __init__(self, watcher: Recorder, *, spent_before: int) -> None:
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
            self.error, self.rate_limit = "", None  # errors on the way were retried successfully
            usage = as_object(event.get("usage")) or {}
            # The sum is that of the whole conversation.
            total = token_count(usage.get("input_tokens")) + token_count(usage.get("output_tokens"))
            self.watcher.used_tokens({"spent_tokens": max(total - self._spent_before, 0)})
        elif kind == "turn.failed":
            self.fails(as_text((as_object(event.get("error")) or {}).get("message")) or "its turn failed")
        elif kind == "error":
            self._on_error(as_text(event.get("message")))

    def log(self, line: str) -> None:
        if "reject command" in line:
            self.refuses("exec_command")

    def _on_error(self, message: str) -> None:
        self.watcher.record({"type": "note", "text": message})
        self.fails(message or "it failed")
        if self.rate_limit is not None and message.startswith("Reconnecting"):
            self.watcher.limited(0.0, message)

    def _item(self, item: Mapping[str, object], *, is_done: bool) -> None:
        kind, call = as_text(item.get("type")), as_text(item.get("id"))
        if kind == "agent_message":
            if is_done:
                self.answer_buffer.says(as_text(item.get("text")))
                self.answer_buffer.pause()
            return
        if kind == "reasoning":
            self.answer_buffer.says(as_text(item.get("text")), kind="thought")
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
    """Return a tool's common name and its input."""
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
    """Return options for our own MCP server; variables are passed by name only: values stay out of `ps`."""
    if not (brief.own_tools and engines_provider.is_available()):
        return []
    command, *args = engines_provider.server_command(brief)
    table = {
        "command": command,
        "args": args,
        "env_vars": sorted(engines_provider.server_env(brief)),
        "required": True,  # else Codex asks the model before our server is ready
        "startup_timeout_sec": _TOOLS_START,
        "default_tools_approval_mode": "approve",
    }
    return [word for key, value in table.items() for word in ("-c", f"mcp_servers.taskyard.{key}={json.dumps(value)}")]


def _spent(brief: Brief, thread: str) -> int:
    """Return the tokens of a conversation so far: Codex includes them in what it reports after a turn."""
    total = 0
    for record in _records(brief, thread):
        payload = as_object(record.get("payload")) or {}
        if payload.get("type") == "token_count":
            info = as_object(payload.get("info")) or {}
            usage = as_object(info.get("total_token_usage")) or {}
            total = token_count(usage.get("input_tokens")) + token_count(usage.get("output_tokens")) or total
    return total


def _was_denied(brief: Brief, thread: str) -> bool:
    """Return whether the sandbox kept a command of the last turn from writing: Codex reports no event for it."""
    denied = False
    for record in _records(brief, thread):
        payload = as_object(record.get("payload")) or {}
        if payload.get("type") == "user_message":
            denied = False
        elif as_text(payload.get("type")).endswith("_call_output"):
            denied = denied or _DENIED.search(json.dumps(payload.get("output"))) is not None
    return denied


def _records(brief: Brief, thread: str) -> Iterator[dict[str, object]]:
    """Yield the last records of a conversation from Codex' files; none if it keeps none."""
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
                continue  # the first line is cut
            if found is not None:
                yield found
