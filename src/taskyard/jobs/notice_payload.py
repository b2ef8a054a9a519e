"""Build the signed notice of a job for its starter's box.

A notice is a JSON object: its id, the job, how it ended, a sentence, and a check value over all of it
(HMAC-SHA256) under a key that only its user can read, so that no text can imitate a notice. Supervisors
sign, and there may be hundreds: so without OpenSSL, which would take 600 kB in each of them.

Each recipient has its own box folder. ASCII letters, digits, `_` and `-` stay as they are; the rest is
percent-encoded: `a b` waits in `a%20b`. Claude Code's rule, by which `a b`, `a.b` and `a-b` share a folder,
is for folders it shares with us, which these are not.
"""

from __future__ import annotations

import json
import os

from taskyard.core import files
from taskyard.core.system import now_ms, process_alive
from taskyard.core.values import as_list, as_text, check_name, is_folder_safe
from taskyard.errors import BadName, Damaged, StorageError
from taskyard.jobs.job_dir import JobPaths, outbox_path
from taskyard.storage.maildir import Maildir
from taskyard.storage.message_ids import clock_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskyard.jobs.model import End


if TYPE_CHECKING:
    from collections.abc import Mapping
    from hashlib import sha256
else:
    # The interpreter's own SHA-256, by its name since 3.12 and before: `hashlib` loads OpenSSL. Not every
    # distribution has it.
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256

_KEY_SIZE = 32

#: Block size of SHA-256 in bytes; HMAC pads keys to it.
_BLOCK = 64

#: Canonical JSON to sign: the same text for the same payload, however it was formatted.
_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

_INNER = bytes(map((0x36).__xor__, range(256)))
_OUTER = bytes(map((0x5C).__xor__, range(256)))


def sign(home: str, news: Mapping[str, object]) -> dict[str, object]:
    """Return the payload with its check value."""
    return {**news, "check": check_value(home, news)}


def check_value(home: str, news: Mapping[str, object]) -> str:
    """Return the check value over every field but itself."""
    if "check" in news:
        news = {name: value for name, value in news.items() if name != "check"}
    return hmac_sha256(_key(home), _canonical(news).encode())


def hmac_sha256(key: bytes, text: bytes) -> str:
    """Return the HMAC of `text` (RFC 2104), in hexadecimal digits."""
    if len(key) > _BLOCK:
        key = sha256(key).digest()
    key = key.ljust(_BLOCK, b"\0")
    return sha256(key.translate(_OUTER) + sha256(key.translate(_INNER) + text).digest()).hexdigest()


def ensure_key(home: str) -> None:
    """Create the user's key if there is none.

    Raises:
        StorageError: a disk error.
    """
    _key(home)


def _key(home: str) -> bytes:
    """Return the user's key; the first process that needs it creates it."""
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
    """Return the key; None if there is none. An invalid file in its place is renamed: it never signed anything."""
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
        pass  # another process was faster
    except OSError as error:
        raise files.storage_error(path, error) from error
    return None


#: Box of notices for people and no model: `taskyard notices` shows it, no agent is delivered from it. No
#: encoded name equals it, since `%` in a name becomes `%25`.
PEOPLE = "%people"

#: Most characters of a box name; longer ones are cut and get a checksum: file systems allow 255 bytes.
_MAX_NAME = 200
_CUT_MARK = "%-"  #: occurs in no encoded name


def box_name(name: str) -> str:
    """Return the folder name of a recipient, unique to it.

    Raises:
        BadName: no recipient can have this name.
    """
    check_name("an agent", name)
    text = "".join(char if is_folder_safe(char) else _percent_encode(char) for char in name)
    if len(text) <= _MAX_NAME:
        return text
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{text[: _MAX_NAME - len(_CUT_MARK) - len(digest)]}{_CUT_MARK}{digest}"


def is_box_name(text: str) -> bool:
    """Return whether `text` is a valid box name, and so a safe folder name."""
    return 0 < len(text) <= _MAX_NAME and is_folder_safe(text.replace("%", ""))


def recipient_of(record: Mapping[str, object]) -> str:
    """Return the box for notices of a job, by its record, which may have any content."""
    recipient = str(record.get("recipient") or "me")
    try:
        return recipient if is_box_name(recipient) else box_name(recipient)
    except BadName:
        return "me"


def _percent_encode(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode())


