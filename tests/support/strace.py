"""Whether strace can do its work here."""

from __future__ import annotations

import shutil
import subprocess


def strace_works() -> bool:
    """Whether it is there, and may trace."""
    if shutil.which("strace") is None:
        return False
    tried = subprocess.run(["strace", "-o", "/dev/null", "-e", "trace=none", "true"], capture_output=True, check=False)
    return tried.returncode == 0
