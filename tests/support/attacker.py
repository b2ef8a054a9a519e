"""
Hostile connections to a server, as a program: `attacker.py PORT COUNT KIND=REQUEST…`, until it is killed.

COUNT connections of each KIND; one that the server closes is opened anew. REQUEST is a request's header, hex-encoded.

    silent      connects
    header      sends half of the request's header
    body        announces a body of 4 MB, sends all but its last byte
    pipelined   sends the request again and again, never reads
    slow        asks for the answer, reads a byte at a time
    stream      asks for the answer, reads all of it, keeps the connection

It says "ready" once every connection was opened and has sent what fits, and all streams were answered.
"""

import os
import socket
import sys
import time

BODY = 4_000_000

#: Seconds between two rounds over all connections.
_ROUND = 0.05


class Hostile:
    """One connection, opened anew as often as it is closed."""

    def __init__(self, port: int, kind: str, request: bytes) -> None:
        self._port = port
        self._kind = kind
        self._request = request
        self._socket: socket.socket | None = None
        self._left = b""
        self.is_set = kind != "stream"  #: a stream is once its answer has begun

    def go_on(self) -> None:
        """Send what fits, and read as this kind does."""
        try:
            if self._socket is None:
                self._open()
            assert self._socket is not None
            self._send()
            if self._kind in ("slow", "stream"):
                self._read(1 if self._kind == "slow" else 65536)
            elif self._kind in ("silent", "header", "body"):
                self._read(65536)  # sees that it was closed
        except OSError:
            self._close()

    def _open(self) -> None:
        self._socket = socket.socket()
        if self._kind in ("slow", "pipelined"):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.settimeout(5)
        self._socket.connect(("127.0.0.1", self._port))
        self._socket.setblocking(False)
        if self._kind == "header":
            self._left = self._request[: len(self._request) // 2]
        elif self._kind == "body":
            line, _, rest = self._request.partition(b"\r\n")
            head = line.replace(b"GET", b"POST") + b"\r\nContent-Length: %d\r\n" % BODY + rest
            self._left = head + b"x" * (BODY - 1)
        elif self._kind != "silent":
            self._left = self._request

    def _send(self) -> None:
        assert self._socket is not None
        if self._kind == "pipelined" and not self._left:
            self._left = self._request * 100
        while self._left:
            try:
                sent = self._socket.send(self._left[:1_000_000])
            except BlockingIOError:
                return
            self._left = self._left[sent:]

    def _read(self, size: int) -> None:
        assert self._socket is not None
        try:
            got = self._socket.recv(size)
            self.is_set = True
            if not got:
                self._close()
        except BlockingIOError:
            pass

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._left = None, b""


def main() -> None:
    os.nice(10)  # the attack is by connections, not for the processor
    port, count = int(sys.argv[1]), int(sys.argv[2])
    kinds = [word.partition("=")[::2] for word in sys.argv[3:]]
    hostile = [Hostile(port, kind, bytes.fromhex(request)) for _ in range(count) for kind, request in kinds]
    is_ready = False
    while True:
        for each in hostile:
            each.go_on()
        if not is_ready and all(each.is_set for each in hostile):
            print("ready", flush=True)
            is_ready = True
        time.sleep(_ROUND)


if __name__ == "__main__":
    main()
