"""
A model on this machine for real agent programs: one server that speaks as Anthropic, OpenAI and Google do.

A test writes a script of what the model does, and reads what the programs asked it:

    with model_api(Call("Write", file_path="a.txt", content="x"), Say("Done.")) as api:
        ...
        assert "mcp__taskyard__TaskList" in api.turns[0].tools

    script.py       what a model does: say, call tools, refuse, break off, hang
    request.py      what a program asked, in one form for all three
    server.py       the server, on loopback
    anthropic.py, openai.py, google.py    how each provider words it
"""

from __future__ import annotations

from support.model_api.request import Request
from support.model_api.script import Call, Calls, Choose, Cut, Fail, Hang, Limit, Say, Step, Usage
from support.model_api.server import ModelApi, model_api

__all__ = [
    "Call",
    "Calls",
    "Choose",
    "Cut",
    "Fail",
    "Hang",
    "Limit",
    "ModelApi",
    "Request",
    "Say",
    "Step",
    "Usage",
    "model_api",
]
