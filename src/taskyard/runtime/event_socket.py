"""
The stream of events over a Unix socket, for programs that would rather connect than start one of ours.

    client   {"since": 1187, "job": "b3k9x0q2m", "types": ["task_notification"]}    a line; any field may be left out
    server   {"schema_version": 1, "data": {"id": 1204, …}}                         a line for each event, as they come
             {"schema_version": 1, "error": {"code": …, "message": …}}              and the end

An empty line asks for all that is kept. Whoever is cut off asks again with the last id it had. Nobody but the same
user is answered. A slow reader keeps nobody waiting: each has a thread that reads the stream's own files.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import threading

from taskyard.errors import AlreadyExists, BadValue, StorageError, TaskyardError
from taskyard.runtime.events import SUBTYPES, Events, to_json
from taskyard.shapes import as_list, as_object
from taskyard.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA_VERSION = 1

#: Readers at once; one who forgets to hang up must not use up our descriptors.
MOST = 64

#: A question is a line of this many bytes at most, and comes within this many seconds.
_LONGEST_LINE = 4096
_PATIENCE = 10.0

#: Where the path is longer than a socket's may be.
_LONGEST_PATH = 100


class Question(NamedTuple):
    """What a reader wants to hear."""

    since: int | None = None
    job: str | None = None
    types: tuple[str, ...] = ()


class EventSocket:
    """A socket that tells everyone who connects."""

    def __init__(self, home: str, path: str, *, debounce: float = 0.01) -> None:
        """Be reachable at `path`.

        Raises:
            AlreadyExists: somebody answers there, or it is something else.
            BadValue: no socket can be there.
        """
        self.path = path
        self._home = home
        self._debounce = debounce
        self._readers: dict[int, _Reader] = {}
        self._woken, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._listener = _listening(path)

    @property
    def wake_fd(self) -> int:
        """For `signal.set_wakeup_fd`: a signal that comes just before `serve` falls asleep is heard as well."""
        return self._wake

    def serve(self) -> None:
        """Answer until `close`."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self._woken:
                    return
                if fd == self._listener.fileno():
                    if (reader := self._accepted()) is not None:
                        self._readers[reader.fd] = reader
                        poll.register(reader.fd, 0)  # that it hung up is told without being asked for
                        reader.begin()
                else:
                    poll.unregister(fd)
                    self._readers.pop(fd).end()

    def close(self) -> None:
        """Hang up on everyone, from any thread or signal handler; `serve` returns."""
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

    def _accepted(self) -> _Reader | None:
        connection, _ = self._listener.accept()
        if len(self._readers) >= MOST or _user_of(connection) not in (os.geteuid(), 0):
            connection.close()
            return None
        return _Reader(connection, lambda question: self._events(question))

    def _events(self, question: Question) -> Events:
        return Events(self._home, question.since, follow=True, job=question.job, debounce=self._debounce)


class _Reader:
    """One who listens."""

    def __init__(self, connection: socket.socket, events: Callable[[Question], Events]) -> None:
        self._connection = connection
        self._open = events
        self._events: Events | None = None
        self._is_over = False
        self.fd = connection.fileno()
        self._thread = threading.Thread(target=self._tell, name=f"events-{self.fd}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """It hung up, or we do."""
        self._is_over = True
        if self._events is not None:
            self._events.close()
        try:
            self._connection.shutdown(socket.SHUT_RDWR)  # whoever waits for it to read wakes up
        except OSError:
            pass
        self._thread.join(_PATIENCE)
        self._connection.close()

    def _tell(self) -> None:
        try:
            self._answer()
        except OSError:
            pass  # it hung up
        finally:
            try:
                self._connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _answer(self) -> None:
        try:
            question = _asked(self._connection)
            self._events = events = self._open(question)
            if self._is_over:
                return  # it hung up before there was anything to close
            for event in events:
                if not question.types or event.subtype in question.types:
                    self._say({"data": to_json(event)})
        except TaskyardError as error:
            facts = {name: value for name, value in error.facts().items() if name not in ("code", "message")}
            self._say({"error": {"code": error.code, "message": str(error), **facts}})

    def _say(self, body: dict[str, object]) -> None:
        self._connection.sendall(json.dumps({"schema_version": SCHEMA_VERSION, **body}).encode() + b"\n")


def _asked(connection: socket.socket) -> Question:
    """The line that a reader sends first."""
    connection.settimeout(_PATIENCE)
    line = b""
    try:
        while not line.endswith(b"\n") and len(line) < _LONGEST_LINE and (more := connection.recv(1)):
            line += more
    except TimeoutError:
        raise BadValue("The question", "", "a line of JSON, or an empty one", found="did not come") from None
    connection.settimeout(None)
    return question_in(line)


def question_in(line: bytes) -> Question:
    """What a line asks for.

    Raises:
        BadValue: nothing that can be answered.
    """
    if not line.strip():
        return Question()
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
    return Question(since, job, tuple(str(name) for name in types))


def _listening(path: str) -> socket.socket:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise BadValue("The socket's path", path, f"a path of at most {_LONGEST_PATH} bytes")
    _make_way(path)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        made.bind(path)
        made.listen(MOST)
    except OSError as error:
        made.close()
        raise StorageError(path, error.strerror or "no socket can be made there") from error
    finally:
        os.umask(before)
    return made


def _make_way(path: str) -> None:
    """Remove the socket of a server that died; nothing else is ever removed."""
    import stat

    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise AlreadyExists("something", path, hint="It is no socket: choose another path.")
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


def _user_of(connection: socket.socket) -> int:
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1])
