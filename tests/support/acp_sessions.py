"""An agent that speaks the Agent Client Protocol by hand, and keeps its conversation in the way that is asked for."""

from __future__ import annotations

import sys

_PROGRAM = """
import json, os, sys
way = sys.argv[1]
able = {"loadSession": way in ("load", "forget"), "sessionCapabilities": {"resume": {}} if way == "resume" else {}}
def says(text):
    words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    cost = {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": {"amount": spent, "currency": "USD"}}
    tells(words)
    tells(cost)
def tells(update):
    print(json.dumps({"method": "session/update", "params": {"sessionId": "s", "update": update}}), flush=True)
results = {"initialize": {"protocolVersion": 1, "agentCapabilities": able}, "session/new": {"sessionId": "s"}}
how, spent = "", 0.25
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "session/load" and sys.argv[1] == "forget":
        error = {"code": -32602, "message": "no such session"}
        print(json.dumps({"id": message["id"], "error": error}), flush=True)
        continue
    if method in ("session/load", "session/resume"):
        how = f"{method} {message['params']['sessionId']}"
        if method == "session/load": tells({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Done before"})
        spent = 1.0
    if method == "session/prompt": says(message["params"]["prompt"][0]["text"] + " " + how)
    print(json.dumps({"id": message["id"], "result": results.get(method, {"stopReason": "end_turn"})}), flush=True)
"""


def keeping(way: str) -> list[str]:
    """The command of one that can `load` a session, `resume` it, or neither; or has to `forget` it."""
    return [sys.executable, "-c", _PROGRAM, way]
