"""
Gemini CLI: an entry of `mcpServers` in ~/.gemini/settings.json (or $GEMINI_CLI_HOME/.gemini/settings.json).

In the scope `project` it is <project>/.gemini/settings.json. It replaces $NAME in values by the variable of that name.
"""

from __future__ import annotations

import os

from taskyard.clients.json_config import JsonWish
from taskyard.clients.target import Target
from taskyard.errors import BadValue
from taskyard.paths import env_folder, user_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.clients.target import Wanted

#: Milliseconds: TaskOutput may wait ten minutes, which is when Gemini CLI gives up unless told otherwise.
_TIMEOUT = 660_000


def targets(wanted: Wanted, env: Mapping[str, str]) -> list[Target]:
    """Its file, and what goes into it."""
    for name, value in wanted.start.env.items():
        if "$" in value:
            raise BadValue(name, value, "a value without $, which Gemini CLI replaces by variables")
    wish = JsonWish(server={**wanted.start.server(), "timeout": _TIMEOUT})
    if wanted.scope == "project":
        return [Target(os.path.join(wanted.root, ".gemini", "settings.json"), wish, wanted.root)]
    home = env_folder("GEMINI_CLI_HOME", env) or user_home(env)
    return [Target(os.path.join(home, ".gemini", "settings.json"), wish)]
