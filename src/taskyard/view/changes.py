"""
Snapshots as JSON, and what became of one since another: rows by id, so that a screen touches only what changed. Pure.

    whole(after)             everything
    difference(before, after)    {"tasks": {"12": {…}, "9": null}, "task_order": ["12", …], "pill": {…}}

A key that is missing did not change. An order is there when rows came, went or moved.
"""

from __future__ import annotations

from taskyard.typed import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskyard.typed import NamedTuple
    from taskyard.view.snapshot import Snapshot

#: What has an id of its own, with the name of its key and of the key of its order.
_ROWS = (("tasks", "id", "task_order"), ("jobs", "id", "job_order"), ("people", "name", "people_order"))


def whole(snapshot: Snapshot) -> dict[str, object]:
    """Everything a screen needs to begin with."""
    return difference(None, snapshot)


def difference(before: Snapshot | None, after: Snapshot) -> dict[str, object]:
    """What a screen that shows `before` must learn to show `after`; empty if they show the same."""
    found: dict[str, object] = {}
    for key, name, order in _ROWS:
        was = {getattr(row, name): row for row in getattr(before, key)} if before is not None else {}
        now = {getattr(row, name): row for row in getattr(after, key)}
        changed: dict[str, object] = {one: as_json(row) for one, row in now.items() if was.get(one) != row}
        changed.update(dict.fromkeys(one for one in was if one not in now))
        if changed or before is None:
            found[key] = changed
        if before is None or list(was) != list(now):
            found[order] = list(now)
    was_rest: Mapping[str, object] = _rest(before) if before is not None else {}
    found.update({key: value for key, value in _rest(after).items() if key not in was_rest or was_rest[key] != value})
    return found


def as_json(record: NamedTuple) -> dict[str, object]:
    """A record as plain values, those inside it too."""
    return {name: _plain(value) for name, value in record._asdict().items()}


def _plain(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    parts = cast("tuple[object, ...]", value)
    fields: Sequence[str] = getattr(parts, "_fields", ())
    return {name: _plain(part) for name, part in zip(fields, parts)} if fields else [_plain(part) for part in parts]


def _rest(snapshot: Snapshot) -> Mapping[str, object]:
    return {
        "list": snapshot.list,
        "counts": {**as_json(snapshot.counts), "total": snapshot.counts.total},
        "pill": {**as_json(snapshot.pill), "line": snapshot.pill.in_words()},
        "headline": snapshot.headline,
        "is_panel_shown": snapshot.is_panel_shown,
        "attention": snapshot.attention,
        "problems": list(snapshot.problems),
        "is_disconnected": snapshot.is_disconnected,
        "lists": list(snapshot.lists),
    }
