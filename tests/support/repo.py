"""Where things are in this repository, for the tests that read the project itself."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests"


def python_files(folder: Path) -> list[Path]:
    """Every Python file below `folder` that is ours."""
    return sorted(path for path in folder.rglob("*.py") if "node_modules" not in path.parts)


def shown(path: Path) -> str:
    """`path` as people name it: from the repository's root."""
    return str(path.relative_to(ROOT))


def git_folder(root: Path) -> None:
    """Make a folder the root of a project: git takes a `.git` for a repository only if it has a HEAD."""
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
