"""The fake place is a place: it keeps every promise that a real one must keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.fake_places import FakePlace
from taskyard.errors import BadValue
from taskyard.jobs.remote.backend import Work
from taskyard.jobs.remote.remotes import Remote
from taskyard.testing import check_remote_backend
from taskyard.testing.fake_remote import FakeBackend


@pytest.fixture
def place(tmp_path: Path) -> Iterator[FakePlace]:
    found = FakePlace(tmp_path / "place", token="secret")
    yield found
    found.kill()


def _slowly(work: Work) -> Work:
    """Its lines, a few at a time; the last without its end."""
    lines = work.prompt.splitlines()
    said = [each for line in lines[:-1] for each in (line, "/wait 0.01")]
    return work._replace(prompt="\n".join([*said, f"/raw {lines[-1]}"]))


@pytest.mark.req("K-03", "X-02")
def test_a_fake_place_keeps_the_promises_of_a_place(place: FakePlace, tmp_path: Path) -> None:
    check_remote_backend(
        lambda: place.backend("secret"),
        talkative=_slowly,
        failing=lambda work: work._replace(prompt="/fail no fuel"),
        endless=lambda work: work._replace(prompt="/forever"),
        asking=lambda work: work._replace(prompt="/ask Which one?"),
        away=lambda: FakeBackend(Remote("gone", "fake", url=f"file://{tmp_path}/gone")),
        stranger=lambda: place.backend("wrong"),
    )


@pytest.mark.req("K-03", "X-02")
def test_a_place_that_runs_programs_and_takes_nothing_keeps_them_too(place: FakePlace) -> None:
    check_remote_backend(
        lambda: place.backend("secret"),
        talkative=lambda work: work._replace(command='printf %s "$TASKYARD_PROMPT"'),
        failing=lambda work: work._replace(command="exit 3"),
        endless=lambda work: work._replace(command="sleep 300"),
    )


def test_a_url_that_is_no_folder_is_refused() -> None:
    with pytest.raises(BadValue, match=r"remotes\.x\.url"):
        FakeBackend(Remote("x", "fake", url="http://127.0.0.1"))
