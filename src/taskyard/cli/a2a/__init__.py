"""`taskyard a2a …`: our own agents for others, over A2A. One table; each verb lives in a file by its subject."""

from __future__ import annotations

from taskyard.cli.command import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = "taskyard.cli.a2a"

ROWS: Mapping[str, Row] = {
    "serve": Row(f"{_HERE}.serve:SERVE", "Offer agents of this machine to others, over A2A"),
    "token": Row(f"{_HERE}.token:TOKEN", "The token of one who may ask for them"),
    "callers": Row(f"{_HERE}.token:CALLERS", "Everyone who may ask for them"),
}
