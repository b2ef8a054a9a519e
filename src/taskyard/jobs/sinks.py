"""
Sinks for notices besides their recipient: desktop, terminal bell, webhook, the user's own command.

    [sinks]                                  in config.toml; or environment: TASKYARD_SINKS_DESKTOP=true, …
    desktop = true
    bell = true
    webhook = "https://example.org/hook"
    webhook_secret = "…"
    command = "jq .summary >> ~/jobs.log"
    terminal = "/dev/pts/3"                  for bell and, without notify-send, desktop; default: starter's

A sink can neither delay nor lose a notice: that is in its outbox before, and a separate process does the
rest (`sink_delivery`). The process that ends a job calls `start_sinks`, which costs next to nothing if no
sink is configured.
"""

from __future__ import annotations

import json
import os

from taskyard.config import config_folder
from taskyard.core import files
from taskyard.core.files import read_plain
from taskyard.core.values import NamedTuple, as_list, as_object
from taskyard.errors import BadValue, Damaged, StorageError
from taskyard.jobs import environment
from taskyard.jobs.helper_process import append_log, start_helper
from taskyard.storage import message_ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Log of failures.
SINKS_LOG = "sinks.log"


class Sinks(NamedTuple):
    """The configured sinks."""

    desktop: bool = False
    bell: bool = False
    webhook: str = ""
    webhook_secret: str = ""
    command: str = ""
    terminal: str = ""

    @property
    def any(self) -> bool:
        """Whether any sink is configured."""
        return bool(self.desktop or self.bell or self.webhook or self.command)


def load_sinks(environ: Mapping[str, str] | None = None) -> Sinks:
    """Return the sinks of this process: `[sinks]` in config.toml, overridden by the environment.

    Raises:
        Damaged: the settings file is not TOML.
        BadValue: a setting is unknown or invalid.
    """
    env = os.environ if environ is None else environ
    values = _read_table(env)
    for name in Sinks._fields:
        if (text := env.get(f"TASKYARD_SINKS_{name.upper()}")) is not None:
            values[name] = text
    return _parse_sinks(values) if values else Sinks()


def settings_file(environ: Mapping[str, str] | None = None) -> str:
    """Return the file in which sinks may be configured; "" if the environment configures them."""
    env = os.environ if environ is None else environ
    if any(f"TASKYARD_SINKS_{name.upper()}" in env for name in Sinks._fields):
        return ""
    return os.path.join(config_folder(env), "config.toml")


def may_have_sinks(settings: str) -> bool:
    """Return whether to look for sinks at all, by the result of `settings_file`."""
    return not settings or os.access(settings, os.F_OK)


def start_sinks(home: str, news: Mapping[str, object], *, terminal: str = "") -> bool:
    """Deliver the notice `news` by a separate process; return False if there is no sink, or it was started before.

    `terminal` is the starter's (`terminal_of`), for bell and desktop if the settings name none.

    Never raises and never waits: a failure to start is logged in `<home>/sinks.log`.
    """
    try:
        sinks = load_sinks()
        if not sinks.any or not message_ids.is_message_id(str(news.get("id"))):
            return False
        folder = f"{home}/sinks"
        files.make_private_folder(folder)
        path = f"{folder}/{news['id']}"
        files.create(path, json.dumps({"news": news, "terminal": sinks.terminal or terminal}).encode())
        start_helper(home, "__sinks", path)
        return True
    except FileExistsError:
        return False  # another process delivers it already
    except (OSError, ValueError, Damaged, BadValue, StorageError) as error:
        append_log(home, SINKS_LOG, f"start: {error}")
        return False


def terminal_of(record: Mapping[str, object]) -> str:
    """Return the terminal a job was started from; "" if there was none, or its name was reused."""
    known = as_list(record.get("terminal"))
    if known is None or len(known) != 2 or not isinstance(known[0], str):
        return ""
    return known[0] if environment.terminal_identity(known[0]) == (known[0], known[1]) else ""


def _read_table(env: Mapping[str, str]) -> dict[str, object]:
    path = os.path.join(config_folder(env), "config.toml")
    try:
        data = read_plain(path, most=files.LARGEST_RECORD, follow=True)
    except OSError:
        return {}
    if b"sinks" not in data:
        return {}
    import tomllib  # takes 15 ms, needed only with sinks

    try:
        return dict(as_object(tomllib.loads(data.decode()).get("sinks")) or {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Damaged(path, str(error)) from error


def _parse_sinks(values: Mapping[str, object]) -> Sinks:
    known: dict[str, object] = {}
    for name, value in values.items():
        if name not in Sinks._fields:
            raise BadValue("The setting sinks", name, f"one of {', '.join(Sinks._fields)}")
        known[name] = _parse_bool(name, value) if name in ("desktop", "bell") else _parse_text(name, value)
    sinks = Sinks(**known)  # type: ignore[arg-type]  # each has its own type by now
    if sinks.webhook and not sinks.webhook.startswith(("https://", "http://")):
        raise BadValue("sinks.webhook", sinks.webhook, "an address that begins with https:// or http://")
    if sinks.webhook and not sinks.webhook_secret:
        raise BadValue("sinks.webhook_secret", "", "a secret that you and the receiver share: every request is signed")
    return sinks


def _parse_bool(name: str, value: object) -> bool:
    if str(value).lower() in ("1", "true", "yes", "on"):
        return True
    if str(value).lower() in ("0", "false", "no", "off", ""):
        return False
    raise BadValue(f"sinks.{name}", value, "true or false")


def _parse_text(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise BadValue(f"sinks.{name}", value, "text")
    return value
