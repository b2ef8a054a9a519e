"""The cap of an output by the command line: what is kept of a large one, and that reserved blocks count."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from support.cli import taskyard
from support.job_cli import ended, job, prints, started
from support.wait import until
from taskyard.config import Settings

#: Bytes that stay of the oldest output.
HEAD = 1_048_576

_RESERVE = """
import ctypes, sys, time
print("up", flush=True)
for _ in range(400):
    ctypes.CDLL(None).fallocate(1, KEEP, ctypes.c_int64(0), ctypes.c_int64(400_000_000))
    time.sleep(0.05)
"""


def _on_disk(path: str) -> int:
    return os.stat(path).st_blocks * 512


def _counting(lines: int) -> list[str]:
    return ["--", f"seq -f %015.0f {lines}"]  # 16 bytes a line


@pytest.mark.req("O-04")
def test_the_first_megabyte_and_the_newest_half_of_the_cap_are_kept() -> None:
    cap, lines = 8_000_000, 2_000_000

    over = ended(started("--output-cap", str(cap), *_counting(lines)))

    assert over["cause"] == "exited"
    text = Path(over["output"]).read_bytes()
    whole = b"".join(b"%015d\n" % n for n in (1, HEAD // 16))
    assert text[:16] + text[HEAD - 16 : HEAD] == whole
    note, _, newest = text[HEAD:].partition(b"\n")
    assert note.endswith(b" bytes were left out here: the output was larger than its cap]")
    assert len(newest) >= cap // 2 and newest.endswith(b"%015d\n" % lines)
    left_out = 16 * lines - HEAD - len(newest)
    assert note.startswith(f"[{left_out:,} bytes".encode()) and left_out > 0


@pytest.mark.req("O-04", "O-05")
@pytest.mark.parametrize("running", [False, True])
def test_offsets_stay_true_before_and_behind_what_was_left_out(running: bool) -> None:
    cap, lines = 8_000_000, 2_000_000
    command = f"seq -f %015.0f {lines}" + ("; exec sleep 60" if running else "")
    job_id = started("--output-cap", str(cap), "--", command)
    prints(job_id, f"{lines:015}")
    if not running:
        ended(job_id)

    head = taskyard("logs", job_id, "--from", str(HEAD - 32), "--json").data
    assert (head["omitted"], head["text"]) == (0, f"{HEAD // 16 - 1:015}\n{HEAD // 16:015}\n")
    behind = taskyard("logs", job_id, "--from", str(head["next_offset"]), "--json").data
    assert behind["omitted"] == behind["offset"] - HEAD > 1_000_000
    assert behind["text"].startswith(f"{behind['offset'] // 16 + 1:015}\n")
    tail = taskyard("logs", job_id, "--tail", "2", "--json").data
    assert (tail["text"], tail["omitted"]) == (f"{lines - 1:015}\n{lines:015}\n", 0)


@pytest.mark.req("O-04")
def test_the_cap_is_a_gigabyte_unless_set() -> None:
    assert Settings().job_output_cap == 1_000_000_000


@pytest.mark.req("O-04")
@pytest.mark.parametrize(("keep", "cause"), [(0, "stopped"), (1, "output_cap")], ids=["grown", "reserved"])
def test_blocks_that_a_command_reserves_count_for_the_cap(keep: int, cause: str) -> None:
    program = shlex.quote(_RESERVE.replace("KEEP", str(keep)))
    job_id = started("--output-cap", "1000000", "--", f"exec {shlex.quote(sys.executable)} -S -c {program}")
    prints(job_id, "up")
    path = job(job_id)["output"]
    if keep:
        over = ended(job_id)
    else:
        until(lambda: 0 < _on_disk(path) < 1_000_000 and os.stat(path).st_size == 400_000_000)
        over = taskyard("stop", job_id, "--json").data

    assert over["cause"] == cause
    assert _on_disk(path) <= 1_000_000
