"""Which processes live: by number, start and what their threads do."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from support.headless import headless, size
from support.wait import until
from taskyard.core.system import proc_folder, process_alive, process_start, stat_fields


def test_a_process_lives_as_long_as_one_of_its_threads(tmp_path: Path) -> None:
    written = tmp_path / "written"
    with subprocess.Popen(shlex.split(headless(written))) as process:
        start = process_start(process.pid)
        until(lambda: size(written) > 0 and (stat_fields(str(process.pid)) or [""])[0] == "Z")

        assert process_alive(process.pid, start)
        assert not process_alive(process.pid, start + 1)
        opened = [os.readlink(link) for link in Path(f"{proc_folder(str(process.pid))}/fd").iterdir()]
        assert str(written) in opened

        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not process_alive(process.pid, start), "a zombie that waits to be collected"
