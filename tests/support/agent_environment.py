"""
The surroundings of a real agent program in a test: a home of its own, a model on loopback, nothing beyond.

Everything is set the way a user would: files below HOME and variables, which Taskyard passes on unchanged.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from support import agent_programs
from support.model_api import ModelApi

#: No key: the model on loopback looks at none.
KEY = "sk-test-0000000000000000"

#: What keeps each program from asking, telling or updating anything.
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "IS_SANDBOX": "1",  # Claude Code lets root skip permissions only where this says so
    "GEMINI_TELEMETRY_ENABLED": "false",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "NO_UPDATE_NOTIFIER": "1",
}


def arranged(api: ModelApi, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every program, by its command on the PATH, speak to `api` alone."""
    monkeypatch.setenv("PATH", f"{agent_programs.folder()}:{os.environ['PATH']}")
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, api.url)  # which refuses, and remembers what was tried
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    home = Path(os.environ["HOME"])
    monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    _claude(Path(os.environ["CLAUDE_CONFIG_DIR"]))
    _codex(home, api.url)
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", api.url)
    _gemini(home)
    _opencode(Path(os.environ["XDG_CONFIG_HOME"]), api.url)


def _claude(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    known = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []}}
    (folder / ".claude.json").write_text(json.dumps(known), encoding="utf-8")


def _codex(home: Path, url: str) -> None:
    folder = home / ".codex"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(
        f'''model = "gpt-5.4"
model_provider = "local"
check_for_update_on_startup = false

[model_providers.local]
name = "local"
base_url = "{url}/v1"
env_key = "TEST_MODEL_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
stream_idle_timeout_ms = 60000

[analytics]
enabled = false

[otel]
exporter = "none"
''',
        encoding="utf-8",
    )


def _gemini(home: Path) -> None:
    folder = home / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"maxAttempts": 2, "enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "telemetry": {"enabled": False},
    }
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def _opencode(config: Path, url: str) -> None:
    folder = config / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    model = {"name": "scripted", "limit": {"context": 200000, "output": 8000}, "tool_call": True}
    provider = {
        "npm": "@ai-sdk/anthropic",
        "name": "local",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": model},
    }
    found = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": "local/scripted",
        "provider": {"local": provider},
    }
    (folder / "opencode.json").write_text(json.dumps(found), encoding="utf-8")
