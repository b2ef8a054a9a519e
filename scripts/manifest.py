"""
Write `src/taskyard/servers/mcp/manifest.json`: what `taskyard mcp` answers before the SDK is loaded.

    python scripts/manifest.py            write it
    python scripts/manifest.py --check    exit 1 if it is not current

The SDK makes every answer in it. Run this after a change to a tool, its arguments or the SDK's version.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FILE = SOURCE / "taskyard" / "servers" / "mcp" / "manifest.json"

#: The server without its front: every answer is the SDK's.
SDK_SERVER = (
    sys.executable,
    "-c",
    "from taskyard.servers.mcp.server import serve_stdio; serve_stdio(agent=None, list=None, tasks_dir=None)",
)

CLIENT = {"name": "manifest", "version": "1"}
#: Seconds for a server to end.
_PATIENCE = 20

#: What belongs to one answer alone.
_OWN = ("tools", "prompts", "resources", "instructions", "capabilities", "supportedVersions", "_meta")


def initialize(version: str) -> dict[str, Any]:
    """The first request of a client with a handshake."""
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def enveloped(version: str, method: str) -> dict[str, Any]:
    """A request of a client without a handshake."""
    key = "io.modelcontextprotocol/"
    meta = {f"{key}protocolVersion": version, f"{key}clientInfo": CLIENT, f"{key}clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": method, "method": method, "params": {"_meta": meta}}


PROMPTS: dict[str, Any] = {"jsonrpc": "2.0", "id": 3, "method": "prompts/list", "params": {}}
TOOLS: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def asked(
    server: Sequence[str], messages: Sequence[Mapping[str, Any]], settings: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The answers of a server to some messages, by their ids."""
    with tempfile.TemporaryDirectory() as home:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("TASKYARD_", "CLAUDE_CODE_"))}
        env |= {"TASKYARD_HOME": home, "XDG_CONFIG_HOME": home, "PYTHONPATH": str(SOURCE), **settings}
        with subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=home) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
            process.stdin.flush()
            answers = [process.stdout.readline() for message in messages if "id" in message]
            process.stdin.close()
            process.wait(_PATIENCE)
    return sorted((json.loads(line) for line in answers), key=lambda one: str(one["id"]))


def made() -> dict[str, Any]:
    """The manifest as the SDK would have it now."""
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

    settings = {"TASKYARD_MCP_STRUCTURED": "1"}
    latest, modern = HANDSHAKE_PROTOCOL_VERSIONS[-1], MODERN_PROTOCOL_VERSIONS[-1]
    hello, listed, prompts = (
        one["result"] for one in asked(SDK_SERVER, [initialize(latest), TOOLS, PROMPTS], settings)
    )
    methods = ("server/discover", "tools/list", "prompts/list", "resources/list")
    new = [enveloped(modern, method) for method in methods]
    by_id = {one["id"]: one["result"] for one in asked(SDK_SERVER, new, settings)}
    off = {**settings, "TASKYARD_DISABLE_BACKGROUND_TASKS": "1"}
    _, alone = (one["result"] for one in asked(SDK_SERVER, [initialize(latest), TOOLS], off))
    tools = {tool["name"]: tool for tool in listed["tools"]}
    foreground = {tool["name"]: tool for tool in alone["tools"]}
    return {
        "handshake": {"versions": list(HANDSHAKE_PROTOCOL_VERSIONS), "capabilities": hello["capabilities"]},
        "modern": {
            "versions": list(MODERN_PROTOCOL_VERSIONS),
            "capabilities": by_id["server/discover"]["capabilities"],
            **{name: {key: by_id[name][key] for key in by_id[name] if key not in _OWN} for name in methods},
        },
        "tools": list(tools.values()),
        "prompts": prompts["prompts"],
        "foreground": {name: foreground.get(name) for name in tools if foreground.get(name) != tools[name]},
    }


def main(words: Sequence[str]) -> int:
    """Write the file, or check it."""
    text = json.dumps(made(), indent=1, ensure_ascii=False) + "\n"
    if list(words) == ["--check"]:
        if not FILE.is_file() or FILE.read_text(encoding="utf-8") != text:
            print(f"{FILE.relative_to(ROOT)} is not current: run `python scripts/manifest.py`.", file=sys.stderr)
            return 1
        return 0
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
