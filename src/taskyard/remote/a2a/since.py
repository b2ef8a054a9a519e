"""
What our own server offers beside the protocol (an extension, as its card says): a poll that tells only what is new.

A request that names the extension and brings an offset gets the transcript from there on. The artifact's metadata says
where it begins, where to go on, and whether more is there already.
"""

from __future__ import annotations

#: As cards and requests name it.
URI = "urn:taskyard:a2a:since"

#: The header with the offset.
HEADER = "Taskyard-Since"

#: The artifact that is told in parts, and that of the final answer.
TRANSCRIPT, RESULT = "transcript", "result"

#: In the metadata of that artifact.
OFFSET, NEXT, MORE = "offset", "next", "more"
