"""The program that the demo's team writes: it counts words. The first counter is wrong, and a check finds it."""

from __future__ import annotations

WORDS = '''"""Words of a text."""

import re


def words(text: str) -> list[str]:
    """Every word, as it stands there."""
    return re.findall(r"[a-z]+", text, re.IGNORECASE)
'''

COUNT = '''"""How often words occur."""

from collections import Counter


def counted(words: list[str]) -> list[tuple[str, int]]:
    """Each word with its count, the most frequent first."""
    return Counter(words).most_common()
'''

#: What the check's output leads to: the same word with a capital is the same word.
COUNT_MENDED = COUNT.replace("Counter(words)", "Counter(word.lower() for word in words)")

MAIN = '''"""python -m tally: count the words on standard input."""

import sys

from tally.count import counted
from tally.words import words

if __name__ == "__main__":
    for word, count in counted(words(sys.stdin.read())):
        print(count, word)
'''

TEST_WORDS = """import unittest

from tally.words import words


class Words(unittest.TestCase):
    def test_marks_are_no_words(self) -> None:
        self.assertEqual(words("To be, or not!"), ["To", "be", "or", "not"])
"""

TEST_COUNT = """import unittest

from tally.count import counted


class Count(unittest.TestCase):
    def test_a_capital_makes_no_other_word(self) -> None:
        self.assertEqual(counted(["The", "end", "the"]), [("the", 2), ("end", 1)])
"""

MANUAL = """# tally

`python -m tally < TEXT` prints every word with its count, the most frequent first.
"""

#: A builder as people have them: it asks before it overwrites.
BUILD = '''"""Build dist/tally.pyz."""

import os
import zipapp

if os.path.exists("dist/tally.pyz"):
    if input("dist/tally.pyz is there from an older build. Overwrite? (y/n) ") != "y":
        raise SystemExit("not built")
zipapp.create_archive("tally", "dist/tally.pyz", filter=lambda path: path.suffix == ".py")
print(os.path.getsize("dist/tally.pyz"), "bytes in dist/tally.pyz")
'''

#: Counts for some seconds, so that somebody can die meanwhile.
MEASURE = '''"""How many words a second."""

import time

from tally.count import counted
from tally.words import words

TEXT = "The quick brown fox jumps over the lazy dog. " * 1000
began, done = time.monotonic(), 0
while time.monotonic() < began + 1:
    done += sum(count for _, count in counted(words(TEXT)))
    print(f"{done:,} words", flush=True)
print(f"{done / (time.monotonic() - began):,.0f} words a second")
'''
