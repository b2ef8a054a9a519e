"""Candidates about agents for others: who may ask, and what is offered. Plain looks, as all of Tab's."""

from __future__ import annotations

import os

from taskyard import config, paths
from taskyard.shapes import as_object, as_text


def callers() -> list[tuple[str, str]]:
    """Everyone who has a token."""
    from taskyard.a2a_server import tokens

    return [(name, "") for name in tokens.callers(paths.home())]


def skills() -> list[tuple[str, str]]:
    """The skills in config.toml."""
    found = as_object((as_object(config.in_file(os.environ).get("a2a")) or {}).get("skills")) or {}
    return [(name, as_text((as_object(table) or {}).get("description"))) for name, table in found.items()]
