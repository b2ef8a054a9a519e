"""Engine `opencode`: opencode by `opencode run --format json`.

It cannot ask the user: what its rules would ask for is rejected. Without a mode its own configuration
decides, which allows files and commands in its folder unless configured otherwise; a mode adds its rules for
this run.
"""

from __future__ import annotations

import json
import re

from taskyard.agents.engines import provider as engines_provider
from taskyard.agents.engines.engine import TurnResult
from taskyard.agents.engines.process import EventReader, run, token_count
from taskyard.core.values import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.agents.engines.engine import Brief, Recorder

#: The default program.
DEFAULT = ("opencode",)

_RULES = {
    "ask": {"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask"},
    "edit": {"edit": "allow", "bash": "ask", "external_directory": "ask"},
    "work": {"edit": "allow", "bash": "allow", "external_directory": "ask"},
    "all": {"*": "allow"},
}

#: Failed requests in a row before the turn fails: opencode itself retries forever, without output on stdout.
MOST_ERRORS = 3

#: Milliseconds for our own tools to start.
_TOOLS_START = 60_000

_ERROR = re.compile(r'error\.error="((?:[^"\\]|\\.)*)"')


class Opencode:
    """Runs `opencode run` for each turn."""

    def check(self, brief: Brief) -> None:
        """Check nothing: the program is looked up when it is started."""

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run it to the end of the turn."""
        argv = [*(brief.command or DEFAULT), "run", "--format=json", "--print-logs", "--log-level=ERROR"]
        argv += [f"--model={brief.model}"] if brief.model else []
        argv += [f"--session={brief.session}"] if brief.session else []
        brief = engines_provider.restrict_tools(brief)
        return await run(argv, brief._replace(env={**brief.env, **_settings(brief)}), _Events(watcher))


def _settings(brief: Brief) -> dict[str, str]:
    """Return environment variables for this run: rules of the mode, and our own MCP server."""
    found = permission_settings(brief)
    if brief.own_tools and engines_provider.is_available():
        server = {
            "type": "local",
            "command": engines_provider.server_command(brief),
            "environment": engines_provider.server_env(brief),
            "enabled": True,
            "timeout": _TOOLS_START,
        }
        try:
            given = as_object(json.loads(brief.env.get("OPENCODE_CONFIG_CONTENT") or "{}")) or {}
        except (ValueError, RecursionError):
            given = {}
        servers = {**(as_object(given.get("mcp")) or {}), "taskyard": server}
        found["OPENCODE_CONFIG_CONTENT"] = json.dumps({**given, "mcp": servers})
    return found


def permission_settings(brief: Brief) -> dict[str, str]:
    """Return the variable with the rules of the brief's mode; none without a mode."""
    return {"OPENCODE_PERMISSION": json.dumps(_rules(brief))} if brief.permissions else {}


def _rules(brief: Brief) -> dict[str, object]:
    """Return the rules of a mode; of several that match a path, the last one counts."""
    rules: dict[str, object] = {**_RULES[brief.permissions]}
    if brief.reads and "external_directory" in rules:
        rules["external_directory"] = {"*": "ask", **{f"{folder}/*": "allow" for folder in brief.reads}}
    return rules


def stream_error(line: str) -> str | None:
    """Return the error of a model request in a log line; None if the line is about something else."""
    if 'message="stream error"' not in line or "small=true" in line:
        return None
    found = _ERROR.search(line)
    return found[1].replace('\\"', '"') if found else "a request to the model failed"


class _Events(EventReader):
    provider = "opencode"

    def __init__(self, watcher: Recorder) -> None:
        super().__init__(watcher)
        self._session = ""
        self._errors = 0
        self._cost = 0.0

    def event(self, event: Mapping[str, object]) -> None:
        if not self._session and (session := as_text(event.get("sessionID"))):
            self._session = session
            self.begins(session)
        kind, part = event.get("type"), as_object(event.get("part")) or {}
        if kind == "text":
            self.answer_buffer.says(as_text(part.get("text")))
            self.answer_buffer.pause()
        elif kind == "tool_use":
            self._tool(part)
        elif kind == "step_finish":
            self._step(part)
        elif kind == "error":
            error = as_object(event.get("error")) or {}
            message = as_text((as_object(error.get("data")) or {}).get("message"))
            self.passes = (as_object(error.get("data")) or {}).get("isRetryable") is True
            self.fails(message or as_text(error.get("name")) or "it failed")

    def log(self, line: str) -> None:
        """Detect failed requests, which are only in the log: opencode retries them without limit."""
        if (error := stream_error(line)) is None:
            return
        self.fails(error)
        self._errors += 1
        self.passes = self._errors > 1  # it repeats a request only if the error is transient
        if self.rate_limit is not None or self._errors >= MOST_ERRORS:
            self.abort_event.set()

    def _tool(self, part: Mapping[str, object]) -> None:
        name, call, state = as_text(part.get("tool")), as_text(part.get("callID")), as_object(part.get("state")) or {}
        self.uses(name, as_object(state.get("input")) or {}, call)
        error = as_text(state.get("error"))
        self.result(call, as_text(state.get("status")), error or as_text(state.get("output")))
        if "rejected permission" in error or "prevents you from using" in error:
            self.refuses(name)
            self.is_over = True  # it ends its turn there

    def _step(self, part: Mapping[str, object]) -> None:
        self._errors, self.error, self.rate_limit = 0, "", None
        tokens = as_object(part.get("tokens")) or {}
        cache = as_object(tokens.get("cache")) or {}
        self.watcher.used_tokens({
            "input_tokens": token_count(tokens.get("input")),
            "cache_read_input_tokens": token_count(cache.get("read")),
            "cache_creation_input_tokens": token_count(cache.get("write")),
            "output_tokens": token_count(tokens.get("output")) + token_count(tokens.get("reasoning")),
        })  # fmt: skip
        if isinstance(cost := part.get("cost"), (int, float)) and cost > 0:
            self._cost += float(cost)
            self.watcher.costs(self._cost)
        if part.get("reason") not in ("tool-calls", "unknown"):
            self.is_over = True
