"""What forked children do first."""

from __future__ import annotations

from support.python import run_python


def test_a_child_does_once_what_was_asked_for_before_it_was_forked_however_often() -> None:
    printed = run_python("""
        import os
        from taskyard.storage import locks as forks

        def act():
            os.write(1, b"first\\n")

        forks.after_fork_in_child(act)
        forks.after_fork_in_child(act)
        if os.fork() == 0:
            os.write(1, b"then\\n")
            os._exit(0)
        os.wait()
    """)

    assert printed.split() == ["first", "then"]
