"""Engine `gemini`: Gemini CLI by `gemini --output-format stream-json`.

It cannot ask the user: tools that need permission are not offered to its model. `ask` is its approval mode
`default`, `edit` is `auto_edit`, `work` and `all` are `yolo`.
"""

from __future__ import annotations

import re
import time

from taskyard.agents.engines.engine import RateLimit, TurnResult
from taskyard.agents.engines.process import EventReader, run, token_count
from taskyard.agents.engines.provider import LONGEST_REASON, parse_reset_time
from taskyard.core.values import as_object, as_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.agents.engines.engine import Brief, Recorder

#: The default program.
DEFAULT = ("gemini",)

_APPROVAL = {"ask": "default", "edit": "auto_edit", "work": "yolo", "all": "yolo"}

#: Tools that some approval modes hide from the model: a call of one is a refusal, of any other unknown tool
#: a mistake.
_GATED = frozenset({"write_file", "replace", "edit", "run_shell_command", "web_fetch"})

_RETRYING = re.compile(r"Attempt \d+ failed with status (?:429|503)")
_RETRY_IN = re.compile(r"retry in \d[\d.]*\s*(?:ms|s|m|h)", re.IGNORECASE)

#: Signs of an exceeded quota in its log and last error: its own names of errors, and the provider's.
_QUOTA = re.compile(r"QuotaError|exhausted|RESOURCE_EXHAUSTED|(?:status|code)\W{1,3}429")


class Gemini:
    """Runs `gemini` for each turn."""

    def check(self, brief: Brief) -> None:
        """Check nothing: the program is looked up when it is started."""

    async def work(self, brief: Brief, watcher: Recorder) -> TurnResult:
        """Run it to the end of the turn."""
        mode = _APPROVAL[brief.permissions or "work"]
        argv = [*(brief.command or DEFAULT), "--output-format=stream-json", f"--approval-mode={mode}"]
        argv += [f"--model={brief.model}"] if brief.model else []
        argv += [f"--resume={brief.session}"] if brief.session else []
        argv += [f"--include-directories={folder}" for folder in brief.reads]
        # Running an agent in this folder implies the trust that Gemini CLI asks for. Without it, only mode
        # `default` works.
        argv += ["--skip-trust"]
        return await run(argv, brief, _Events(watcher))


class _Events(EventReader):
    provider = "google"

    def __init__(self, watcher: Recorder) -> None:
        super().__init__(watcher)
        self._names: dict[str, str] = {}
        self._retry_in = ""

    def event(self, event: Mapping[str, object]) -> None:
        kind = event.get("type")
        if kind == "init":
            self.begins(as_text(event.get("session_id")))
        elif kind == "message" and event.get("role") == "assistant":
            self.answer_buffer.says(as_text(event.get("content")))
        elif kind == "tool_use":
            call, name = as_text(event.get("tool_id")), as_text(event.get("tool_name")) or "tool"
            self._names[call] = name
            self.uses(name, as_object(event.get("parameters")) or {}, call)
        elif kind == "tool_result":
            self._result(event)
        elif kind == "error":
            self.watcher.record({"type": "note", "text": as_text(event.get("message"))})
        elif kind == "result":
            self._over(event)

    def log(self, line: str) -> None:
        if _RETRYING.search(line) is not None:
            self.watcher.limited(0.0, line[:300])
        if (told := _RETRY_IN.search(line)) is not None:
            self._retry_in = told[0]

    def _result(self, event: Mapping[str, object]) -> None:
        call, error = as_text(event.get("tool_id")), as_object(event.get("error")) or {}
        name, why = self._names.get(call, "tool"), as_text(error.get("type"))
        self.result(call, as_text(event.get("status")), as_text(event.get("output")))
        if why == "policy_violation" or (why == "tool_not_registered" and name in _GATED):
            self.refuses(name)

    def _over(self, event: Mapping[str, object]) -> None:
        self.is_over = True
        stats = as_object(event.get("stats")) or {}
        self.watcher.used_tokens({"spent_tokens": token_count(stats.get("total_tokens"))})
        if event.get("status") != "success":
            message = as_text((as_object(event.get("error")) or {}).get("message")) or "it failed"
            self.fails(f"{message} ({self._retry_in})" if self._retry_in else message)
            if self.rate_limit is None and _QUOTA.search(message) is not None:
                until = parse_reset_time(self._retry_in, now=time.time())
                self.rate_limit = RateLimit(
                    self.provider,
                    " ".join(message.split())[:LONGEST_REASON],
                    None if until is None else round(until * 1000),
                )
