"""Clients of Taskyard as they are on somebody's machine: where each keeps its configuration."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any


def claude_servers() -> Path:
    return Path(os.environ["CLAUDE_CONFIG_DIR"]) / ".claude.json"


def claude_settings() -> Path:
    return Path(os.environ["CLAUDE_CONFIG_DIR"]) / "settings.json"


def codex_config() -> Path:
    return Path(os.environ["HOME"]) / ".codex" / "config.toml"


def gemini_settings() -> Path:
    return Path(os.environ["HOME"]) / ".gemini" / "settings.json"


def given(path: Path, content: object) -> Path:
    """A configuration file as somebody left it: text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def found(path: Path) -> Any:
    """What a configuration file says."""
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def copies(path: Path) -> list[Path]:
    """The copies kept beside a file."""
    return sorted(path.parent.glob(f"{path.name}.taskyard-*.bak"))


def hook_commands(settings: Any) -> dict[str, list[str]]:
    """The command lines of every hook, by event."""
    return {
        event: [hook["command"] for group in groups for hook in group["hooks"]]
        for event, groups in settings.get("hooks", {}).items()
    }
