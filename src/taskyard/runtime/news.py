"""
The news of a job: what its starter is told, once, signed so that no text can imitate it.

A notice is a JSON object: its id, the job, how it ended, a sentence, and a check value over all of it
(HMAC-SHA256, under a key that only its user can read).
"""

from __future__ import annotations

import json
import os

from taskyard.clock import now_ms
from taskyard.disk import files
from taskyard.errors import BadName, Damaged, StorageError
from taskyard.maildir import Box
from taskyard.message_ids import lone_id
from taskyard.names import folder_name
from taskyard.runtime.folder import JobFolder, outbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.runtime.model import End

_KEY_SIZE = 32


def of_end(folder: JobFolder, record: Mapping[str, object], end: End) -> dict[str, object] | None:
    """The notice of an end; None where nobody is to hear of it."""
    if record.get("silent") or record.get("isBackgrounded") is False:
        return None  # whoever watches it in the foreground sees its end
    news: dict[str, object] = {
        **_about(folder, record),
        "priority": str(record.get("priority") or "later"),
        "status": end.status.value,
        "summary": summary(record, end),
        "exitCode": end.exit_code,
        "at": end.at,
    }
    return signed(folder.home, news)


def tell_stall(folder: JobFolder, record: Mapping[str, object], tail: str) -> None:
    """Say that the job seems to wait for an answer: news without a status, since nothing ended."""
    answerable = bool(record.get("takesInput"))
    hint = f"Answer with: taskyard send {folder.id} TEXT" if answerable else "It takes no input: stop it, or let it be."
    description = record.get("description")
    said = f'Background command "{description}" appears to be waiting for interactive input'
    news = {
        **_about(folder, record),
        "priority": "later",
        "summary": said,
        "tail": tail,
        "hint": hint,
        "at": now_ms(),
    }
    notice = signed(folder.home, news)
    box = Box(folder.home, outbox(folder.home, str(notice["recipient"])))
    box.open()
    box.put(str(notice["id"]), json.dumps({"news": notice}).encode())


def _about(folder: JobFolder, record: Mapping[str, object]) -> dict[str, object]:
    """What every notice says: its own id, for whom it is, and of which job."""
    return {
        "id": lone_id(folder.id),
        "recipient": _recipient(record),
        "taskId": folder.id,
        "toolUseId": record.get("toolUseId"),
        "outputFile": folder.output,
    }


def _recipient(record: Mapping[str, object]) -> str:
    """Whose box it goes to, as a folder name: a record may hold anything."""
    try:
        return folder_name("an agent", str(record.get("recipient") or "me"))
    except BadName:
        return "me"


def summary(record: Mapping[str, object], end: End) -> str:
    """How a job ended, in a sentence."""
    lost = f"; some of its output was lost ({end.output_lost})" if end.output_lost else ""
    return _how_it_ended(record, end) + lost


def _how_it_ended(record: Mapping[str, object], end: End) -> str:
    what = f'Background command "{record.get("description")}"'
    if end.cause == "exited":
        how = "completed (exit code 0)" if end.exit_code == 0 else f"failed with exit code {end.exit_code}"
        return f"{what} {how}"
    if end.cause == "timeout":
        return f"{what} was stopped after reaching its background time limit"
    if end.cause == "output_cap":
        return f"{what} was stopped since its output was larger than its cap"
    if end.cause == "stopped":
        return f"{what} was stopped"
    if end.cause == "signal":
        return f"{what} failed: killed by signal {end.signal}"
    if end.cause == "oom":
        return f"{what} failed: out of memory"
    return f"{what} failed: {end.error or 'Unknown error'}"


def signed(home: str, news: dict[str, object]) -> dict[str, object]:
    """The notice with its check value."""
    return {**news, "check": check_value(home, news)}


def check_value(home: str, news: Mapping[str, object]) -> str:
    """The check value over every field but itself."""
    import hmac

    fields = {name: value for name, value in news.items() if name != "check"}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
    return hmac.digest(_key(home), text, "sha256").hex()


def _key(home: str) -> bytes:
    """The user's key, made by the first who needs it."""
    path = f"{home}/notice.key"
    while (data := _read_key(path)) is None:
        temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        files.create(temporary, os.urandom(_KEY_SIZE))
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(temporary)
    return data


def _read_key(path: str) -> bytes | None:
    """The key; None if there is none. What is in its place and is none is kept apart: nothing was sealed with it."""
    try:
        data = files.read(path, most=4096)
        if data is None or len(data) >= _KEY_SIZE:
            return data
    except Damaged:
        pass
    except StorageError:
        if os.path.isfile(path) and not os.path.islink(path):
            raise
    try:
        os.rename(path, f"{path}.{os.urandom(4).hex()}.bad")
    except FileNotFoundError:
        pass  # somebody was quicker
    except OSError as error:
        raise files.storage_error(path, error) from error
    return None