def end_notice(folder: JobPaths, record: Mapping[str, object], end: End) -> dict[str, object] | None:
    """Return the notice of an end; None if the job needs none."""
    if has_no_recipient(record):
        return None
    return sign(folder.home, end_payload(folder, record, end))


def has_no_recipient(record: Mapping[str, object]) -> bool:
    """Return whether a job needs no notice: it is silent, or watched in the foreground."""
    return bool(record.get("silent")) or (record.get("isBackgrounded") is False and _is_watched(record))


def end_payload(folder: JobPaths, record: Mapping[str, object], end: End) -> dict[str, object]:
    """Return the unsigned payload of an end."""
    return {
        **base_payload(folder, record),
        "priority": str(record.get("priority") or "later"),
        "status": str(end.status),
        "summary": end_summary(record, end, _kind_text(folder, record, end)),
        "exitCode": end.exit_code,
        "at": end.at,
        **_kind_fields(folder, record),
    }


def _kind_fields(folder: JobPaths, record: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that the job's kind adds."""
    if record.get("type") not in ("local_agent", "remote_agent"):
        return {}
    from taskyard.jobs import exit_record  # only supervisors of agents need it

    return exit_record.agent_notice_fields(folder)


def _is_watched(record: Mapping[str, object]) -> bool:
    """Return whether the process that watches a job in the foreground is running."""
    watcher = as_list(record.get("watcher"))
    if watcher is None or len(watcher) != 2:
        return True
    pid, start = watcher
    return isinstance(pid, int) and isinstance(start, int) and process_alive(pid, start)


def report_stall(folder: JobPaths, record: Mapping[str, object], tail: str) -> None:
    """Send a notice that the job seems to wait for input; it has no status, since nothing ended."""
    answerable = bool(record.get("takesInput"))
    hint = f"Answer with: taskyard send {folder.id} TEXT" if answerable else "It takes no input: stop it, or let it be."
    description = record.get("description")
    said = f'Background command "{description}" appears to be waiting for interactive input'
    news = {
        **base_payload(folder, record),
        "priority": "later",
        "summary": said,
        "tail": tail,
        "hint": hint,
        "at": now_ms(),
    }
    notice = sign(folder.home, news)
    box = Maildir(folder.home, outbox_path(folder.home, str(notice["recipient"])))
    box.open()
    box.put(str(notice["id"]), json.dumps({"news": notice}).encode())


def base_payload(folder: JobPaths, record: Mapping[str, object]) -> dict[str, object]:
    """Return the common fields of every notice: its id, its recipient, and the job."""
    return {
        "id": clock_id(folder.id),
        "recipient": recipient_of(record),
        "taskId": folder.id,
        "toolUseId": record.get("toolUseId"),
        "outputFile": folder.output,
    }


def end_summary(record: Mapping[str, object], end: End, kind_text: str = "") -> str:
    """Return how a job ended, in a sentence; with its kind's own text, if there is one."""
    lost = f"; some of its output was lost ({end.output_lost})" if end.output_lost else ""
    return _end_text(record, end) + (f": {kind_text}" if kind_text else "") + lost


def _kind_text(folder: JobPaths, record: Mapping[str, object], end: End) -> str:
    """Return a kind's text about completed work (the fact `notice`, of a dream `note`)."""
    names = {"remote_agent": "notice", "dream": "note"}
    name = names.get(str(record.get("type")))
    if name is None or end.status != "completed":
        return ""
    from taskyard.jobs.exit_record import read_facts

    return as_text(read_facts(folder).get(name))


#: Names of the kinds without a meaningful exit code, each with the verb for success.
_NOUNS = {
    "monitor_mcp": ("Monitor", "ended"),
    "remote_agent": ("Remote agent", "completed"),
    "local_workflow": ("Workflow", "completed"),
    "in_process_teammate": ("Teammate", "ended"),
    "dream": ("Dream", "completed"),
}


def kind_noun(record: Mapping[str, object]) -> str:
    """Return the name of a job's kind in a sentence."""
    if record.get("type") == "local_agent":
        return "Agent"
    return _NOUNS.get(str(record.get("type")), ("Background command", ""))[0]


def _end_text(record: Mapping[str, object], end: End) -> str:
    if record.get("type") == "local_agent":
        from taskyard.jobs import exit_record

        return exit_record.agent_summary(record, end)
    noun, well = _NOUNS.get(str(record.get("type")), ("Background command", ""))
    what = f'{noun} "{record.get("description")}"'
    if end.cause == "exited" and end.exit_code == 0 and well:
        return f"{what} {well}"
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
