"""
Codex: a table `[mcp_servers.taskyard]` in ~/.codex/config.toml (or $CODEX_HOME/config.toml).

In the scope `project` it is <project>/.codex/config.toml, which Codex reads in projects that it trusts.
"""

from __future__ import annotations

import os

from taskyard.clients.target import Target
from taskyard.paths import env_folder, user_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.clients.target import Wanted

#: Seconds: TaskOutput may wait ten minutes, and Codex gives up after one unless told otherwise.
_TOOL_TIMEOUT = 660


def targets(wanted: Wanted, env: Mapping[str, str]) -> list[Target]:
    """Its file, and what goes into it."""
    server = {**wanted.start.server(), "tool_timeout_sec": _TOOL_TIMEOUT}
    if wanted.scope == "project":
        return [Target(os.path.join(wanted.root, ".codex", "config.toml"), server, wanted.root)]
    folder = env_folder("CODEX_HOME", env) or os.path.join(user_home(env), ".codex")
    return [Target(os.path.join(folder, "config.toml"), server)]
