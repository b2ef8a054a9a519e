"""Requests that were sent together, told from those that follow an answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from taskyard.servers.mcp.input_lines import Arrivals, InputLines


class Pipe:
    """A client's end of a pipe, and the lines at the other end."""

    def __init__(self, first: bytes = b"") -> None:
        self.read, self.write = os.pipe()
        self.lines = InputLines(first, self.read)
        self.arrivals = Arrivals(self.lines)

    def send(self, data: bytes) -> None:
        os.write(self.write, data)

    def receive(self, request_id: int) -> None:
        self.lines.readline()
        self.arrivals.received(request_id)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.read)
    os.close(made.write)


@pytest.mark.req("N-07", "B-05")
def test_a_request_that_was_in_the_pipe_when_an_answer_was_sent_does_not_follow_it(pipe: Pipe) -> None:
    pipe.send(b"one\n")
    pipe.receive(1)
    pipe.send(b"two\nthree\n")  # the server has read neither
    pipe.arrivals.answering()
    pipe.receive(2)
    pipe.receive(3)
    assert not pipe.arrivals.follows_answers(2)

    pipe.arrivals.answering()
    pipe.send(b"four\n")
    pipe.receive(4)

    assert not pipe.arrivals.follows_answers(3)
    assert pipe.arrivals.follows_answers(4)


@pytest.mark.req("N-07")
def test_the_first_request_and_one_that_is_not_known_follow_every_answer(pipe: Pipe) -> None:
    pipe.send(b"one\n")
    pipe.receive(1)

    assert pipe.arrivals.follows_answers(1)
    assert pipe.arrivals.follows_answers("never received")


def test_lines_come_whole_and_in_order_while_somebody_counts_them(pipe: Pipe) -> None:
    sent = [f"{number}:{'x' * (number * 37 % 5_000)}\n" for number in range(400)]
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.extend(pipe.lines.readline() for _ in sent))
    counter = threading.Thread(target=lambda: [pipe.lines.arrived() for _ in range(2_000)])
    reader.start()
    counter.start()

    for line in sent:
        pipe.send(line[:3].encode())
        pipe.send(line[3:].encode())

    reader.join(20)
    counter.join(20)
    assert found == sent
    assert pipe.lines.arrived() == len(sent)


def test_what_was_read_before_comes_first_and_bytes_that_are_no_text_are_replaced() -> None:
    read, write = os.pipe()
    lines = InputLines(b"first\nsec", read)
    os.write(write, b"ond\n\xff\nlast")
    os.close(write)

    assert [lines.readline() for _ in range(5)] == ["first\n", "second\n", "�\n", "last", ""]
    os.close(read)
