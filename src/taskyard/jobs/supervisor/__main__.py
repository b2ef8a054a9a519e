"""
Entry point of a supervisor: `python -I -S …/supervisor/__main__.py keep|serve FD`.

    keep FD     read the request from FD; write the answer to stdout
    serve FD    FD is a socket; fork a supervisor for each message, which passes a request's descriptor

Isolated and without `site`, to stay small: a supervisor runs as long as its job, and there may be hundreds.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(os.path.join(__file__, *[os.pardir] * 4)))
    from taskyard.jobs.supervisor.server import main

    main(sys.argv[1:])
