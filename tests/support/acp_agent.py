"""An agent that speaks the Agent Client Protocol, built on its SDK: does what its first word says."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
import uuid
from typing import Any

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_tool_call,
)
from acp.helpers import text_block, tool_content
from acp.schema import (
    AgentCapabilities,
    Cost,
    McpServerStdio,
    PermissionOption,
    SessionCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionResumeCapabilities,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

OPTIONS = [
    PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
    PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]

MODEL = SessionConfigOptionSelect(
    id="model",
    name="Model",
    category="model",
    type="select",
    current_value="small",
    options=[SessionConfigSelectOption(value=name, name=name.title()) for name in ("small", "large")],
)


def wait_for_file(name: str) -> None:
    while not os.path.exists(name):
        time.sleep(0.01)


class Agent:
    """One of many behaviours."""

    def __init__(self, behaviour: str) -> None:
        self.does = behaviour
        self.model = "small"
        self.servers: list[Any] = []
        self.was_cancelled = asyncio.Event()
        self.turns = 0

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        able = SessionCapabilities(resume=SessionResumeCapabilities() if self.does == "resumes" else None)
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(load_session=self.does == "loads", session_capabilities=able),
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> NewSessionResponse:
        self.servers = mcp_servers or []
        return NewSessionResponse(session_id=f"new-{uuid.uuid4().hex}", config_options=[MODEL])

    async def resume_session(self, session_id: str, **_: Any) -> dict[str, Any]:
        self.turns = 1
        return {}

    async def load_session(self, session_id: str, **_: Any) -> dict[str, Any]:
        """With all that was said before, as the protocol has it."""
        self.turns = 1
        await self._say(session_id, "You said: one")
        return {}

    async def set_config_option(self, config_id: str, session_id: str, value: str, **_: Any) -> dict[str, Any]:
        self.model = value
        return {"configOptions": []}

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.was_cancelled.set()

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> PromptResponse:
        self.turns += 1
        answer: PromptResponse = await getattr(self, f"_{self.does}")(prompt[0].text, session_id)
        return answer

    async def _say(self, session: str, text: str) -> None:
        await self.client.session_update(session_id=session, update=update_agent_message_text(text))

    # -- behaviours ---------------------------------------------------------------------------

    async def _echo(self, text: str, session: str) -> PromptResponse:
        await self._say(session, "You said: ")
        await self._say(session, f"{text} (turn {self.turns}, {self.model}, in {os.getcwd()})")
        return PromptResponse(stop_reason="end_turn")

    _resumes = _loads = _echo

    async def _works(self, text: str, session: str) -> PromptResponse:
        send = self.client.session_update
        await send(session_id=session, update=update_agent_thought_text("Hm."))
        await self._say(session, "I will read it first.")
        read = start_tool_call("call-1", "Read a.py", kind="read", raw_input={"path": "a.py"})
        await send(session_id=session, update=read)
        done = update_tool_call("call-1", status="completed", content=[tool_content(text_block("print(1)"))])
        await send(session_id=session, update=done)
        cost = Cost(amount=0.25, currency="USD")
        await send(
            session_id=session, update=UsageUpdate(session_update="usage_update", used=900, size=9000, cost=cost)
        )
        await self._say(session, "It prints 1.")
        usage = Usage(total_tokens=2040, input_tokens=2000, output_tokens=40)
        return PromptResponse(stop_reason="end_turn", usage=usage)

    async def _asks(self, text: str, session: str) -> PromptResponse:
        call = ToolCallUpdate(tool_call_id="c", title="Run make", kind="execute", raw_input={"command": "make"})
        answer = await self.client.request_permission(session_id=session, tool_call=call, options=OPTIONS)
        outcome = answer.outcome
        await self._say(session, outcome.option_id if outcome.outcome == "selected" else outcome.outcome)
        return PromptResponse(stop_reason="end_turn")

    async def _waits(self, text: str, session: str) -> PromptResponse:
        """For a file: so that a test can do something in the middle of a turn."""
        await self._say(session, f"began {text}")
        await asyncio.to_thread(wait_for_file, "go")
        await self._say(session, f"; turn {self.turns} done: {text}")
        return PromptResponse(stop_reason="end_turn")

    async def _lasts(self, text: str, session: str) -> PromptResponse:
        """Until it is cancelled; a signal alone does not end it."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        await self._say(session, "on it\n")
        await self.client.session_update(session_id=session, update=start_tool_call("t", "Wait"))
        await self.was_cancelled.wait()
        os.mkdir("cancelled")
        return PromptResponse(stop_reason="cancelled")

    async def _uses(self, text: str, session: str) -> PromptResponse:
        """The tools it was handed: adds a task by them."""
        from mcp.client.client import Client
        from mcp.client.stdio import StdioServerParameters

        server: McpServerStdio = self.servers[0]
        env = {one.name: one.value for one in server.env}
        async with Client(StdioServerParameters(command=server.command, args=server.args, env=env)) as tools:
            made = await tools.call_tool("TaskCreate", {"subject": text})
            claimed = await tools.call_tool("TaskClaim", {"taskId": "1"})
        await self._say(session, f"{made.content[0].text} / {claimed.content[0].text}")  # type: ignore[union-attr]
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(Agent(sys.argv[1]), use_unstable_protocol=True))  # type: ignore[arg-type]  # what we need
