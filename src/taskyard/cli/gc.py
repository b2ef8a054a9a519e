"""`taskyard gc`: make room by removing what old ended jobs left on disk."""

from __future__ import annotations

from taskyard import config, paths
from taskyard.cli.command import Command
from taskyard.cli.output import answer
from taskyard.cli.values import seconds
from taskyard.clock import now_ms
from taskyard.view.text import cut, duration, safe, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from taskyard.cli.command import Args
    from taskyard.cli.parser import Parser
    from taskyard.runtime.gc import Collected, Ended
    from taskyard.runtime.worktrees import Settled

_WIDEST = 60  #: columns of a description


def _arguments(parser: Parser) -> None:
    parser.add("--dry-run", action="store_true", help="Only say what would go.")
    parser.add(
        "--older-than",
        type=seconds,
        metavar="TIME",
        help="Remove what ended longer ago than this, such as 7d; the setting job_age_limit if not given.",
    )


def _run(args: Args) -> int:
    from taskyard.runtime.gc import collect
    from taskyard.runtime.worktree_care import settle_all

    settings = config.load()
    age_limit = settings.job_age_limit if args.older_than is None else args.older_than
    done = collect(
        paths.home(),
        quota=settings.job_store_quota,
        age_limit=age_limit,
        dry_run=args.dry_run,
        timeout=settings.lock_timeout,
    )
    trees = settle_all(paths.home(), dry_run=args.dry_run)
    return answer(
        args,
        lambda: {
            **_json(done, quota=settings.job_store_quota, dry_run=args.dry_run),
            "worktrees": [{**tree._asdict(), "kept": tree.kept or None} for tree in trees],
        },
        lambda: [
            *_lines(done, quota=settings.job_store_quota, dry_run=args.dry_run),
            *_tree_lines(trees, dry_run=args.dry_run),
        ],
        ids=(one.job.id for one in done.removed),
    )


def _json(done: Collected, *, quota: int, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "removed": [_job_json(one) for one in done.removed],
        "freed": done.freed,
        "left": done.left,
        "quota": quota,
        "running": done.store.running,
        "unread": done.store.unread,
        "not_understood": done.store.strange,
        "half_made": done.half_made,
    }


def _job_json(one: Ended) -> dict[str, object]:
    return {
        "id": one.job.id,
        "description": one.job.description,
        "status": one.end.status.value,
        "ended_at": one.at,
        "bytes": one.size,
    }


def _lines(done: Collected, *, quota: int, dry_run: bool) -> Iterator[str]:
    now = now_ms()
    for one in done.removed:
        age = duration((now - one.at) / 1000)
        words = cut(safe(one.job.description), _WIDEST)
        yield f"{one.job.id}  {one.end.status.value:<9}  {age:>7} ago  {size(one.size):>7}  {words}".rstrip()
    count = len(done.removed)
    jobs = f"{count} ended {'job' if count == 1 else 'jobs'}"
    verb, freed = ("Would remove", "free") if dry_run else ("Removed", "freed")
    kept = [f"{done.store.running} running", f"{done.store.unread} unread"]
    if done.store.strange:
        kept.append(f"{done.store.strange} that cannot be read")
    yield f"{verb} {jobs}, {freed} {size(done.freed)}. {size(done.left)} of {size(quota)} are used."
    yield f"Not touched: {', '.join(kept)}."
    if done.half_made:
        yield f"{verb} the remains of {done.half_made} that never began."


def _tree_lines(trees: Sequence[Settled], *, dry_run: bool) -> Iterator[str]:
    for tree in trees:
        if tree.kept:
            yield f"Kept the worktree {safe(tree.path)}: {safe(tree.kept)}."
        else:
            yield f"{'Would remove' if dry_run else 'Removed'} the worktree {safe(tree.path)}: no work was in it."


GC = Command(
    _run,
    _arguments,
    "Remove what ended jobs left on disk: those that ended longer ago than the age limit, then the oldest until\n"
    "all fit into the quota. What runs and what nobody has read the news of is never touched; how each job ended\n"
    "stays known. Worktrees of agents that are over go too, unless there is work in them.",
    examples=("taskyard gc --dry-run", "taskyard gc --older-than 7d"),
)
