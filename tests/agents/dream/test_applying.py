"""A result put in place whole or not at all, whatever dies."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.killing import calls_of, killed_before
from support.racing import Racer, race
from taskyard.agents.dream import staging
from taskyard.agents.dream.staging import DreamDir
from taskyard.core import files
from taskyard.errors import Conflict, DreamHeld, NotFound

#: When the last dream was, in nanoseconds.
PRIOR = 1_700_000_000_123_456_789


@pytest.fixture(params=["swap", "two renames"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How folders change places: as the kernel offers it, or where it cannot."""
    if request.param != "swap":
        monkeypatch.setattr(files, "_renameat2", lambda *_: errno.EINVAL)
    return str(request.param)


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def texts(folder: str | Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in Path(folder).iterdir()}


OLD, NEW = {"a": "old", "b": "old"}, {"a": "new", "c": "new"}


def scene(tmp_path: Path) -> DreamDir:
    """A memory that was dreamt of once."""
    shutil.rmtree(tmp_path / "place", ignore_errors=True)
    side = DreamDir(str(tmp_path / "place" / "memory"))
    write(Path(side.memory), **OLD)
    side.make()
    os.utime(side.lock, ns=(PRIOR, PRIOR))
    return side


def dreamt(side: DreamDir) -> tuple[dict[str, object], str]:
    """A dream that is done with its copy, and is about to put it in place."""
    claim = staging.claim(side, "d12345678", time.time_ns())
    os.mkdir(side.work)
    base = staging.fingerprint(staging.copy(side.memory, side.stage))
    shutil.rmtree(side.stage)
    write(Path(side.stage), **NEW)
    return claim, base


def apply(side: DreamDir) -> None:
    claim, base = dreamt(side)
    staging.swap_in(side, claim, base, job="d12345678")
    staging.end_claim(side)


@pytest.mark.req("K-07")
def test_folders_change_places_and_the_old_one_is_kept(tmp_path: Path, kernel: str) -> None:
    side = scene(tmp_path)
    os.chmod(side.memory, 0o750)
    apply(side)
    assert texts(side.memory) == NEW
    assert os.stat(side.memory).st_mode & 0o777 == 0o750
    (copy,) = staging.copies(side)
    assert (texts(copy.path), copy.job) == (OLD, "d12345678")
    assert staging.last_done(side) > PRIOR


@pytest.mark.req("K-07", "L-11")
def test_a_death_at_any_step_leaves_the_old_or_the_new_whole_and_nothing_is_lost(tmp_path: Path, kernel: str) -> None:
    def prepare() -> Callable[[], object]:
        side = scene(tmp_path)
        held = staging.acquire(side)
        claim, base = dreamt(side)

        def act() -> None:
            staging.swap_in(side, claim, base, job="d12345678")
            staging.end_claim(side)
            held.close()

        return act

    outcomes = set[bool]()
    for number in range(len(calls_of(prepare))):
        assert killed_before(number, prepare)
        side = DreamDir(str(tmp_path / "place" / "memory"))
        if kernel == "swap":  # at no moment is there half of anything
            assert texts(side.memory) in (OLD, NEW)

        staging.recover_if_idle(side)

        is_new = texts(side.memory) == NEW
        outcomes.add(is_new)
        assert is_new or texts(side.memory) == OLD
        assert (staging.last_done(side) != PRIOR) is is_new, f"killed before call {number}"
        assert not os.path.lexists(side.claim)
        assert not os.path.lexists(side.work)
        assert [texts(copy.path) for copy in staging.copies(side)] == ([OLD] if is_new else [])
    assert outcomes == {True, False}


