"""A gate on the way to a database: shut, nobody gets through, and whoever was through is cut off; as if it had gone."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from taskyard.config import parse_database_url


class Gate:
    """A socket that leads to the one of a server, while it is open."""

    def __init__(self, address: str) -> None:
        parts = parse_database_url(address)
        self._server = f"{parts['host']}/.s.PGSQL.{parts['port']}"
        self._folder = Path(tempfile.mkdtemp(prefix="gate-", dir="/tmp"))
        self._path = self._folder / ".s.PGSQL.5432"
        self._through: list[socket.socket] = []
        self._lock = threading.Lock()
        self._door: socket.socket | None = None
        self.address = f"postgresql://{parts['user']}@/{parts['dbname']}?host={self._folder}&port=5432"
        self.open()

    def open(self) -> None:
        """Let everybody through."""
        door = self._door = socket.socket(socket.AF_UNIX)
        door.bind(str(self._path))
        door.listen(64)
        threading.Thread(target=self._attend, args=(door,), daemon=True).start()

    def shut(self) -> None:
        """Cut everybody off."""
        assert self._door is not None
        with self._lock:
            os.unlink(self._path)
            _end(self._door)
            self._door = None
            for one in self._through:
                _end(one)
            self._through.clear()

    def close(self) -> None:
        if self._door is not None:
            self.shut()
        os.rmdir(self._folder)

    def _attend(self, door: socket.socket) -> None:
        while True:
            try:
                client, _ = door.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            with self._lock:
                if self._door is not door:  # shut meanwhile
                    _end(client)
                    _end(server)
                    return
                self._through += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65_536):
            other.sendall(data)
    _end(one)
    _end(other)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextlib.contextmanager
def gate(address: str) -> Iterator[Gate]:
    """A gate to a database, for as long as the block."""
    from taskyard.postgres import connection, heartbeat

    made = Gate(address)
    try:
        yield made
    finally:
        heartbeat.stop_heartbeat(made.address)
        connection.close_database(made.address)
        made.close()
