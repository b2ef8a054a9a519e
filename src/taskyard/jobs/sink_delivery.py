"""
Deliver one notice to every sink, in the helper process that `sinks.start_sinks` started for it.

Fast sinks come first, so that none waits for a webhook that does not answer. Failures are logged in
`<home>/sinks.log` and do not affect other sinks. Notices for the webhook are queued in `<home>/sinks/`: a
few processes at most send them, each notice within a bounded time, however slowly a receiver answers.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from socket import SHUT_RDWR, socket

from taskyard import config
from taskyard.core import files
from taskyard.core.subprocesses import run_command
from taskyard.core.text import escape_control
from taskyard.core.values import as_object
from taskyard.errors import NotFound
from taskyard.jobs.helper_process import append_log
from taskyard.jobs.notice import from_payload, to_json
from taskyard.jobs.sinks import SINKS_LOG, load_sinks
from taskyard.storage.locks import RangeLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from http.client import HTTPConnection
    from threading import Timer
    from urllib.error import HTTPError
    from urllib.request import OpenerDirector

    from taskyard.jobs.notice import Notice
    from taskyard.jobs.sinks import Sinks

#: Seconds for one answer of a webhook, from the connection to its last header, or for notify-send.
ANSWER_TIMEOUT = 10.0

#: Seconds after queueing for which delivery to a webhook is retried; then it is given up.
DELIVERY_TIMEOUT = 120.0

#: Processes that send to webhooks at once; further notices wait in the queue.
MAX_SENDERS = 4

#: Backoff in seconds between attempts: covers a restart of the receiver, gives up on an unreachable one
#: after a minute.
BACK_OFF = (1.0, 2.0, 4.0, 8.0, 16.0)

#: Seconds for the user's own command.
COMMAND_TIMEOUT = 60.0

#: Suffix of the names of queued webhook notices.
_QUEUE_SUFFIX = ".webhook"

#: HTTP statuses that ask for a retry; all others from 400 to 499 are permanent refusals.
_RETRYABLE = frozenset({408, 425, 429})


def deliver(path: str) -> list[str]:
    """Deliver the notice in a file of `start_sinks` and remove the file; return the errors.

    Raises:
        NotFound: there is no notice in it.
    """
    home = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    data = files.read(path)
    if data is None:
        raise NotFound(f"No notice in {path}.")
    os.unlink(path)  # at most once: after a crash the notice is still in its outbox
    try:
        body = as_object(json.loads(data)) or {}
    except ValueError:
        body = {}
    notice = from_payload(as_object(body.get("news")) or {})
    if notice is None:
        raise NotFound(f"No notice in {path}.")
    failed: list[str] = []
    for name, act in _local_sinks(load_sinks(), notice, str(body.get("terminal") or "")):
        try:
            act()
        except Exception as error:  # the top of an edge: whatever a sink raises, the next one is run
            failed.append(f"{name}: {error}")
            append_log(home, SINKS_LOG, f"{notice.id} {name}: {error}")
    if load_sinks().webhook:
        files.create(f"{home}/sinks/{notice.id}{_QUEUE_SUFFIX}", json.dumps(body.get("news")).encode())
        failed += send_queued(home)
    return failed


def send_queued(home: str) -> list[str]:
    """Send the queued webhook notices, if fewer than `MAX_SENDERS` processes do; return the errors.

    If all places are taken, return: their holders check the queue again after releasing them.
    """
    failed: list[str] = []
    with RangeLock(f"{home}/sinks.lock") as place:
        while _list_queue(home) and any(place.try_take(number) for number in range(MAX_SENDERS)):
            try:
                for name in _list_queue(home):
                    if why := _send_one(home, name):
                        failed.append(f"webhook: {why}")
            finally:
                place.release()
    return failed


def _list_queue(home: str) -> list[str]:
    return sorted(name for name in os.listdir(f"{home}/sinks") if name.endswith(_QUEUE_SUFFIX))


def _send_one(home: str, name: str) -> str:
    """Send one notice from the queue; return the error, "" if there is none or another process took it."""
    path = f"{home}/sinks/{name}"
    try:
        data, queued = files.read(path), os.lstat(path).st_mtime
        os.unlink(path)  # at most once
        notice = from_payload(as_object(json.loads(data or b"{}")) or {})
    except (FileNotFoundError, ValueError):
        return ""
    sinks = load_sinks()
    if notice is None or not sinks.webhook:
        return ""
    left = DELIVERY_TIMEOUT - min(max(time.time() - queued, 0.0), DELIVERY_TIMEOUT)
    try:
        post_webhook(sinks.webhook, sinks.webhook_secret, notice, timeout=left)
    except Exception as error:  # the top of an edge: the next one is sent
        append_log(home, SINKS_LOG, f"{notice.id} webhook: {error}")
        return str(error)
    return ""


def _local_sinks(sinks: Sinks, notice: Notice, terminal: str) -> Iterator[tuple[str, Callable[[], None]]]:
    if sinks.bell:
        yield "bell", lambda: write_terminal(terminal, b"\a")
    if sinks.desktop:
        yield "desktop", lambda: show_on_desktop(notice, terminal)
    if sinks.command:
        yield "command", lambda: run_sink_command(sinks.command, notice)


def show_on_desktop(notice: Notice, terminal: str) -> None:
    """Show it with notify-send or, without that, through the terminal (OSC 9)."""
    import shutil

    text = escape_control(notice.summary)
    program = shutil.which("notify-send")
    if program is None:
        write_terminal(terminal, b"\x1b]9;" + text.encode("utf-8", "replace") + b"\a")
        return
    import subprocess

    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")  # some desktops parse markup
    subprocess.run(
        [program, "--app-name=Taskyard", "--", "Taskyard", escaped],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=ANSWER_TIMEOUT,
        check=True,
    )


def write_terminal(terminal: str, data: bytes) -> None:
    """Write to a terminal, and to nothing else.

    Raises:
        NotFound: there is no such terminal.
    """
    if not terminal:
        raise NotFound("No terminal is known.")
    # Not as controlling terminal, and never blocking: it may be stopped by Ctrl+S.
    fd = os.open(terminal, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not os.isatty(fd):
            raise NotFound(f"{terminal} is not a terminal.")
        os.write(fd, data)
    finally:
        os.close(fd)


def run_sink_command(command: str, notice: Notice) -> None:
    """Run the user's own command with the notice as JSON on its stdin."""
    end = run_command(
        command,
        cwd=config.user_home(),
        timeout=COMMAND_TIMEOUT,
        env={**os.environ, "TASKYARD_NOTICE": notice.id},
        stdin=_body(notice),
        merge_stderr=True,
        kill_leftovers=True,
    )
    if end.cause != "exited" or end.exit_code:
        code = "" if end.exit_code is None else f" with {end.exit_code}"
        raise RuntimeError(
            f"it {end.cause}{code}: {end.why or escape_control(end.stdout[-500:].decode('utf-8', 'replace'))}"
        )


