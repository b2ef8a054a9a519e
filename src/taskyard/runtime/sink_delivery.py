"""
Telling one piece of news to every sink, in the process that `sinks.start_sinks` made for it.

The quick ones come first, so that none waits for a webhook that does not answer. What fails is noted in
`<home>/sinks.log` and hinders no other.
"""

from __future__ import annotations

import json
import os
import time

from taskyard import paths
from taskyard.commands import run_command
from taskyard.disk import files
from taskyard.errors import NotFound
from taskyard.harmless import safe
from taskyard.runtime.log import note
from taskyard.runtime.notice import from_news, to_json
from taskyard.runtime.sinks import LOG, load_sinks
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector

    from taskyard.runtime.notice import Notice
    from taskyard.runtime.sinks import Sinks

#: Seconds for one answer of a webhook, or for telling the desktop.
ANSWER_TIMEOUT = 10.0

#: Seconds between the tries of a webhook: a restart of the receiver is outlived, a dead one given up in a minute.
BACK_OFF = (1.0, 2.0, 4.0, 8.0, 16.0)

#: Seconds for the person's own command.
COMMAND_TIMEOUT = 60.0

#: Answers by which a receiver asks to be tried again; all others from 400 to 499 mean that it never will take it.
_TRY_AGAIN = frozenset({408, 425, 429})


def tell(path: str) -> list[str]:
    """Tell the news in a file of `start_sinks`, which is then removed; answers what went wrong.

    Raises:
        NotFound: there is no news in it.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    data = files.read(path)
    if data is None:
        raise NotFound(f"No news in {path}.")
    os.unlink(path)  # told at most once: whoever dies over it leaves the notice in its outbox all the same
    try:
        body = as_object(json.loads(data)) or {}
    except ValueError:
        body = {}
    notice = from_news(as_object(body.get("news")) or {})
    if notice is None:
        raise NotFound(f"No news in {path}.")
    failed: list[str] = []
    for name, act in _each(load_sinks(), notice, str(body.get("terminal") or "")):
        try:
            act()
        except Exception as error:  # the top of an edge: whatever a sink does, the next gets its turn
            failed.append(f"{name}: {error}")
            note(home, LOG, f"{notice.id} {name}: {error}")
    return failed


def _each(sinks: Sinks, notice: Notice, terminal: str) -> Iterator[tuple[str, Callable[[], None]]]:
    if sinks.bell:
        yield "bell", lambda: write_terminal(terminal, b"\a")
    if sinks.desktop:
        yield "desktop", lambda: show_on_desktop(notice, terminal)
    if sinks.command:
        yield "command", lambda: run_sink_command(sinks.command, notice)
    if sinks.webhook:
        yield "webhook", lambda: post(sinks.webhook, sinks.webhook_secret, notice)


def show_on_desktop(notice: Notice, terminal: str) -> None:
    """Show it by notify-send; where there is none, have the terminal show it (OSC 9)."""
    import shutil

    text = safe(notice.summary)
    program = shutil.which("notify-send")
    if program is None:
        write_terminal(terminal, b"\x1b]9;" + text.encode("utf-8", "replace") + b"\a")
        return
    import subprocess

    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # some desktops read markup
    subprocess.run(
        [program, "--app-name=Taskyard", "--", "Taskyard", escaped],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=ANSWER_TIMEOUT,
        check=True,
    )


def write_terminal(terminal: str, data: bytes) -> None:
    """Write to a terminal, and to nothing that is none.

    Raises:
        NotFound: there is no such terminal.
    """
    if not terminal:
        raise NotFound("No terminal is known.")
    # Not controlling, and never blocking: it may be stopped by Ctrl+S.
    fd = os.open(terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not os.isatty(fd):
            raise NotFound(f"{terminal} is no terminal.")
        os.write(fd, data)
    finally:
        os.close(fd)


def run_sink_command(command: str, notice: Notice) -> None:
    """Run the person's own command with the notice as JSON on its stdin."""
    end = run_command(
        command,
        cwd=paths.user_home(),
        timeout=COMMAND_TIMEOUT,
        env={**os.environ, "TASKYARD_NOTICE": notice.id},
        stdin=_body(notice),
        one_stream=True,
        end_leftovers=True,
    )
    if end.cause != "exited" or end.exit_code:
        code = "" if end.exit_code is None else f" with {end.exit_code}"
        raise RuntimeError(f"it {end.cause}{code}: {end.why or safe(end.stdout[-500:].decode('utf-8', 'replace'))}")


def post(url: str, secret: str, notice: Notice, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Send it to a webhook until that says it has it, a few times.

    Each try carries the notice's id as `Idempotency-Key`, so that a receiver can tell a repeat, and
    `X-Taskyard-Signature: sha256=HMAC(secret, timestamp + "." + body)`.
    """
    for pause in (*BACK_OFF, None):
        why = _try_post(url, secret, notice)
        if why is None:
            return
        if pause is None:
            raise RuntimeError(f"given up after {len(BACK_OFF) + 1} tries: {why}")
        sleep(pause)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver works out for itself and compares."""
    import hmac

    return "sha256=" + hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def _try_post(url: str, secret: str, notice: Notice) -> str | None:
    """Send it once: None if it was taken, else why another try may help."""
    from urllib.error import HTTPError
    from urllib.request import Request

    data, timestamp = _body(notice), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "taskyard",
        "Idempotency-Key": notice.id,
        "X-Taskyard-Timestamp": timestamp,
        "X-Taskyard-Signature": signature(secret, timestamp, data),
    }
    try:
        request = Request(url, data, headers, method="POST")  # noqa: S310  # load_sinks lets only http(s) through
        with _opener().open(request, timeout=ANSWER_TIMEOUT):
            return None
    except HTTPError as error:
        error.close()
        return _why(error)
    except OSError as error:  # no connection, no answer in time
        return str(error)


def _why(error: HTTPError) -> str:
    if error.code < 500 and error.code not in _TRY_AGAIN:
        raise RuntimeError(f"it was refused with {error.code}") from None
    return f"it answered {error.code}"


def _opener() -> OpenerDirector:
    """Opens addresses and follows no redirection: signed news goes to nobody but whom the person named."""
    from urllib import request

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        request.HTTPErrorProcessor(),
        request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _body(notice: Notice) -> bytes:
    return json.dumps(to_json(notice)).encode()
