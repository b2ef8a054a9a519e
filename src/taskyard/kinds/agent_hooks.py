"""What people want to say when an agent starts and when it wants to stop: SubagentStart and SubagentStop hooks."""

from __future__ import annotations

import asyncio

from taskyard import config, hooks, paths
from taskyard.errors import HookRefused
from taskyard.runtime.folder import JobFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.engines.engine import Said
    from taskyard.runtime.context import JobContext


class AgentHooks:
    """The hooks around one agent."""

    def __init__(self, context: JobContext, agent_type: str, cwd: str) -> None:
        self._context = context
        self._type = agent_type
        self._cwd = cwd
        self._has_gone_on = False
        self._book = hooks.load(paths.project(cwd).root)

    async def before(self, prompt: str) -> str:
        """The prompt, behind what hooks have to say; none of them can refuse it."""
        if not self._book.any_for("SubagentStart"):
            return prompt
        try:
            found = await asyncio.to_thread(self._run, "SubagentStart", {})
        except HookRefused:
            return prompt
        said = await asyncio.to_thread(self._for_model, found.output)
        return f"{said}\n\n{prompt}" if said else prompt

    def _for_model(self, text: str) -> str:
        """What hooks printed, as much as a model is given; of more, the end, with the file that has all of it."""
        from taskyard.disk import files
        from taskyard.runtime.output_text import for_model, model_limit

        data, limit = text.encode("utf-8", "replace"), model_limit()
        path = f"{JobFolder(self._context.home, self._context.id).path}/hook-output"
        if len(text) > limit:
            files.replace(path, data)
        return for_model(data, path=path, limit=limit).text

    async def after(self, said: Said) -> str | None:
        """What it is to do next, if a hook does not let it stop; None: it is done."""
        if not said.is_complete or not self._book.any_for("SubagentStop"):
            return None
        payload: dict[str, object] = {
            "agent_transcript_path": JobFolder(self._context.home, self._context.id).transcript,
            "last_assistant_message": said.text,
            "stop_hook_active": self._has_gone_on,
        }
        try:
            await asyncio.to_thread(self._run, "SubagentStop", payload)
        except HookRefused as refusal:
            self._has_gone_on = True
            return refusal.stderr.strip() or str(refusal)
        return None

    def _run(self, event: str, payload: dict[str, object]) -> hooks.HookResult:
        return hooks.run(
            event,
            {"agent_id": self._context.id, "agent_type": self._type, **payload},
            book=self._book,
            cwd=self._cwd,
            timeout=config.load().hook_timeout,
            report=self._report,
            matcher=self._type,
        )

    def _report(self, ended: hooks.HookRun) -> None:
        """For people, in the transcript; never for the model."""
        if ended.text:
            import json

            self._context.write(json.dumps({"type": "hook", "text": ended.text}) + "\n")