@pytest.mark.req("K-07")
@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_folder_that_somebody_else_changed_meanwhile_is_left_as_it_is(
    tmp_path: Path, kernel: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = scene(tmp_path)
    claim, base = dreamt(side)
    if moment == "before":
        write(Path(side.memory), a="theirs")
        monkeypatch.setattr(files, "try_swap", None)  # not even for a moment is there another in its place
    else:
        original = staging.write_claim

        def written_meanwhile(*args: object) -> None:
            original(*args)  # type: ignore[arg-type]
            write(Path(side.memory), a="theirs")

        monkeypatch.setattr(staging, "write_claim", written_meanwhile)

    with pytest.raises(Conflict, match="changed by another process") as refusal:
        staging.swap_in(side, claim, base, job="d12345678")
    staging.recover(side)

    assert texts(side.memory) == {"a": "theirs", "b": "old"}
    (kept,) = os.listdir(side.kept)
    assert texts(f"{side.kept}/{kept}") == NEW
    assert f"{side.kept}/{kept}" in str(refusal.value)
    assert staging.last_done(side) == PRIOR
    assert staging.copies(side) == []


@pytest.mark.req("K-07", "L-11")
def test_a_death_while_a_change_of_somebody_else_is_put_back_loses_neither(tmp_path: Path, kernel: str) -> None:
    def prepare() -> Callable[[], object]:
        side = scene(tmp_path)
        held = staging.acquire(side)
        claim, base = dreamt(side)
        original = staging.write_claim

        def written_meanwhile(*args: object) -> None:
            original(*args)  # type: ignore[arg-type]
            write(Path(side.memory), a="theirs")

        def act() -> None:
            staging.write_claim = written_meanwhile  # type: ignore[assignment]  # in a child, which ends soon
            try:
                staging.swap_in(side, claim, base, job="d12345678")
            except Conflict:
                held.close()

        return act

    theirs = {"a": "theirs", "b": "old"}
    calls = calls_of(prepare)
    for number in range(len(calls)):
        assert killed_before(number, prepare)
        side = DreamDir(str(tmp_path / "place" / "memory"))
        staging.recover_if_idle(side)
        assert texts(side.memory) in (OLD, theirs)
        kept = [texts(f"{side.kept}/{name}") for name in os.listdir(side.kept)]
        assert kept == ([NEW] if texts(side.memory) == theirs else kept[:1])
        assert staging.last_done(side) == PRIOR
        assert staging.copies(side) == []


@pytest.mark.req("K-07")
def test_an_earlier_state_is_put_back_and_that_too_can_be_undone(tmp_path: Path, kernel: str) -> None:
    side = scene(tmp_path)
    (Path(side.memory) / "link").symlink_to("/nowhere")
    with pytest.raises(NotFound):
        staging.undo(side)
    claim, base = staging.claim(side, "d12345678", time.time_ns()), staging.fingerprint(staging.read_tree(side.memory))
    os.mkdir(side.work)
    write(Path(side.stage), **NEW)
    staging.swap_in(side, claim, base, job="d12345678")
    staging.end_claim(side)
    done = staging.last_done(side)

    staging.undo(side)
    assert os.readlink(f"{side.memory}/link") == "/nowhere"
    os.unlink(f"{side.memory}/link")
    assert texts(side.memory) == OLD
    assert staging.last_done(side) == done
    staging.undo(side)
    assert texts(side.memory) == NEW
    with staging.acquire(side), pytest.raises(DreamHeld):
        staging.undo(side)
    staging.undo(side, staging.copies(side)[-1].name)
    assert "a" in os.listdir(side.memory)
    with pytest.raises(NotFound, match="nope"):
        staging.undo(side, "nope")


def test_where_a_power_cut_must_be_survived_all_is_on_disk_before_folders_change_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = scene(tmp_path)
    claim, base = dreamt(side)
    seen: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: seen.append("sync " + texts(side.memory)["a"]))
    monkeypatch.setattr(staging, "sync_folder", lambda _: seen.append("folder " + texts(side.memory)["a"]))
    staging.swap_in(side, claim, base, job="d12345678", sync=True)
    assert seen == ["sync old", "folder new", "folder new"]


@pytest.mark.req("K-07")
def test_so_many_earlier_states_are_kept_and_no_more(tmp_path: Path) -> None:
    side = scene(tmp_path)
    for _ in range(5):
        apply(side)
        staging.recover(side)
        staging.prune(side, 3)
    assert len(staging.copies(side)) == 3
    staging.prune(side, 0)
    assert len(staging.copies(side)) == 1


@pytest.mark.req("K-07")
def test_two_at_once_are_impossible_however_many_race(tmp_path: Path) -> None:
    memory = str(tmp_path / "place" / "memory")

    def work(racer: Racer) -> None:
        racer.start()
        for _ in range(5):
            side = DreamDir(memory)
            side.make()
            try:
                held = staging.acquire(side)
            except DreamHeld:
                continue
            alone = os.open(f"{tmp_path}/alone", os.O_CREAT | os.O_EXCL)  # fails if another is here
            staging.recover(side)
            apply(side)
            os.close(alone)
            os.unlink(f"{tmp_path}/alone")
            held.close()
            racer.do("dream", (racer.name,), lambda: "ok")

    history = race(6, work, tmp_path)

    assert len(history) >= 1
    assert texts(memory) == NEW


@pytest.mark.req("K-07", "O-02")
def test_what_somebody_planted_beside_the_folder_is_refused(tmp_path: Path) -> None:
    side = DreamDir(str(tmp_path / "place" / "memory"))
    write(Path(side.memory), **OLD)
    (tmp_path / "trap").mkdir()
    os.symlink(tmp_path / "trap", side.path)
    with pytest.raises(Exception, match="symbolic link"):
        side.make()
    assert os.listdir(tmp_path / "trap") == []
