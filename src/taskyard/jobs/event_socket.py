"""
Serve the event log over a Unix socket, for programs that connect instead of starting a command.

    client   {"since": 1187, "job": "b3k9x0q2m", "types": ["task_notification"]}    one line; fields optional
    server   {"schema_version": 1, "data": {"id": 1204, …}}                         one line per event
             {"schema_version": 1, "error": {"code": …, "message": …}}              and the connection ends

An empty line requests all events that are kept. After a disconnect, a client continues with the last id it
received. Only the same user (or root) is answered. A slow client delays no other: each has a thread that
reads the log's files.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading

from taskyard.core.values import NamedTuple, as_list, as_object
from taskyard.errors import AlreadyExists, BadValue, StorageError, TaskyardError
from taskyard.jobs.events import SUBTYPES, Events, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA_VERSION = 1

#: Most clients at once; ones that never disconnect must not use up our descriptors.
MAX_CLIENTS = 64

#: Most bytes of a query line, and seconds in which it must arrive.
_MAX_LINE = 4096
_QUERY_TIMEOUT = 10.0

#: Most bytes of a socket's path.
_MAX_PATH = 100


class EventQuery(NamedTuple):
    """Which events a client requests."""

    since: int | None = None
    job: str | None = None
    types: tuple[str, ...] = ()


class EventSocket:
    """A socket that sends events to every client."""

    def __init__(self, home: str, path: str, *, debounce: float = 0.01) -> None:
        """Listen at `path`.

        Raises:
            AlreadyExists: another server answers there, or it is no socket.
            BadValue: no socket can be there.
        """
        self.path = path
        self._home = home
        self._debounce = debounce
        self._readers: dict[int, _Client] = {}
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._listener = _listen(path)

    @property
    def wake_fd(self) -> int:
        """For `signal.set_wakeup_fd`: a signal that arrives just before `serve` sleeps wakes it as well."""
        return self._wake

    def serve(self) -> None:
        """Serve clients until `close`."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._woken:
                    return
                if fd == self._listener.fileno():
                    if (reader := self._accept()) is not None:
                        self._readers[reader.fd] = reader
                        poll.register(reader.fd, 0)  # a disconnect is always reported
                        reader.begin()
                else:
                    poll.unregister(fd)
                    self._readers.pop(fd).end()

    def close(self) -> None:
        """Disconnect all clients, from any thread or signal handler; `serve` returns."""
        os.write(self._wake, b"\0")

    def __enter__(self) -> EventSocket:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers.values():
            reader.end()
        self._listener.close()
        for fd in (self._woken, self._wake):
            os.close(fd)
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def _accept(self) -> _Client | None:
        connection, _ = self._listener.accept()
        if len(self._readers) >= MAX_CLIENTS or _peer_uid(connection) not in (os.geteuid(), 0):
            connection.close()
            return None
        return _Client(connection, lambda question: self._events(question))

    def _events(self, question: EventQuery) -> Events:
        return Events(self._home, question.since, follow=True, job=question.job, debounce=self._debounce)


class _Client:
    """One connected client."""

    def __init__(self, connection: socket.socket, events: Callable[[EventQuery], Events]) -> None:
        self._connection = connection
        self._open = events
        self._events: Events | None = None
        self._is_over = False
        self.fd = connection.fileno()
        self._thread = threading.Thread(target=self._tell, name=f"events-{self.fd}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Close the connection, after either side disconnected."""
        self._is_over = True
        if self._events is not None:
            self._events.close()
        try:
            self._connection.shutdown(socket.SHUT_RDWR)  # wakes a thread blocked in sending
        except OSError:
            pass
        self._thread.join(_QUERY_TIMEOUT)
        self._connection.close()

    def _tell(self) -> None:
        try:
            self._answer()
        except OSError:
            pass  # it disconnected
        finally:
            try:
                self._connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _answer(self) -> None:
        try:
            question = _read_query(self._connection)
            self._events = events = self._open(question)
            if self._is_over:
                return  # it disconnected before there was anything to close
            for event in events:
                if not question.types or event.subtype in question.types:
                    self._say({"data": to_json(event)})
        except TaskyardError as error:
            facts = {name: value for name, value in error.facts().items() if name not in ("code", "message")}
            self._say({"error": {"code": error.code, "message": str(error), **facts}})

    def _say(self, body: dict[str, object]) -> None:
        self._connection.sendall(json.dumps({"schema_version": SCHEMA_VERSION, **body}).encode() + b"\n")


def _read_query(connection: socket.socket) -> EventQuery:
    """Read the query line that a client sends first."""
    connection.settimeout(_QUERY_TIMEOUT)
    line = b""
    try:
        while not line.endswith(b"\n") and len(line) < _MAX_LINE and (more := connection.recv(1)):
            line += more
    except TimeoutError:
        raise BadValue("The question", "", "a line of JSON, or an empty one", found="did not come") from None
    connection.settimeout(None)
    return parse_query(line)


def parse_query(line: bytes) -> EventQuery:
    """Parse a query line.

    Raises:
        BadValue: it is no valid query.
    """
    if not line.strip():
        return EventQuery()
    try:
        found = as_object(json.loads(line))
    except (ValueError, RecursionError):
        found = None
    if found is None or not found.keys() <= {"since", "job", "types"}:
        raise BadValue("The question", line.decode("utf-8", "replace"), 'one line such as {"since": 0}')
    since, job, types = found.get("since"), found.get("job"), as_list(found.get("types", []))
    if since is not None and type(since) is not int:
        raise BadValue("since", since, "the id of an event, or 0")
    if job is not None and not isinstance(job, str):
        raise BadValue("job", job, "the id of a job")
    if types is None or not all(name in SUBTYPES for name in types):
        raise BadValue("types", found.get("types"), f"some of {', '.join(SUBTYPES)}")
    return EventQuery(since, job, tuple(str(name) for name in types))


def _listen(path: str) -> socket.socket:
    if len(os.fsencode(path)) > _MAX_PATH:
        raise BadValue("The socket's path", path, f"a path of at most {_MAX_PATH} bytes")
    _remove_stale(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        made.bind(path)
        made.listen(MAX_CLIENTS)
    except OSError as error:
        made.close()
        raise StorageError(path, error.strerror or "no socket can be made there") from error
    finally:
        os.umask(before)
    return made


def _remove_stale(path: str) -> None:
    """Remove the socket of a server that was killed; nothing else is ever removed."""
    import stat

    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise AlreadyExists("something", path, hint="It is not a socket: choose another path.")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:
            raise StorageError(path, error.strerror or "it cannot be reached") from error
    raise AlreadyExists("a server", path, hint="Connect to that one.")


def _peer_uid(connection: socket.socket) -> int:
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])
