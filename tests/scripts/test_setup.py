"""Set-up says what it lacks and why, and stops before it changes anything it may not."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.repo import ROOT


@pytest.fixture
def setup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("taskyard_setup", ROOT / "scripts" / "setup.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "DEBIAN_POSTGRES", str(tmp_path / "postgresql"))
    (tmp_path / "postgresql" / "15" / "bin").mkdir(parents=True)
    (tmp_path / "postgresql" / "15" / "bin" / "initdb").touch(mode=0o755)
    return module


@pytest.fixture
def ran(setup: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that set-up would have run."""
    commands: list[list[str]] = []
    monkeypatch.setattr(setup, "run", lambda command, **_: commands.append(command))
    return commands


def a_machine_with(monkeypatch: pytest.MonkeyPatch, folder: Path, *commands: str, user: int) -> None:
    for command in commands:
        (folder / command).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_what_is_on_the_path_already_is_not_installed(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_machine_with(monkeypatch, tmp_path, "node", "npm", "tmux", "chromium", "zsh", "fish", "ip", user=0)

    assert [need.package for need in setup.missing(setup.NEEDS)] == ["git", "strace"]


def test_a_user_who_is_not_root_is_shown_the_one_command_and_nothing_runs(
    setup: ModuleType, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_machine_with(monkeypatch, tmp_path, "apt-get", "git", "tmux", "chromium", "zsh", "ip", user=1000)

    with pytest.raises(setup.Stop, match="sudo apt-get install -y --no-install-recommends nodejs npm strace fish\n"):
        setup.install_system(setup.missing(setup.NEEDS))

    assert ran == []


def test_root_gets_the_missing_packages_and_the_reason_for_each(
    setup: ModuleType,
    ran: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a_machine_with(
        monkeypatch, tmp_path, "apt-get", "node", "npm", "git", "tmux", "chromium", "zsh", "fish", "ip", user=0
    )

    with pytest.raises(setup.Stop, match="brought no strace"):  # as nothing really ran
        setup.install_system(setup.missing(setup.NEEDS))

    assert ran == [["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "strace"]]
    assert "needs strace: kills a writer between two of its system calls" in capsys.readouterr().out


def test_a_system_without_apt_is_told_the_names_of_the_packages(
    setup: ModuleType, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_machine_with(monkeypatch, tmp_path, "node", "npm", "tmux", "chromium", "zsh", "fish", "ip", user=0)

    with pytest.raises(setup.Stop, match="install git, strace with this system's package manager"):
        setup.install_system(setup.missing(setup.NEEDS))


def test_a_postgres_server_is_found_where_pg_config_says_or_the_newest_where_debian_puts_it(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_machine_with(monkeypatch, tmp_path, user=0)
    for version in ("9", "17"):
        (tmp_path / "postgresql" / version / "bin").mkdir(parents=True)
        (tmp_path / "postgresql" / version / "bin" / "initdb").touch(mode=0o755)
    assert setup.postgres_folder() == str(tmp_path / "postgresql" / "17" / "bin")

    told = tmp_path / "own"
    told.mkdir()
    (told / "initdb").touch(mode=0o755)
    monkeypatch.setattr(setup, "output_of", lambda command: f"{told}\n" if command[0] == "pg_config" else "")
    assert setup.postgres_folder() == str(told)


def test_without_a_postgres_server_its_package_is_missing(
    setup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(setup, "DEBIAN_POSTGRES", str(tmp_path / "nowhere"))
    a_machine_with(monkeypatch, tmp_path, *(need.command for need in setup.NEEDS), user=0)

    assert [need.package for need in setup.missing(setup.NEEDS)] == ["postgresql"]


@pytest.mark.parametrize("answer", ["v16.20.2\n", "", "nonsense"])
def test_a_node_that_is_too_old_or_no_node_is_refused(setup: ModuleType, answer: str) -> None:
    with pytest.raises(setup.Stop, match="Node 18 or newer"):
        setup.check_node(answer)


def test_a_python_that_is_too_old_is_refused(setup: ModuleType) -> None:
    setup.check_python((3, 11))

    with pytest.raises(setup.Stop, match=r"Python 3\.11 or newer is needed, this is 3\.9"):
        setup.check_python((3, 9))


def test_a_part_is_made_once_and_again_when_what_it_is_made_from_changes(setup: ModuleType, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe"
    recipe.write_text("one", encoding="utf-8")
    part = setup.Part(str(tmp_path / "stamp"), (str(recipe),))
    before = part.is_made()
    part.mark_made()
    after = part.is_made()
    recipe.write_text("two", encoding="utf-8")

    assert (before, after, part.is_made()) == (False, True, False)


def test_ray_goes_into_an_environment_of_its_own_once(
    setup: ModuleType,
    ran: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(setup, "RAY_VENV", str(tmp_path))
    monkeypatch.setattr(setup, "RAY_PART", setup.Part(str(tmp_path / "ready"), ()))

    assert [setup.main(["ray"]) for _ in range(2)] == [0, 0]

    made, installed = ran
    assert made[-1] == str(tmp_path) and "venv" in made
    assert installed[0] == str(tmp_path / "bin" / "python") and installed[-1].startswith("ray[default]>=")
    assert capsys.readouterr().out.count("makes .venv-ray: Ray and what it needs") == 1


def test_a_command_that_fails_ends_set_up_and_is_named(setup: ModuleType) -> None:
    with pytest.raises(setup.Stop, match="exit code 3"):
        setup.run([sys.executable, "-c", "raise SystemExit(3)"])


def test_an_unknown_part_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "setup.py", "everything"], capture_output=True, timeout=30
    )

    assert done.returncode == 2
