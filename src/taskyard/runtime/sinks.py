"""
Sinks: where news of a job goes besides its receiver. Desktop, terminal bell, webhook, a command of the person's own.

    [sinks]                                  in config.toml; in the environment TASKYARD_SINKS_DESKTOP=true, …
    desktop = true
    bell = true
    webhook = "https://example.org/hook"
    webhook_secret = "…"
    command = "jq .summary >> ~/jobs.log"
    terminal = "/dev/pts/3"                  for bell and, without notify-send, desktop; else the starter's own

A sink can neither delay nor lose a notice: that is in its outbox before, and a process of its own does the rest
(`sink_delivery`). Whoever ends a job calls `start_sinks`, which costs next to nothing where none is set up.
"""

from __future__ import annotations

import json
import os

from taskyard import message_ids
from taskyard.config import config_folder
from taskyard.disk import files
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.plain_file import read_plain
from taskyard.runtime import here
from taskyard.runtime.helper import start_helper
from taskyard.runtime.log import note
from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Where failures are noted.
LOG = "sinks.log"


class Sinks(NamedTuple):
    """What is set up."""

    desktop: bool = False
    bell: bool = False
    webhook: str = ""
    webhook_secret: str = ""
    command: str = ""
    terminal: str = ""

    @property
    def any(self) -> bool:
        """Whether news goes anywhere."""
        return bool(self.desktop or self.bell or self.webhook or self.command)


def load_sinks(environ: Mapping[str, str] | None = None) -> Sinks:
    """What is set up for this process: `[sinks]` in config.toml, then the environment.

    Raises:
        Damaged: the settings file is not TOML.
        BadValue: a setting is unknown, or makes no sense.
    """
    env = os.environ if environ is None else environ
    values = _table(env)
    for name in Sinks._fields:
        if (text := env.get(f"TASKYARD_SINKS_{name.upper()}")) is not None:
            values[name] = text
    return _checked(values) if values else Sinks()


def settings_file(environ: Mapping[str, str] | None = None) -> str:
    """The file in which sinks may be set up; "" if the environment does that already."""
    env = os.environ if environ is None else environ
    if any(f"TASKYARD_SINKS_{name.upper()}" in env for name in Sinks._fields):
        return ""
    return os.path.join(config_folder(env), "config.toml")


def may_be_set_up(settings: str) -> bool:
    """Whether to look for sinks at all, by what `settings_file` said."""
    return not settings or os.access(settings, os.F_OK)


def start_sinks(home: str, news: Mapping[str, object], *, terminal: str = "") -> bool:
    """Have news told by a process of its own; False if there is no sink, or it is told already.

    `terminal` is the starter's (`terminal_of`), for bell and desktop where the settings name none.

    Never raises, and never waits: a sink that cannot be started is noted in `<home>/sinks.log`.
    """
    try:
        sinks = load_sinks()
        if not sinks.any or not message_ids.is_id(str(news.get("id"))):
            return False
        folder = f"{home}/sinks"
        files.make_private_folder(folder)
        path = f"{folder}/{news['id']}"
        files.create(path, json.dumps({"news": news, "terminal": sinks.terminal or terminal}).encode())
        start_helper(home, "__sinks", path)
        return True
    except FileExistsError:
        return False  # somebody tells it already
    except (OSError, ValueError, Damaged, BadValue, StorageError) as error:
        note(home, LOG, f"start: {error}")
        return False


def terminal_of(record: Mapping[str, object]) -> str:
    """The terminal a job was started from, by its record; "" if there was none, or another has its name by now."""
    known = as_list(record.get("terminal"))
    if known is None or len(known) != 2 or not isinstance(known[0], str):
        return ""
    return known[0] if here.known_terminal(known[0]) == (known[0], known[1]) else ""


def _table(env: Mapping[str, str]) -> dict[str, object]:
    path = os.path.join(config_folder(env), "config.toml")
    try:
        data = read_plain(path, most=files.LARGEST_RECORD, follow=True)
    except OSError:
        return {}
    if b"sinks" not in data:
        return {}
    import tomllib  # 15 ms that only those with sinks pay

    try:
        return dict(as_object(tomllib.loads(data.decode()).get("sinks")) or {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Damaged(path, str(error)) from error


def _checked(values: Mapping[str, object]) -> Sinks:
    known: dict[str, object] = {}
    for name, value in values.items():
        if name not in Sinks._fields:
            raise BadValue("The setting sinks", name, f"one of {', '.join(Sinks._fields)}")
        known[name] = _switch(name, value) if name in ("desktop", "bell") else _text(name, value)
    sinks = Sinks(**known)  # type: ignore[arg-type]  # each has its own type by now
    if sinks.webhook and not sinks.webhook.startswith(("https://", "http://")):
        raise BadValue("sinks.webhook", sinks.webhook, "an address that begins with https:// or http://")
    if sinks.webhook and not sinks.webhook_secret:
        raise BadValue("sinks.webhook_secret", "", "a secret that you and the receiver share: every request is signed")
    return sinks


def _switch(name: str, value: object) -> bool:
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off", ""):
        return False
    raise BadValue(f"sinks.{name}", value, "true or false")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise BadValue(f"sinks.{name}", value, "text")
    return value
