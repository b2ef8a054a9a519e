"""What an agent program asked the model, in one form whatever provider it speaks to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request."""

    provider: str  #: "anthropic", "openai" or "google"
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float  #: time.monotonic() of its arrival

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model may call."""
        return list(self._tools())

    def _tools(self) -> Iterator[str]:
        for tool in self.body.get("tools") or []:
            if self.provider == "google":
                yield from (one["name"] for one in tool.get("functionDeclarations") or [])
            elif tool.get("type") == "namespace":  # how Codex groups the tools of an MCP server
                yield from (f"{tool['name']}{one['name']}" for one in tool["tools"])
            elif tool.get("name"):
                yield tool["name"]

    @property
    def is_turn(self) -> bool:
        """Whether it is the agent's work: a title or a summary is asked for without tools."""
        return bool(self.tools) and not self.path.endswith(("/count_tokens", ":countTokens"))

    @property
    def tool_results(self) -> list[str]:
        """What each tool answered, as the model reads it, the oldest first."""
        if self.provider == "openai":
            return [_text(item["output"]) for item in self.body["input"] if item["type"].endswith("_call_output")]
        if self.provider == "anthropic":
            contents = [one["content"] for one in self.body["messages"] if isinstance(one["content"], list)]
            blocks = [block for content in contents for block in content]
            return [_text(block.get("content")) for block in blocks if block["type"] == "tool_result"]
        parts = [part for content in self.body["contents"] for part in content["parts"]]
        return [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]

    @property
    def text(self) -> str:
        """The whole body: to look for words that the model must have seen."""
        return json.dumps(self.body, ensure_ascii=False)


def _text(content: object) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", part)) for part in content)
    return content if isinstance(content, str) else json.dumps(content)
