"""Leases as JSON, and back from what may be anything."""

from __future__ import annotations

from taskyard.tasklist.model import Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS = ("owner", "instance", "token", "kind", "host", "lock", "place")


def lease_to_json(lease: Lease) -> dict[str, object]:
    """A lease as a record holds it; what says nothing is left out."""
    return {name: value for name, value in zip(lease._fields, lease) if value}


def lease_from(raw: Mapping[str, object]) -> Lease | None:
    """The lease in a record; None if there is none that can be understood."""
    get = raw.get
    texts = [text for name in _TEXTS if isinstance(text := get(name, ""), str)]
    if len(texts) < len(_TEXTS) or not texts[2]:
        return None
    owner, instance, token, kind, *where = texts
    since, expires, span = get("since"), get("expires"), get("span")
    since = since if isinstance(since, int) else 0
    expires = expires if isinstance(expires, int) else None
    return Lease(owner, instance, token, kind, since, expires, span if isinstance(span, int) else 0, *where)
