"""
opencode: an entry of `mcp` in ~/.config/opencode/opencode.json (or $XDG_CONFIG_HOME/opencode/opencode.json).

In the scope `project` it is <project>/opencode.json. opencode also reads opencode.jsonc beside it, and merges both. It
replaces {env:NAME} and {file:PATH} in the text of the file.
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

    from taskyard.clients.starting import Start
    from taskyard.clients.target import Wanted


def targets(wanted: Wanted, env: Mapping[str, str]) -> list[Target]:
    """Its file, and what goes into it."""
    for name, value in wanted.start.env.items():
        if "{env:" in value or "{file:" in value:
            raise BadValue(name, value, "a value without {env: or {file:, which opencode replaces")
    wish = JsonWish(server=server(wanted.start), servers="mcp")
    if wanted.scope == "project":
        return [Target(os.path.join(wanted.root, "opencode.json"), wish, wanted.root)]
    folder = env_folder("XDG_CONFIG_HOME", env) or os.path.join(user_home(env), ".config")
    return [Target(os.path.join(folder, "opencode", "opencode.json"), wish)]


def server(start: Start) -> dict[str, object]:
    """Our server, as opencode writes one."""
    words = [start.words[0], *start.arguments]
    return {"type": "local", "command": words, "environment": dict(start.env), "enabled": True}
