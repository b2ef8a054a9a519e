"""Acceptance commands leave evidence, and prove nothing unless they end with 0."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from taskyard.core.system import now_ms
from taskyard.errors import BadText, BadValue, Cancelled, Untrusted
from taskyard.integrations.acceptance import Acceptance, AcceptanceResult, check_acceptance, run_acceptance
from taskyard.storage import trust


def allowed(spec: dict[str, object], cwd: Path, monkeypatch: pytest.MonkeyPatch) -> AcceptanceResult:
    monkeypatch.setenv("TASKYARD_HOME", str(cwd / "home"))
    command, folder, *_ = check_acceptance(spec, folder=str(cwd))
    trust.trust_command(command, folder)
    return run_acceptance(spec, folder=str(cwd))


@pytest.mark.req("L-21")
def test_evidence_says_what_ran_where_how_it_ended_and_what_it_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "api").mkdir()
    before = now_ms()
    found = allowed({"command": "pwd; echo bad >&2; exit 3", "cwd": "api"}, tmp_path, monkeypatch)
    folder = str(tmp_path / "api")
    assert found == AcceptanceResult(
        "pwd; echo bad >&2; exit 3", folder, 3, f"{folder}\nbad\n", found.seconds, found.at
    )
    assert not found.passed
    assert before <= found.at <= now_ms()


@pytest.mark.req("L-21")
def test_a_command_that_ends_with_0_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert allowed({"command": "true"}, tmp_path, monkeypatch).passed


@pytest.mark.req("L-21")
def test_the_end_of_long_output_is_kept_without_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = r"yes é | head -c 3000000; printf '\033[31mFAILED\033[0m \377 test_x\n'; exit 1"
    found = allowed({"command": command}, tmp_path, monkeypatch)
    assert found.output.endswith("FAILED \ufffd test_x\n")
    assert len(found.output) == 8_000


@pytest.mark.req("L-21")
def test_running_out_of_time_is_no_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = allowed({"command": "echo begun; sleep 30", "timeout": 0.2}, tmp_path, monkeypatch)
    assert (found.exit_code, found.output, found.passed) == (None, "begun\n", False)


@pytest.mark.req("L-21")
def test_an_exit_with_0_on_sigterm_after_the_time_limit_does_not_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = "trap 'exit 0' TERM; while :; do sleep 0.02; done"
    assert not allowed({"command": command, "timeout": 0.2}, tmp_path, monkeypatch).passed


@pytest.mark.req("L-21")
@pytest.mark.parametrize(("spec", "code"), [({"command": "kill -9 $$"}, 137), ({"command": "true", "cwd": "no"}, 127)])
def test_a_command_that_was_killed_or_never_started_does_not_pass(
    spec: dict[str, object], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert allowed(spec, tmp_path, monkeypatch).exit_code == code


@pytest.mark.req("L-21")
def test_a_command_nobody_allowed_does_not_run(tmp_path: Path) -> None:
    env = {"TASKYARD_HOME": str(tmp_path / "home")}
    with pytest.raises(Untrusted) as refused:
        run_acceptance({"command": "touch ran"}, folder=str(tmp_path), env=env)
    assert (refused.value.command, refused.value.how) == ("touch ran", "taskyard trust")
    assert not (tmp_path / "ran").exists()


@pytest.mark.req("L-21")
def test_a_caller_that_gives_up_gets_no_evidence(tmp_path: Path) -> None:
    env = {"TASKYARD_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    trust.trust_command("sleep 30", str(tmp_path), env=env)
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(Cancelled):
        run_acceptance({"command": "sleep 30"}, folder=str(tmp_path), env=env, cancel=cancel)


@pytest.mark.req("L-21")
def test_a_spec_is_checked_and_its_folder_made_absolute(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    spec = {"command": "make", "cwd": "link/../link", "timeout": 5}
    found = check_acceptance(spec, folder=str(tmp_path))
    assert found == Acceptance("make", str(tmp_path / "real"), 5.0, str(tmp_path / "real"))
    assert check_acceptance({"command": "make"}, folder=str(tmp_path)).timeout == 600


@pytest.mark.req("L-21")
@pytest.mark.parametrize(
    "spec",
    [
        None,
        "make test",
        [],
        {},
        {"command": ""},
        {"command": 3},
        {"command": "a\0b"},
        {"command": "x", "cwd": 1},
        {"command": "x", "cwd": ""},
        {"command": "x", "timeout": 0},
        {"command": "x", "timeout": True},
        {"command": "x", "timeout": "5"},
        {"command": "x", "timeout": float("nan")},
        {"command": "x", "timeout": 1e300},
        {"command": "x", "timout": 5},
    ],
)
def test_a_spec_that_is_none_is_refused(spec: object, tmp_path: Path) -> None:
    with pytest.raises((BadText, BadValue)):
        check_acceptance(spec, folder=str(tmp_path))
