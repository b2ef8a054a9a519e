"""Another program on the same list: Node with proper-lockfile, as Claude Code works (`tests/node`)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.repo import TESTS

NODE = TESTS / "node"

#: Node starts in a tenth of a second; on a busy machine in some.
_LONGEST = 60.0

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules" / "proper-lockfile").is_dir(),
    reason="needs Node and its packages: `make setup`",
)


class ForeignWriter:
    """`foreign_writer.mjs` at work beside us for some seconds."""

    def __init__(
        self, folder: str, journal: Path, *, seconds: float, name: str, seed: int, stale: bool = False
    ) -> None:
        """`stale`: metadata is merged into a read made before the lock, as Claude Code does."""
        arguments: dict[str, object] = {"stale-patch": "yes" if stale else "no"}
        arguments |= {"dir": folder, "journal": journal, "seconds": seconds, "name": name, "seed": seed}
        options = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
        self._journal = journal
        self._process = subprocess.Popen(
            ["node", str(NODE / "foreign_writer.mjs"), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == {"ready": True}

    def go(self) -> None:
        """Let it begin."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.flush()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def done(self) -> list[dict[str, Any]]:
        """What it did, when it has ended: each operation that succeeded."""
        self._process.communicate(timeout=_LONGEST)
        assert self._process.returncode == 0
        lines = map(json.loads, self._journal.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if line["ok"]]

    def end(self) -> None:
        """Be sure that it is gone."""
        self._process.kill()
        self._process.communicate()


def node(code: str, *arguments: str, ends: int = 0) -> str:
    """What a piece of Node prints; `list` is the other program's code, `args` the arguments; how it `ends`."""
    prelude = f"""
        import * as list from {json.dumps((NODE / "list.mjs").as_uri())};
        import lockfile from {json.dumps((NODE / "node_modules/proper-lockfile/index.js").as_uri())};
        const args = process.argv.slice(1);
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", prelude + code, *arguments],
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )
    assert done.returncode == ends, done.stderr
    return done.stdout
