"""`python -m taskyard`."""

from __future__ import annotations

import sys

from taskyard.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
