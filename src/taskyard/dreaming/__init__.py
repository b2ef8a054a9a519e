"""
Memory consolidation: what an agent learned in past sessions, brought in order in its memory folder.

    memory.py      which folder                         gate.py       whether it is time: pure
    sources/       transcripts of past sessions         side.py       what stands beside the folder: lock, old copies
    trees.py       folders read and copied safely       lock.py       one at a time; when it was last done
    prompts.py     the four stages                      applying.py   one swap, whole or not at all, and its undoing
    changes.py     what became different, as a diff     sitting.py    a dream from its claim to its last word

The kind that does it is `taskyard.kinds.dream`.
"""
