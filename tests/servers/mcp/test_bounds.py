"""No answer is larger than a model can read, whatever others wrote."""

from __future__ import annotations

import json

import pytest

import taskyard
from support.mcp_server import Model, Said, talk


def size(said: Said) -> int:
    return max(sum(map(len, said.texts)), len(json.dumps(said.data)))


@pytest.mark.req("T-05", "M-02")
def test_long_mail_comes_a_piece_at_a_time() -> None:
    with taskyard.open(list="demo", agent="bob") as bob:
        bob.mail.open_box("ada")
        for number in range(6):
            bob.mail.send("bob", "ada", f"{number}" * 15_000)
        bob.mail.send("bob", "ada", "x" * 150_000)

        async def body(model: Model) -> None:
            seen: list[str] = []
            for _ in range(7):
                said = await model.call("ReadMail")
                assert size(said) < 40_000
                seen += [message["text"][:1] for message in said.data["messages"]]
                if not said.data["left"]:
                    break
            assert seen == ["0", "1", "2", "3", "4", "5", "x"]
            assert "118,000 more characters were left out" in said.text

        talk(body, agent="ada")


@pytest.mark.req("T-01", "T-05")
def test_a_task_of_any_length_is_cut_where_it_is_read_and_where_it_was_written() -> None:
    async def body(model: Model) -> None:
        long, meta = "y" * 150_000, {"log": "z" * 20_000, "n": 1}
        assert size(await model.call("TaskCreate", subject="A", description=long, metadata=meta)) < 5_000
        assert size(await model.call("TaskUpdate", taskId="1", status="in_progress")) < 5_000
        got = await model.call("TaskGet", taskId="1")
        assert size(got) < 40_000
        assert "118,000 more characters were left out" in got.text
        assert got.data["task"]["metadata"]["keys"] == ["log", "n"]

    talk(body)
    with taskyard.open(list="demo") as yard:
        assert len(yard.tasks.get("1").description) == 150_000  # it is only shown so
