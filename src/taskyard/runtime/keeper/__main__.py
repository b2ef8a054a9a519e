"""
A keeper's first steps, in an interpreter of its own: `python -I -S …/keeper/__main__.py keep|serve FD`.

    keep FD     the request is in FD; the answer goes to stdout
    serve FD    FD is a socket; each message brings a request's descriptor, and a keeper is forked for it

Isolated and without `site`: a keeper lives as long as its job, and there may be hundreds.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)))
    from taskyard.runtime.keeper.service import main

    main(sys.argv[1:])
