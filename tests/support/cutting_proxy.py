"""A way to a PostgreSQL server that loses answers: the request gets there, is carried out, and nobody hears of it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path


class Proxy:
    """Listens on a port of the loopback, and passes on to a server's socket."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._lose = b""
        self.lost = 0  #: answers that were lost
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_answer(self, to: bytes) -> None:
        """Lose the answer to the next request that holds these bytes, and the connection with it."""
        self._lose = to

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._target)
        is_lost = False
        with client, server, contextlib.suppress(OSError):  # either end may close at any moment
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is client:
                        if self._lose and self._lose in data:
                            self._lose, is_lost = b"", True
                        server.sendall(data)
                    elif is_lost:
                        self.lost += 1
                        return
                    else:
                        client.sendall(data)


@contextlib.contextmanager
def proxy(folder: Path, port: int = 5432) -> Iterator[Proxy]:
    """A way to the server whose socket is in `folder`."""
    made = Proxy(f"{folder}/.s.PGSQL.{port}")
    try:
        yield made
    finally:
        made.close()
