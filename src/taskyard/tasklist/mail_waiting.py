"""Sleeping until mail comes, into our box or Claude Code's inbox: the kernel tells."""

from __future__ import annotations

from taskyard.clock import elapsed
from taskyard.disk.watch import watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from taskyard.tasklist.mailbox import Post

#: No file tells of a reader's death: while somebody has mail in hand, look this often, in seconds.
LOOK_EVERY = 1.0


def wait(post: Post, agent: str, timeout: float) -> bool:
    """Whether mail waits for `agent`, now or within `timeout` seconds."""
    deadline = elapsed() + timeout
    ours, theirs = post.watched_folders(agent)
    with watcher().follow(ours) as box, watcher().follow(theirs, wake=box) as inboxes:
        while True:
            box.changed()
            inboxes.changed()
            if post.unread_count(agent):  # after both were emptied, so that nothing falls in between
                return True
            left = deadline - elapsed()
            if left <= 0:
                return False
            box.wait(min(left, LOOK_EVERY) if post.holders(agent) else left)
