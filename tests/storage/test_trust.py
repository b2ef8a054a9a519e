"""What a person allowed, to the letter, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskyard.errors import BadText, Damaged, StorageError
from taskyard.storage import trust

Env = dict[str, str]


@pytest.fixture
def env(tmp_path: Path) -> Env:
    return {"TASKYARD_HOME": str(tmp_path / "home")}


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "project").mkdir()
    return str(tmp_path / "project")


@pytest.mark.req("H-02")
def test_a_project_is_trusted_for_exactly_the_commands_that_were_allowed(env: Env, root: str) -> None:
    assert not trust.is_project_trusted(root, ["make check"], env=env)
    trust.trust_project(root, ["make check", "make lint"], env=env)
    assert trust.is_project_trusted(root, ["make lint", "make check", "make lint"], env=env)
    for changed in (["make check"], ["make check", "make lint", "true"], ["make check ", "make lint"], []):
        assert not trust.is_project_trusted(root, changed, env=env)


@pytest.mark.req("H-02")
def test_trusting_again_replaces_what_was_allowed_before(env: Env, root: str) -> None:
    trust.trust_project(root, ["old"], env=env)
    trust.trust_project(root, ["new"], env=env)
    assert not trust.is_project_trusted(root, ["old"], env=env)
    assert [one.commands for one in trust.list_trusted(env=env)] == [("new",)]


@pytest.mark.req("H-02")
def test_another_project_with_the_same_commands_is_not_trusted(env: Env, root: str, tmp_path: Path) -> None:
    trust.trust_project(root, ["make"], env=env)
    assert not trust.is_project_trusted(str(tmp_path), ["make"], env=env)


@pytest.mark.req("H-02")
def test_a_linked_root_is_the_project_it_leads_to(env: Env, root: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    trust.trust_project(str(link), ["make"], env=env)
    assert trust.is_project_trusted(root, ["make"], env=env)
    assert trust.list_trusted(env=env)[0].path == root
    other = tmp_path / "other"
    other.mkdir()
    link.unlink()
    link.symlink_to(other)
    assert not trust.is_project_trusted(str(link), ["make"], env=env)


@pytest.mark.req("L-21")
def test_an_acceptance_command_is_trusted_in_its_folder_alone(env: Env, root: str, tmp_path: Path) -> None:
    trust.trust_command("make test", root, env=env)
    assert trust.is_command_trusted("make test", root, env=env)
    assert not trust.is_command_trusted("make test", str(tmp_path), env=env)
    assert not trust.is_command_trusted("make tests", root, env=env)
    assert not trust.is_project_trusted(root, ["make test"], env=env)


@pytest.mark.req("H-02", "L-21")
def test_revoking_takes_back_one_thing_and_says_whether_it_was_there(env: Env, root: str) -> None:
    trust.trust_project(root, ["make"], env=env)
    trust.trust_command("make test", root, env=env)
    assert trust.revoke(root, env=env)
    assert not trust.revoke(root, env=env)
    assert not trust.is_project_trusted(root, ["make"], env=env)
    assert [one.kind for one in trust.list_trusted(env=env)] == ["acceptance"]
    assert trust.revoke(root, "make test", env=env)
    assert trust.list_trusted(env=env) == ()


@pytest.mark.req("H-02")
def test_the_store_is_ours_alone(env: Env, root: str) -> None:
    trust.trust_project(root, ["make"], env=env)
    store = Path(env["TASKYARD_HOME"]) / "trust.json"
    assert store.stat().st_mode & 0o777 == 0o600
    assert store.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(file.name for file in store.parent.iterdir()) == ["trust.json", "trust.json.lock"]


@pytest.mark.req("H-02")
def test_a_planted_link_is_neither_believed_nor_written_through(env: Env, root: str, tmp_path: Path) -> None:
    home = Path(env["TASKYARD_HOME"])
    trust.trust_project(root, ["make"], env=env)
    os.rename(home / "trust.json", tmp_path / "elsewhere")
    (home / "trust.json").symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    with pytest.raises(StorageError):
        trust.is_project_trusted(root, ["make"], env=env)
    with pytest.raises(StorageError):
        trust.trust_project(root, ["evil"], env=env)
    assert (tmp_path / "elsewhere").read_bytes() == before


@pytest.mark.req("H-02")
@pytest.mark.parametrize("command", ["", "  ", "a\0b", "\x1b[2Jhidden", "\ud800"])
def test_a_command_that_cannot_be_shown_cannot_be_trusted(command: str, env: Env, root: str) -> None:
    with pytest.raises(BadText):
        trust.trust_project(root, [command], env=env)
    with pytest.raises(BadText):
        trust.trust_command(command, root, env=env)
    assert trust.list_trusted(env=env) == ()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "path", "commands", "sha256", "at", "trusted"]), inner, max_size=5)
    ),
    max_leaves=10,
)


@pytest.mark.req("H-02")
@settings(deadline=None, max_examples=40)
@given(
    content=st.one_of(
        st.binary(max_size=50), anything.map(json.dumps).map(str.encode), st.just(b'{"trusted": [' + b"[" * 99_999)
    )
)
def test_a_damaged_store_trusts_nothing_and_is_left_as_it_is(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "trust.json").write_bytes(content)
    env = {"TASKYARD_HOME": str(home)}
    try:
        assert not trust.is_project_trusted("/", ["make"], env=env)
    except Damaged as error:
        assert error.file == str(home / "trust.json")
        with pytest.raises(Damaged):
            trust.trust_project("/", ["make"], env=env)
        assert (home / "trust.json").read_bytes() == content


@pytest.mark.req("H-02")
def test_what_is_shown_is_what_is_allowed_whatever_hash_the_file_claims(env: Env, root: str) -> None:
    wanted = trust.trust_project(root, ["evil"], env=env)
    trust.trust_project(root, ["harmless"], env=env)
    store = Path(env["TASKYARD_HOME"]) / "trust.json"
    found = json.loads(store.read_text())
    found["trusted"][0]["sha256"] = wanted.sha256
    store.write_text(json.dumps(found))
    assert not trust.is_project_trusted(root, ["evil"], env=env)


@pytest.mark.req("H-02")
def test_processes_that_trust_at_the_same_time_lose_nothing(env: Env, root: str) -> None:
    code = (
        "import sys; from taskyard.storage import trust\n"
        "for n in range(10): trust.trust_command(f'{sys.argv[1]}-{n}', '/')"
    )
    start = [sys.executable, "-c", code]
    running = [subprocess.Popen([*start, str(name)], env={**os.environ, **env}) for name in range(4)]
    assert [process.wait(timeout=30) for process in running] == [0] * 4
    assert len(trust.list_trusted(env=env)) == 40
