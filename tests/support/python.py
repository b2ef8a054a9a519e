"""Other Python processes that tests start: the same interpreter, the same source, bounded."""

from __future__ import annotations

import subprocess
import sys
import textwrap

#: No child of a test needs longer; one that does hangs.
LONGEST = 30.0


def run_python(code: str, *arguments: str, timeout: float = LONGEST) -> str:
    """What `code` prints in a new interpreter; the test fails if it fails."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
