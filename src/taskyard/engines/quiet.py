"""Libraries that log and warn by themselves: in an agent's process, stderr is its transcript."""

from __future__ import annotations

import sys


def keep_libraries_quiet() -> None:
    """Have what libraries log and warn of go nowhere, unless somebody said where it goes."""
    import logging
    import warnings

    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
