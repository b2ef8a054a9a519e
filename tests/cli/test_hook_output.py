"""What a hook prints, by the command line: of too much the last lines are shown, with the file that has all of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.cli import taskyard
from taskyard import config


@pytest.mark.req("O-06", "H-02")
def test_a_refusal_of_nine_megabytes_is_told_by_its_last_five_lines_and_its_file() -> None:
    said = "seq -f %015.0f 562500 >&2; exit 2"
    settings = {"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": said}]}]}}
    folder = Path(config.claude_folder())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    ran = taskyard("task", "add", "anything")

    assert ran.code != 0
    notice = re.search(r"\[Only the last 5 lines of 9,000,000 bytes\. Full output: (\S+)\]", ran.err)
    assert notice is not None and "\n".join(f"{number:015}" for number in range(562_496, 562_501)) in ran.err
    assert f"{562_495:015}" not in ran.err
    assert Path(notice[1]).read_bytes().startswith(b"[stderr] 000000000000001\n[stderr] 000000000000002\n")
