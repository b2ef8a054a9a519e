"""
Every row of `make bench`, with its goal.

Judged rows run in memory with `foreign_writers=True`: we then take the same lock folders as the
reference. Beside each, not judged: the same on a disk (`.disk`), and with our own kernel locks
alone (`.alone`), as in a folder that no other program writes; claims also against a leaner reference (`.lean`), and in
PostgreSQL against all its statements in one (`.packed`).
"""

from __future__ import annotations

from collections.abc import Callable

from bench import command_line, database, jobs, mail, mcp_calls, screens, task_list, teammates
from bench.rounds import Goal, Row, Sample
from bench.task_list import Ground


def all_rows(memory: str, disk: str, *, quick: bool = False) -> list[Row]:
    """All rows; `memory` and `disk` are scratch folders, `quick` makes everything small."""
    judged = Ground(memory, quick=quick)
    rows = [*_list_rows(judged), _mail_row(judged)]
    beside = [
        *_beside(Ground(memory, quick=quick, foreign_writers=False), ".alone"),
        *_beside(Ground(disk, quick=quick), ".disk"),
    ]
    beside.append(_lean_claims(judged))
    by_name: dict[str, list[Row]] = {}
    for row in beside:
        by_name.setdefault(row.name.rsplit(".", 1)[0], []).append(row)
    in_order = [each for row in rows for each in (row, *by_name.get(row.name, []))]
    return [
        *in_order,
        _command_row(judged),
        *_job_rows(judged),
        _mcp_row(judged),
        _mcp_start_row(judged),
        *_screen_rows(judged),
        *_database_rows(judged),
    ]


def chosen(rows: list[Row], wanted: list[str]) -> list[Row]:
    """The rows named; a name that is none stands for all below it, as `create` for `create.…`.

    Raises:
        KeyError: a name fits no row.
    """
    if not wanted:
        return rows
    picked: set[str] = set()
    for name in wanted:
        named = [row.name for row in rows if row.name == name]
        found = named or [row.name for row in rows if row.name.startswith(f"{name}.")]
        if not found:
            raise KeyError(name)
        picked.update(found)
    return [row for row in rows if row.name in picked]


def _list_rows(ground: Ground) -> list[Row]:
    return [
        Row(
            "create.seq",
            "creates/s",
            lambda: task_list.creates_ours(ground, processes=1),
            lambda: task_list.creates_reference(ground, processes=1),
            Goal("≥", 10),
            is_rate=True,
        ),
        Row(
            "create.10proc",
            "creates/s",
            lambda: task_list.creates_ours(ground, processes=10),
            lambda: task_list.creates_reference(ground, processes=10),
            Goal("≥", 8),
            is_rate=True,
            seconds=60,
        ),
        _flat_row(ground),
        Row(
            "claim.10proc",
            "ms",
            lambda: task_list.claims_ours(ground),
            lambda: task_list.claims_reference(ground),
            Goal("≥", 20),
            seconds=60,
        ),
        Row(
            "list.10k.warm",
            "ms",
            lambda: task_list.list_ours(ground),
            lambda: task_list.list_reference(ground),
            Goal("≥", 12),
            seconds=40,
        ),
        Row(
            "list.10k.cold",
            "ms",
            lambda: task_list.cold_ours(ground),
            lambda: task_list.cold_reference(ground),
            Goal("≥", 2),
            seconds=40,
        ),
    ]


def _lean_claims(ground: Ground) -> Row:
    """The same race against a reference that reads less than the original does."""
    return Row(
        "claim.10proc.lean",
        "ms",
        lambda: task_list.claims_ours(ground),
        lambda: task_list.claims_reference(ground, lean=True),
        None,
        fewest=3,
        most=5,
        seconds=20,
    )


def _flat_row(ground: Ground) -> Row:
    flat = task_list.Flat(ground)
    return Row(
        "create.flat", "µs", flat.at_ten_thousand, flat.at_ten, Goal("≤", 1.2), as_time_ratio=True, seconds=20, most=15
    )


def _mail_row(ground: Ground) -> Row:
    return Row(
        "mail.10x500",
        "messages/s",
        lambda: mail.sends_ours(ground),
        lambda: mail.sends_reference(ground),
        Goal("≥", 10),
        is_rate=True,
        seconds=60,
        fewest=2,
    )


def _command_row(ground: Ground) -> Row:
    command = command_line.CommandLine(ground)
    return Row(
        "cli.start",
        "ms",
        command.list_tasks,
        command.bare_interpreter,
        Goal("≤", 4),
        as_time_ratio=True,
        seconds=20,
        fewest=20,
        most=100,
    )


