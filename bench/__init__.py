"""
Ours and the yardstick, side by side in one run: `python -m bench [row…] [--quick] [--json]`.

    rows.py       every row: what is measured, in what unit, and the goal
    rounds.py     interleaved rounds, medians, when enough is enough
    processes.py  many processes at one start line
    folders.py    where it happens, and lists of any size
    worker.py     our side, inside a process; `tests/node/reference.mjs` is the other

What makes it a fair comparison: docs/explain/benchmarks.md
"""
