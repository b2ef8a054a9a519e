"""`python -m bench [row…] [--quick] [--json]`: one line of JSON per row on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

from bench.folders import DISK, MEMORY, scratch
from bench.processes import Failed, NotReady
from bench.rounds import Row, measured
from bench.rows import all_rows, chosen


def main(args: list[str] | None = None) -> int:
    """Measure, print, and say by the exit code whether every goal is met."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("rows", nargs="*", help="names of rows, or the part before a dot; all without")
    parser.add_argument("--quick", action="store_true", help="one small round each: does it run? Judges nothing")
    parser.add_argument("--json", action="store_true", help="no progress, only the lines")
    parser.add_argument("--list", action="store_true", help="name the rows and their goals")
    asked = parser.parse_args(args)
    tell = _silent if asked.json else _told
    with scratch(MEMORY) as memory, scratch(DISK) as disk:
        try:
            rows = chosen(all_rows(memory, disk, quick=asked.quick), asked.rows)
        except KeyError as unknown:
            parser.error(f"no row {unknown}; --list names them")
        if asked.list:
            for row in rows:
                print(f"{row.name:24} {row.goal or ''}")
            return 0
        records = [printed(row, quick=asked.quick, tell=tell) for row in rows]
    if any("error" in record for record in records):
        return 1
    return 0 if asked.quick or all(record["met"] is not False for record in records) else 1


def printed(row: Row, *, quick: bool, tell: Callable[[str], None]) -> dict[str, object]:
    """Measure `row` and print its line; one that cannot be measured says why, and the others go on."""
    try:
        record = measured(row, quick=quick, tell=tell).record()
    except (NotReady, Failed) as why:
        record = row.failed(str(why))
    print(json.dumps(record, ensure_ascii=False), flush=True)
    return record


def _told(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _silent(text: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
