"""How kinds of jobs are named and counted: ids without a letter, shells that watch, outputs without a link."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import taskyard as api
from support.cli import taskyard
from support.job_cli import ended, job, started
from support.job_outputs import made_by_hand
from support.terminal import screen_of
from taskyard import config
from taskyard.errors import BadValue
from taskyard.jobs.kind import LaunchSpec


class Nameless:
    """A kind of somebody else's that names no letter."""

    @property
    def type(self) -> str:
        return "nameless"

    def wanted(self) -> LaunchSpec:
        return LaunchSpec("says hello", ["echo", "hello"])


class Capital(Nameless):
    letter = "X"


@pytest.mark.req("B-01", "B-02")
def test_ids_of_a_kind_without_a_letter_begin_with_x() -> None:
    with api.open() as yard:
        job_id = yard.jobs.start(Nameless()).id

    assert job_id.startswith("x") and ended(job_id)["type"] == "nameless"


@pytest.mark.req("B-01")
def test_a_letter_that_is_none_is_refused() -> None:
    with api.open() as yard, pytest.raises(BadValue, match="letter of nameless"):
        yard.jobs.start(Capital())


@pytest.mark.req("K-01")
def test_a_command_that_only_watches_is_counted_as_a_monitor() -> None:
    watch = started("--monitor", "--", "sleep", "60")
    started("--", "sleep", "60")

    assert b"1 shell, 1 monitor" in screen_of("ps")
    assert job(watch)["facts"]["kind"] == "monitor"


@pytest.mark.req("O-03")
def test_the_transcript_is_read_where_no_link_to_it_could_be_made() -> None:
    folder = made_by_hand(config.home(), kind="local_agent", letter="a")
    record = json.loads(Path(folder.record).read_bytes())
    Path(folder.record).write_text(json.dumps({**record, "isUnlinked": True}), encoding="utf-8")
    Path(folder.transcript).write_text('{"type": "text"}\n', encoding="utf-8")
    os.close(os.open(folder.output, os.O_CREAT | os.O_WRONLY, 0o600))

    assert taskyard("logs", folder.id, "--json").data["text"] == '{"type": "text"}\n'
