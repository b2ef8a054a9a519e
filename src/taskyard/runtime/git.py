"""Git, asked by its own program: bounded, with nothing of a repository's that would run besides, and no questions."""

from __future__ import annotations

import os

from taskyard.typed import NamedTuple

#: Settings of a repository that would run programs where nobody expects them.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")

#: Characters of what git says against something.
_LONGEST_WORDS = 500

#: Seconds for a question.
PATIENCE = 60.0


class Said(NamedTuple):
    """What git answered."""

    output: bytes
    error: str = ""  #: why it did not; nothing if it did

    @property
    def text(self) -> str:
        """The output, without the line's end."""
        return os.fsdecode(self.output).rstrip("\n")


def git(folder: str, *words: str, timeout: float = PATIENCE) -> Said:
    """Ask git something about the repository around `folder`."""
    import subprocess

    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {name: value for name in _NAMES if (value := os.environ.get(name)) is not None}
    env |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(  # words, no shell
            ["git", "-C", folder, *_QUIET, *words],  # the user's own
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        return Said(b"", "git is not installed")
    except subprocess.TimeoutExpired:
        return Said(b"", f"git {words[0]} took longer than {timeout:g} s")
    except OSError as error:
        return Said(b"", f"git cannot be started: {error.strerror}")
    if done.returncode == 0:
        return Said(done.stdout)
    words_of_it = " ".join(done.stderr.decode("utf-8", "replace").split())[-_LONGEST_WORDS:]
    return Said(done.stdout, words_of_it or f"git {words[0]} ended with exit code {done.returncode}")


#: Who acts, and by which settings: those of git's variables that do not say where.
_NAMES = (
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM",
)  # fmt: skip