def post_webhook(
    url: str,
    secret: str,
    notice: Notice,
    *,
    sleep: Callable[[float], None] = time.sleep,
    timeout: float = DELIVERY_TIMEOUT,
) -> None:
    """Send it to a webhook, with retries, for at most `timeout` seconds and one more answer.

    Each attempt has the notice's id as `Idempotency-Key`, so that a receiver can detect a repeat, and
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
    """Return the signature, which a receiver computes itself and compares."""
    import hmac

    return "sha256=" + hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def _try_post(url: str, secret: str, notice: Notice) -> str | None:
    """Send it once; return None if it was accepted, else why a retry may help."""
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
    patience, late = _AnswerDeadline(), f"no answer within {ANSWER_TIMEOUT:g} s"
    try:
        request = Request(url, data, headers, method="POST")  # noqa: S310  # load_sinks lets only http(s) through
        with _opener(patience).open(request, timeout=ANSWER_TIMEOUT):
            return late if patience.is_over else None  # truncated headers parse as if complete
    except HTTPError as error:
        error.close()
        return _retry_reason(error)
    except (OSError, HTTPException) as error:  # no connection, no answer in time
        return late if patience.is_over else str(error)
    finally:
        patience.end()


class _AnswerDeadline:
    """Closes a connection `ANSWER_TIMEOUT` seconds after its start, whatever it transfers meanwhile."""

    def __init__(self) -> None:
        self.is_over = False
        self._timers: list[Timer] = []
        self._copies: list[socket] = []

    def connection(self, kind: Callable[..., HTTPConnection]) -> Callable[..., HTTPConnection]:
        """Return a factory of connections of this kind with a deadline from the first byte, TLS handshake included."""

        def made(*args: object, **options: object) -> HTTPConnection:
            found = kind(*args, **options)
            own = vars(found)  # no public way to get the socket before the TLS handshake ends
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

        copy = sock.dup()  # ours to shut down, whatever happens to the original

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
        """Cancel the deadline."""
        for timer in self._timers:
            timer.cancel()
        for copy in self._copies:
            copy.close()


def _retry_reason(error: HTTPError) -> str:
    if error.code < 500 and error.code not in _RETRYABLE:
        raise RuntimeError(f"it was refused with {error.code}") from None
    return f"it answered {error.code}"


def _opener(patience: _AnswerDeadline) -> OpenerDirector:
    """Return an opener that follows no redirect: a signed notice goes only to the address the user configured."""
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
