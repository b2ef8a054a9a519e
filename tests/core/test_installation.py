"""What a missing extra says to type: a command that works for this very installation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.repo import SOURCE

METADATA = """\
Metadata-Version: 2.1
Name: taskyard
Version: 0.1
Provides-Extra: web
Requires-Dist: starlette>=0.40; extra == 'web'
Requires-Dist: uvicorn>=0.30; extra == 'web'
Requires-Dist: textual; extra == 'tui'
"""

ASK = """
import sys
sys.prefix = sys.argv[1]
from taskyard.errors import MissingExtra
print(MissingExtra("The web page", "web"))
"""


def hint(tmp_path: Path, *, origin: object = None, prefix: dict[str, str] | None = None, place: str = "prefix") -> str:
    """What is said where the package has this origin, and its environment has these files."""
    known = tmp_path / "site" / "taskyard-0.1.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text(METADATA, encoding="utf-8")
    if origin is not None:
        (known / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    folder = tmp_path / place
    folder.mkdir(parents=True)
    for name, text in (prefix or {}).items():
        (folder / name).write_text(text, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}:{SOURCE}"}
    words = [sys.executable, "-c", ASK, str(folder)]
    said = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    return said.partition("`")[2].rpartition("`")[0]


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "install 'taskyard[web]'"),
        ({"url": "file:///src/task%20yard", "dir_info": {}}, "install '/src/task yard[web]'"),
        ({"url": "file:///src/yard", "dir_info": {"editable": True}}, "install -e '/src/yard[web]'"),
        (
            {
                "url": "https://example.org/y.git",
                "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "0"},
            },
            "install 'taskyard[web] @ git+https://example.org/y.git@v1'",
        ),
        (
            {"url": "file:///tmp/taskyard-0.1-py3-none-any.whl", "archive_info": {}},
            "install 'taskyard[web] @ file:///tmp/taskyard-0.1-py3-none-any.whl'",
        ),
    ],
)
def test_the_hint_names_where_the_package_came_from(tmp_path: Path, origin: object, wanted: str) -> None:
    assert hint(tmp_path, origin=origin).endswith(wanted)


@pytest.mark.parametrize(
    ("files", "place", "wanted"),
    [
        ({"pipx_metadata.json": "{}"}, "p", "pipx inject taskyard 'starlette>=0.40' 'uvicorn>=0.30'"),
        ({"uv-receipt.toml": ""}, "p", "uv tool install --force --editable '/src/yard[web]'"),
        ({}, "cache/uv/archive-v0/x", "uvx --from '/src/yard[web]' taskyard"),
    ],
)
def test_the_hint_uses_the_tool_that_installed_it(
    tmp_path: Path, files: dict[str, str], place: str, wanted: str
) -> None:
    origin = {"url": "file:///src/yard", "dir_info": {"editable": True}}
    assert hint(tmp_path, origin=origin, prefix=files, place=place) == wanted


def test_a_source_tree_that_is_not_installed_names_itself(tmp_path: Path) -> None:
    program = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\n" + ASK
    words = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n{program}", str(tmp_path)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert f"install '{SOURCE.parent}[web]'" in said
