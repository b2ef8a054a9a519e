"""
Telling one piece of news to every sink, in the process that `sinks.start_sinks` made for it.

The quick ones come first, so that none waits for a webhook that does not answer. What fails is noted in
`<home>/sinks.log` and hinders no other. What is for the webhook is queued in `<home>/sinks/`: a few processes at most
send it, each piece of news within a bounded time, however slowly a receiver answers.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from socket import SHUT_RDWR, socket

from taskyard import paths
from taskyard.commands import run_command
from taskyard.disk import files
from taskyard.disk.kernel_lock import RangeLock
from taskyard.errors import NotFound
from taskyard.harmless import safe
from taskyard.runtime.log import note
from taskyard.runtime.notice import from_news, to_json
from taskyard.runtime.sinks import LOG, load_sinks
from taskyard.shapes import as_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection
    from threading import Timer
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector

    from taskyard.runtime.notice import Notice
    from taskyard.runtime.sinks import Sinks

#: Seconds for one answer of a webhook, from the connection to its last header, or for telling the desktop.
ANSWER_TIMEOUT = 10.0

#: Seconds for which news is offered to a webhook after it was queued; then it is given up.
DELIVERY_TIMEOUT = 120.0

#: Processes that send to webhooks at once; what comes meanwhile waits in the queue.
SENDERS = 4

#: Seconds between the tries of a webhook: a restart of the receiver is outlived, a dead one given up in a minute.
BACK_OFF = (1.0, 2.0, 4.0, 8.0, 16.0)

#: Seconds for the person's own command.
COMMAND_TIMEOUT = 60.0

#: How the names end of what waits for the webhook.
_QUEUED = ".webhook"

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
    if load_sinks().webhook:
        files.create(f"{home}/sinks/{notice.id}{_QUEUED}", json.dumps(body.get("news")).encode())
        failed += send_queued(home)
    return failed


def send_queued(home: str) -> list[str]:
    """Send what is queued for the webhook, if fewer than `SENDERS` processes do; answers what went wrong.

    Whoever finds all places taken leaves: those who hold them look at the queue again after they let go.
    """
    failed: list[str] = []
    with RangeLock(f"{home}/sinks.lock") as place:
        while _queued(home) and any(place.try_take(number) for number in range(SENDERS)):
            try:
                for name in _queued(home):
                    if why := _send(home, name):
                        failed.append(f"webhook: {why}")
            finally:
                place.release()
    return failed


def _queued(home: str) -> list[str]:
    return sorted(name for name in os.listdir(f"{home}/sinks") if name.endswith(_QUEUED))


def _send(home: str, name: str) -> str:
    """Take one piece of news from the queue and send it; why it failed, "" if it did not or somebody else has it."""
    path = f"{home}/sinks/{name}"
    try:
        data, queued = files.read(path), os.lstat(path).st_mtime
        os.unlink(path)  # told at most once
        notice = from_news(as_object(json.loads(data or b"{}")) or {})
    except (FileNotFoundError, ValueError):
        return ""
    sinks = load_sinks()
    if notice is None or not sinks.webhook:
        return ""
    left = DELIVERY_TIMEOUT - min(max(time.time() - queued, 0.0), DELIVERY_TIMEOUT)
    try:
        post(sinks.webhook, sinks.webhook_secret, notice, timeout=left)
    except Exception as error:  # the top of an edge: the next gets its turn
        note(home, LOG, f"{notice.id} webhook: {error}")
        return str(error)
    return ""


def _each(sinks: Sinks, notice: Notice, terminal: str) -> Iterator[tuple[str, Callable[[], None]]]:
    if sinks.bell:
        yield "bell", lambda: write_terminal(terminal, b"\a")
    if sinks.desktop:
        yield "desktop", lambda: show_on_desktop(notice, terminal)
    if sinks.command:
        yield "command", lambda: run_sink_command(sinks.command, notice)


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


def post(
    url: str,
    secret: str,
    notice: Notice,
    *,
    sleep: Callable[[float], None] = time.sleep,
    timeout: float = DELIVERY_TIMEOUT,
) -> None:
    """Send it to a webhook until that says it has it, a few times, for at most `timeout` seconds and one answer more.

    Each try carries the notice's id as `Idempotency-Key`, so that a receiver can tell a repeat, and
    `X-Taskyard-Signature: sha256=HMAC(secret, timestamp + "." + body)`.
    """
    until = time.monotonic() + timeout
    for tries, pause in enumerate((*BACK_OFF, None), start=1):
        why = _try_post(url, secret, notice)
        if why is None:
            return
        if pause is None or time.monotonic() + pause >= until:
            raise RuntimeError(f"given up after {tries} {'try' if tries == 1 else 'tries'}: {why}")
        sleep(pause)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """What a receiver works out for itself and compares."""
    import hmac

    return "sha256=" + hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def _try_post(url: str, secret: str, notice: Notice) -> str | None:
    """Send it once: None if it was taken, else why another try may help."""
    from http.client import HTTPException
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
    patience, late = _Patience(), f"no answer within {ANSWER_TIMEOUT:g} s"
    try:
        request = Request(url, data, headers, method="POST")  # noqa: S310  # load_sinks lets only http(s) through
        with _opener(patience).open(request, timeout=ANSWER_TIMEOUT):
            return late if patience.is_over else None  # headers that were cut short read as if they had ended
    except HTTPError as error:
        error.close()
        return _why(error)
    except (OSError, HTTPException) as error:  # no connection, no answer in time
        return late if patience.is_over else str(error)
    finally:
        patience.end()


class _Patience:
    """Ends a connection `ANSWER_TIMEOUT` seconds after it was begun, whatever comes through it meanwhile."""

    def __init__(self) -> None:
        self.is_over = False
        self._timers: list[Timer] = []
        self._copies: list[socket] = []

    def connection(self, kind: Callable[..., HTTPConnection]) -> Callable[..., HTTPConnection]:
        """Makes connections of this kind that are watched from their first byte, the TLS handshake included."""

        def made(*args: object, **options: object) -> HTTPConnection:
            found = kind(*args, **options)
            own = vars(found)  # nothing public lets us have the socket before a TLS handshake is over
            connect: Callable[..., socket] = own["_create_connection"]

            def watched(*where: object, **how: object) -> socket:
                sock = connect(*where, **how)
                self._watch(sock)
                return sock

            own["_create_connection"] = watched
            return found

        return made

    def _watch(self, sock: socket) -> None:
        from threading import Timer

        copy = sock.dup()  # ours to shut down, whatever becomes of the other

        def end() -> None:
            self.is_over = True
            with suppress(OSError):
                copy.shutdown(SHUT_RDWR)

        timer = Timer(ANSWER_TIMEOUT, end)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)
        self._copies.append(copy)

    def end(self) -> None:
        """Watch no longer."""
        for timer in self._timers:
            timer.cancel()
        for copy in self._copies:
            copy.close()


def _why(error: HTTPError) -> str:
    if error.code < 500 and error.code not in _TRY_AGAIN:
        raise RuntimeError(f"it was refused with {error.code}") from None
    return f"it answered {error.code}"


def _opener(patience: _Patience) -> OpenerDirector:
    """Opens addresses and follows no redirection: signed news goes to nobody but whom the person named."""
    from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
    from urllib import request

    class Plain(request.HTTPHandler):
        def http_open(self, req: request.Request) -> HTTPResponse:
            return self.do_open(patience.connection(HTTPConnection), req)

    class Encrypted(request.HTTPSHandler):
        def https_open(self, req: request.Request) -> HTTPResponse:
            return self.do_open(patience.connection(HTTPSConnection), req)

    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        Plain(),
        Encrypted(),
        request.HTTPErrorProcessor(),
        request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _body(notice: Notice) -> bytes:
    return json.dumps(to_json(notice)).encode()
