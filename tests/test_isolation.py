"""The fixture every test stands on: whatever the person running it has set, a test sees none of it."""

from __future__ import annotations

import os
from pathlib import Path

from support.python import run_python
from taskyard import config

FOLDERS = ("HOME", "TASKYARD_HOME", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def test_every_folder_a_test_can_reach_by_default_is_its_own(outside: Path) -> None:
    reached = [os.environ[name] for name in FOLDERS] + [config.home(), config.tasks_dir(), config.claude_folder()]

    assert [path for path in reached if not Path(path).is_relative_to(outside)] == []


def test_nothing_is_put_into_the_folder_a_test_works_in(tmp_path: Path, outside: Path) -> None:
    assert (list(tmp_path.iterdir()), outside.stat().st_mode & 0o777) == ([], 0o700)


def test_no_setting_of_the_person_who_runs_it_reaches_a_test() -> None:
    allowed = {"TASKYARD_HOME", "TASKYARD_SOAK", "CLAUDE_CONFIG_DIR"}
    seen = {name for name in os.environ if name.startswith(("TASKYARD_", "CLAUDE"))}

    assert seen <= allowed


def test_a_child_imports_the_source_under_test_from_any_folder(tmp_path: Path) -> None:
    import taskyard

    assert run_python(f"import os; os.chdir({str(tmp_path)!r}); import taskyard; print(taskyard.__file__)").strip() == (
        taskyard.__file__
    )
