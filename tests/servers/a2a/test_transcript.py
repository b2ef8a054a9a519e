from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskyard.jobs.job_dir import JobPaths
from taskyard.jobs.output import Output
from taskyard.jobs.remote.a2a import parts_text
from taskyard.servers.a2a.tasks import PAGE_BYTES, line_parts, read_last_page, read_page


def line(**fields: object) -> bytes:
    return json.dumps({"at": 1, **fields}).encode()


@pytest.fixture
def output(tmp_path: Path) -> Output:
    (tmp_path / "jobs" / "a00000001").mkdir(parents=True, mode=0o700)
    return Output(JobPaths(str(tmp_path), "a00000001"))


def write(output: Output, data: bytes) -> None:
    with open(output.folder.output, "ab") as file:
        file.write(data)


@pytest.mark.parametrize(
    ("given", "outline"),
    [
        (line(type="assistant", text="hello"), "hello\n"),
        (line(type="prompt", text="what a hook added"), ""),
        (line(type="tool_use", name="Edit", input={"secret": 1}), '{"name": "Edit", "type": "tool_use"}\n'),
        (line(type="tool_result", content="secret"), ""),
        (line(type="question", text="Which?"), '{"text": "Which?", "type": "question"}\n'),
        (b"half a li", ""),
        (b"[" * 100_000, ""),
        (b"3", ""),
    ],
)
def test_a_caller_sees_speech_questions_and_the_names_of_tools(given: bytes, outline: str) -> None:
    assert parts_text(line_parts(given, whole=False)) == outline


def test_a_message_of_several_blocks_is_its_speech_and_the_names_of_its_tools() -> None:
    blocks = [{"type": "text", "text": "Look:"}, {"type": "tool_use", "name": "Bash", "input": {"command": "secret"}}]
    given = line(type="assistant", message={"content": blocks})

    assert parts_text(line_parts(given, whole=False)) == 'Look:\n{"name": "Bash", "type": "tool_use"}\n'
    assert "secret" in parts_text(line_parts(given, whole=True))


def test_a_transcript_is_told_in_whole_lines_from_where_one_was(output: Output) -> None:
    first = line(type="assistant", text="one") + b"\n"
    write(output, first + b'{"type": "assis')

    said = read_page(output, 0, whole=False)
    assert (parts_text(said.parts), said.next, said.more) == ("one\n", len(first), False)
    write(output, b'tant", "text": "two"}\n')
    assert parts_text(read_page(output, said.next, whole=False).parts) == "two\n"


def test_a_long_transcript_comes_in_pages_and_without_an_offset_its_end_comes(output: Output) -> None:
    number = 0
    while output.end() < PAGE_BYTES * 2:
        write(output, b"".join(line(type="assistant", text=f"{number + at} {'x' * 200}") + b"\n" for at in range(500)))
        number += 500
    offset, words = 0, list[str]()
    while True:
        said = read_page(output, offset, whole=False)
        words += [each.split()[0] for each in parts_text(said.parts).splitlines()]
        offset = said.next
        if not said.more:
            break

    assert words == [str(each) for each in range(number)]
    assert parts_text(read_last_page(output, whole=False).parts).splitlines()[-1].split()[0] == str(number - 1)


def test_a_line_that_nobody_could_read_is_left_out_and_the_next_one_is_not(output: Output) -> None:
    write(
        output,
        line(type="assistant", text="x" * (PAGE_BYTES * 2)) + b"\n" + line(type="assistant", text="after") + b"\n",
    )
    offset, text = 0, ""
    for _ in range(5):
        said = read_page(output, offset, whole=False)
        offset, text = said.next, text + parts_text(said.parts)

    assert "omitted" in text
    assert text.endswith("after\n") and len(text) < 1000