def _job_rows(ground: Ground) -> list[Row]:
    """What a job costs beyond its command."""

    def cost(name: str, unit: str, ours: Callable[[], Sample], limit: float) -> Row:
        return Row(name, unit, ours, jobs.at_most(limit), Goal("≤", 1), as_time_ratio=True, fewest=2, most=3)

    return [
        Row(
            "job.start_end",
            "jobs/s",
            lambda: jobs.starts_ours(ground),
            lambda: jobs.starts_bare(ground),
            Goal("≥", 0.2),
            is_rate=True,
        ),
        Row(
            "job.notice",
            "ms",
            lambda: jobs.notice_ours(ground),
            lambda: jobs.notice_polled(ground),
            Goal("≥", 20),
            fewest=3,
            most=6,
        ),
        Row(
            "job.output",
            "MB/s",
            lambda: jobs.output_ours(ground),
            lambda: jobs.output_bare(ground),
            Goal("≥", 0.95),
            is_rate=True,
            by_best=True,
            fewest=8,
        ),
        Row(
            "job.output.capped",
            "MB/s",
            lambda: jobs.output_ours(ground, cap=jobs.CAP),
            lambda: jobs.output_bare(ground),
            Goal("≥", 0.6),
            is_rate=True,
            by_best=True,
            fewest=8,
        ),
        cost("idle", "% of a core", lambda: jobs.idle_ours(ground), 0.5),
        cost("mem.keeper", "MB", lambda: jobs.memory_ours(ground, alone=False), 2.0),
        cost("mem.keeper.alone", "MB", lambda: jobs.memory_ours(ground, alone=True), 8.0),
        cost("mem.team", "MB", lambda: teammates.memory_ours(ground), 1.0)._replace(fewest=1, most=1),
    ]


def _mcp_row(ground: Ground) -> Row:
    return Row(
        "mcp.call",
        "ms",
        lambda: mcp_calls.ours(ground),
        lambda: mcp_calls.empty(ground),
        Goal("≤", 3),
        as_time_ratio=True,
        fewest=4,
        most=8,
    )


def _mcp_start_row(ground: Ground) -> Row:
    start = command_line.McpStart(ground)
    return Row(
        "mcp.start",
        "ms",
        start.tools,
        start.bare_asyncio,
        Goal("≤", 1.5),
        as_time_ratio=True,
        seconds=20,
        fewest=10,
        most=50,
    )


def _screen_rows(ground: Ground) -> list[Row]:
    return [
        Row(
            "view.update",
            "ms",
            lambda: screens.update_ours(ground),
            lambda: screens.update_debounced(ground),
            Goal("≥", 3),
            fewest=3,
            most=5,
        ),
        Row(
            "web.fanout",
            "ms",
            lambda: screens.fanout_ours(ground),
            lambda: screens.fanout_one(ground),
            Goal("≤", 5),
            as_time_ratio=True,
            fewest=3,
            most=6,
        ),
    ]


def _database_rows(ground: Ground) -> list[Row]:
    create = Row(
        "pg.create",
        "creates/s",
        lambda: database.creates(ground, "ours"),
        lambda: database.creates(ground, "bare"),
        Goal("≥", 0.5),
        is_rate=True,
    )
    claim = Row(
        "pg.claim",
        "claims/s",
        lambda: database.claims(ground, "ours"),
        lambda: database.claims(ground, "bare"),
        Goal("≥", 0.5),
        is_rate=True,
    )
    notify = Row(
        "pg.notify",
        "ms",
        lambda: database.notify(ground, "ours"),
        lambda: database.notify(ground, "bare"),
        Goal("≤", 5),
        as_time_ratio=True,
    )
    return [
        create,
        claim,
        notify,
        _against(create, "pg.create.packed", lambda: database.creates(ground, "packed")),
        _against(claim, "pg.claim.packed", lambda: database.claims(ground, "packed")),
    ]


def _against(row: Row, name: str, yardstick: Callable[[], Sample]) -> Row:
    """A row against something harder: for information, so in few rounds and without a goal."""
    return row._replace(name=name, yardstick=yardstick, goal=None, fewest=2, most=3, seconds=10)


def _beside(ground: Ground, suffix: str) -> list[Row]:
    """The list's rows on another ground: for information, so in few rounds and without a goal."""
    rows = _list_rows(ground)
    return [row._replace(name=row.name + suffix, goal=None, fewest=2, most=3, seconds=10) for row in rows]
